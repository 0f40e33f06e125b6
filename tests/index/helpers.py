"""Helpers of the index tests."""

from aggregator.domain import Match, Outcome
from aggregator.index import keys
from aggregator.index.bindings import Binding, BindingSnapshot, DuplicateGroup, encode_binding
from aggregator.store.base import ValueEquals
from tests.support.factories import Core

TAG = b"{en.0000.0}"


async def seal(newsroom: Core) -> None:
    """Seal the writable segment of the only space."""
    (space,) = newsroom.index.spaces
    segments = newsroom.index.segments
    await segments.seal(space, (await segments.stack(space)).last, newsroom.clock())


def binding_snapshot(number: int, match: Match | None = None, *, keep: bool = True) -> BindingSnapshot:
    """A binding as it was read."""
    outcome = Outcome("new") if match is None else Outcome("duplicate", match=match, keep=keep)
    binding = Binding(number, number, b"h" * 16, f"a{number}", outcome)
    return BindingSnapshot(TAG + keys.BINDING + keys.id_hash(binding.id), encode_binding(binding), binding)


def match(to: int, canonical: int, rule: str = "overlap") -> Match:
    """A match between articles named after their numbers."""
    return Match(f"a{to}", to, f"a{canonical}", canonical, 4, 0.9, rule)  # type: ignore[arg-type]


def group(first: int, *members: BindingSnapshot) -> DuplicateGroup:
    """The group as it was read: its duplicate list and the binding of each member."""
    rows = b"".join(keys.id_hash(m.binding.id) for m in members) or None
    bound = (ValueEquals(m.key, m.raw) for m in members)
    return DuplicateGroup(first, members, (ValueEquals(TAG + keys.duplicate_ids(first), rows), *bound))
