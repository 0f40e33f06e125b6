"""How the article stream is written down: a format byte, then MessagePack. What it tells of an article beyond its decision
stands in the article's record.
"""

from __future__ import annotations

import msgspec

from aggregator.domain import NUMBER_RANDOM_BITS, StreamItem, VerdictName
from aggregator.store.records import FORMAT, Binding, decoded, told


class _StreamRow(msgspec.Struct, frozen=True, array_like=True):
    kind: str
    number: int
    first: int
    id: str
    verdict: VerdictName
    matched_number: int | None
    canonical_first: int | None
    exact: bool


_row = msgspec.msgpack.Decoder(_StreamRow)
_encode = msgspec.msgpack.Encoder().encode


def encode_stream_row(kind: str, binding: Binding) -> bytes:
    """``kind``: "article" for one that came, "deleted" for one that was taken down."""
    match = binding.outcome.match
    row = _StreamRow(
        kind=kind,
        number=binding.number,
        first=binding.first,
        id=binding.id,
        verdict=binding.outcome.verdict,
        matched_number=match.number if match else None,
        canonical_first=match.canonical_first if match else None,
        exact=match is not None and match.rule == "exact",
    )
    return FORMAT + _encode(row)


def decode_stream_row(data: bytes, space: str, record: bytes | None) -> StreamItem:
    """A stream entry completed with its record as it is stored; one that is gone (None) leaves its fields empty.

    Raises StoreUnavailable when either is damaged or foreign.
    """
    row = decoded(_row, data)
    return StreamItem(
        number=row.number,
        first=row.first,
        id=row.id,
        verdict=row.verdict,
        arrived_ms=row.number >> NUMBER_RANDOM_BITS,
        kind="deleted" if row.kind == "deleted" else "article",
        matched_number=row.matched_number,
        canonical_first=row.canonical_first,
        exact=row.exact,
        **(told(record, space) if record is not None else {}),
    )


def stream_number(data: bytes) -> int:
    """The article number of a stream entry. Raises StoreUnavailable when it is damaged or foreign."""
    return decoded(_row, data).number
