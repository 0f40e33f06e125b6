"""Stored form of bindings and of states: a format byte, MessagePack, and in bindings a checksum."""

from __future__ import annotations

import msgspec
import xxhash

from aggregator.domain import Match, MatchRule, Outcome, VerdictName
from aggregator.index.codec.format_byte import PLAIN, append_checksum, decode_checked, decode_formatted


class Binding(msgspec.Struct, frozen=True, array_like=True):
    """The current version of an id, its first version, verdict and the ``source_hash`` of its source."""

    number: int
    first_version: int
    text_hash: bytes
    id: str
    outcome: Outcome
    source: int = 0

    @property
    def group(self) -> int:
        """The number of its duplicate group: the first version of the canonical article."""
        return self.outcome.group(self.first_version)


class _MatchRow(msgspec.Struct, frozen=True, array_like=True):
    """The canonical fields are None where the matched article is canonical."""

    id: str
    number: int
    canonical_id: str | None
    canonical_first: int | None
    distance: int
    overlap: float | None
    rule: MatchRule


class _BindingRow(msgspec.Struct, frozen=True, array_like=True):
    """``first_version`` is None in a first version."""

    number: int
    first_version: int | None
    text_hash: bytes
    id: str
    verdict: VerdictName
    distance: int | None
    updated_figures: bool
    match: _MatchRow | None
    source: int


class CanonicalPointer(msgspec.Struct, frozen=True, array_like=True):
    """State of the number of a duplicate: the canonical article of its group."""

    id: str
    first_version: int


_binding_decoder = msgspec.msgpack.Decoder(_BindingRow)
_pointer_decoder = msgspec.msgpack.Decoder(CanonicalPointer)
_encode = msgspec.msgpack.Encoder().encode


def encode_binding(binding: Binding) -> bytes:
    """The stored form of a binding."""
    outcome = binding.outcome
    row = _BindingRow(
        number=binding.number,
        first_version=None if binding.first_version == binding.number else binding.first_version,
        text_hash=binding.text_hash,
        id=binding.id,
        verdict=outcome.verdict,
        distance=outcome.distance,
        updated_figures=outcome.updated_figures,
        match=_match_row(outcome.match) if outcome.match else None,
        source=binding.source,
    )
    return append_checksum(_encode(row))


def _match_row(match: Match) -> _MatchRow:
    return _MatchRow(
        id=match.id,
        number=match.number,
        canonical_id=None if match.canonical_id == match.id else match.canonical_id,
        canonical_first=None if match.canonical_first == match.number else match.canonical_first,
        distance=match.distance,
        overlap=match.overlap,
        rule=match.rule,
    )


def decode_binding(data: bytes) -> Binding:
    """Decode a binding. Raises StoreUnavailable if it is damaged or has another format."""
    row = decode_checked(_binding_decoder, data, "A binding")
    return Binding(
        row.number,
        row.number if row.first_version is None else row.first_version,
        row.text_hash,
        row.id,
        Outcome(
            row.verdict, row.distance, _match_from_row(row.match) if row.match else None, row.updated_figures
        ),
        row.source,
    )


def _match_from_row(row: _MatchRow) -> Match:
    return Match(
        id=row.id,
        number=row.number,
        canonical_id=row.id if row.canonical_id is None else row.canonical_id,
        canonical_first=row.number if row.canonical_first is None else row.canonical_first,
        distance=row.distance,
        overlap=row.overlap,
        rule=row.rule,
    )


def encode_pointer(id_: str, first_version: int) -> bytes:
    """The stored form of the state of a duplicate."""
    return PLAIN + _encode(CanonicalPointer(id_, first_version))


def decode_pointer(data: bytes) -> CanonicalPointer:
    """Decode the state of a duplicate. Raises StoreUnavailable if it is damaged or has another format."""
    return decode_formatted(_pointer_decoder, data, "A state")


def source_hash(source: str) -> int:
    """32 bits that stand for a source; 0 for none."""
    return xxhash.xxh32_intdigest(source.encode("utf-8", "surrogatepass")) if source else 0
