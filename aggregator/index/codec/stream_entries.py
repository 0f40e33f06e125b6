"""How the article stream is written down: a format byte, then MessagePack. What it tells of an article beyond its decision
stands in the article's record.
"""

from __future__ import annotations

import msgspec

from aggregator.domain import NUMBER_RANDOM_BITS, StreamItem, VerdictName
from aggregator.index.codec.records import FORMAT, Binding, decoded, told


class StreamRow(msgspec.Struct, frozen=True, array_like=True):
    """A stream entry as it is written: a ``StreamItem`` without what its record says."""

    kind: str
    number: int
    first: int
    id: str
    verdict: VerdictName
    matched_number: int | None
    canonical_first: int | None
    exact: bool


_row = msgspec.msgpack.Decoder(StreamRow)
_encode = msgspec.msgpack.Encoder().encode


def encode_stream_row(kind: str, binding: Binding) -> bytes:
    """``kind``: "article" for one that came, "deleted" for one that was taken down."""
    match = binding.outcome.match
    row = StreamRow(
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
    """``completed`` of an entry as it is stored. Raises StoreUnavailable when it or the record is damaged or foreign."""
    return completed(stream_row(data), space, record)


def stream_row(data: bytes) -> StreamRow:
    """A stream entry alone. Raises StoreUnavailable when it is damaged or foreign."""
    return decoded(_row, data)


def completed(row: StreamRow, space: str, record: bytes | None) -> StreamItem:
    """A stream entry with its record as that is stored; one that is gone (None) leaves its fields empty.

    Raises StoreUnavailable when the record is damaged or foreign.
    """
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
