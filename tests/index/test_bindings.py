"""Bindings of ids: found over segments and spaces, newest first, without expired ones."""

import msgspec
import pytest

from aggregator.domain import Outcome
from aggregator.errors import NotFound
from aggregator.index import keys
from aggregator.index.bindings import binding_in_space, bindings_under
from aggregator.index.codec.bindings import Binding, encode_binding
from aggregator.index.snapshot import SegmentStack, Snapshot
from aggregator.store.base import Store
from tests.index.helpers import seal
from tests.support.factories import core, story

KEY = keys.binding_by_id(b"", "ferry")
BOUND = Binding(9, 7, b"h" * 16, "ferry", Outcome("new"))


def snapshot(**numbers_by_space: int) -> Snapshot:
    """Spaces of two segments each with a binding of this number in the frozen one; their floor is 5."""
    stacks = {space: SegmentStack(space, 0, 1, floor=5) for space in numbers_by_space}
    read = Snapshot(stacks)
    for space, number in numbers_by_space.items():
        binding = msgspec.structs.replace(BOUND, number=number)
        read.values[keys.tag(space, 0) + KEY] = encode_binding(binding)
        read.values[keys.tag(space, 1) + KEY] = None
    return read


def test_bindings_of_several_spaces_are_newest_first() -> None:
    """An id has several while its article changes the language."""
    read = snapshot(de=8, en=9, sv=7)

    assert [(b.space, b.binding.number) for b in bindings_under(read, KEY)] == [
        ("en", 9),
        ("de", 8),
        ("sv", 7),
    ]


def test_a_binding_below_the_floor_has_expired() -> None:
    """One at the floor has not."""
    assert [b.space for b in bindings_under(snapshot(de=4, en=5), KEY)] == ["en"]


def test_a_frozen_binding_is_checked_in_the_writable_segment() -> None:
    """Writes go there: its key must still be absent when the article is committed."""
    read = snapshot(en=9)
    known = binding_in_space(read, "en", KEY)
    assert known is not None
    assert (known.key, known.raw, known.binding) == (keys.tag("en", 1) + KEY, None, BOUND)

    read.values[known.key] = keys.ABSENT
    assert binding_in_space(read, "en", KEY) is None


async def test_stored_ids_are_found_over_segments(store: Store) -> None:
    """Singly or many at once; unknown and deleted ids are left out."""
    newsroom = core(store)
    for i, id_ in enumerate(("frozen", "deleted")):
        await newsroom.post(id_, story(i))
    await seal(newsroom)
    await newsroom.post("new", story(7))
    await newsroom.ingest.delete("deleted")
    bindings = newsroom.index.bindings

    found = await bindings.find_many(["new", "unknown", "deleted", "frozen"])

    assert {id_: known.binding.id for id_, known in found.items()} == {"new": "new", "frozen": "frozen"}
    assert (await bindings.find("frozen")).binding == found["frozen"].binding
    with pytest.raises(NotFound, match="No article is stored under the id 'deleted'"):
        await bindings.find("deleted")


async def test_a_long_unknown_id_is_shortened_in_the_error(store: Store) -> None:
    """Ids are untrusted; the message does not repeat them at any length."""
    with pytest.raises(NotFound) as raised:
        await core(store).index.bindings.find("x" * 10_000)

    assert len(str(raised.value)) < 300
