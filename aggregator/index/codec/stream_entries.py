"""How the article stream is written down: a format byte, then MessagePack. What it tells of an article beyond its decision
stands in the article's record.
"""

from __future__ import annotations

import msgspec

from aggregator.domain import NUMBER_RANDOM_BITS, StreamItem, VerdictName
from aggregator.index.codec.records import DEFAULT_FORMAT, Binding, decode_formatted, decode_stream_fields


class StreamEntry(msgspec.Struct, frozen=True, array_like=True):
    """A stream entry as it is written: a ``StreamItem`` without what its record says."""

    kind: str
    number: int
    first_version: int
    id: str
    verdict: VerdictName
    matched_number: int | None
    canonical_first: int | None
    exact: bool


_entry_decoder = msgspec.msgpack.Decoder(StreamEntry)
_encode = msgspec.msgpack.Encoder().encode


def encode_stream_entry(kind: str, binding: Binding) -> bytes:
    """``kind``: "article" for one that came, "deleted" for one that was taken down."""
    match = binding.outcome.match
    row = StreamEntry(
        kind=kind,
        number=binding.number,
        first_version=binding.first_version,
        id=binding.id,
        verdict=binding.outcome.verdict,
        matched_number=match.number if match else None,
        canonical_first=match.canonical_first if match else None,
        exact=match is not None and match.rule == "exact",
    )
    return DEFAULT_FORMAT + _encode(row)


def decode_stream_item(data: bytes, space: str, record: bytes | None) -> StreamItem:
    """``completed`` of an entry as it is stored. Raises StoreUnavailable when it or the record is damaged or foreign."""
    return to_stream_item(decode_stream_entry(data), space, record)


def decode_stream_entry(data: bytes) -> StreamEntry:
    """A stream entry alone. Raises StoreUnavailable when it is damaged or foreign."""
    return decode_formatted(_entry_decoder, data)


def to_stream_item(entry: StreamEntry, space: str, record: bytes | None) -> StreamItem:
    """A stream entry with its record as that is stored; one that is gone (None) leaves its fields empty.

    Raises StoreUnavailable when the record is damaged or foreign.
    """
    return StreamItem(
        number=entry.number,
        first_version=entry.first_version,
        id=entry.id,
        verdict=entry.verdict,
        arrived_ms=entry.number >> NUMBER_RANDOM_BITS,
        kind="deleted" if entry.kind == "deleted" else "article",
        matched_number=entry.matched_number,
        canonical_first=entry.canonical_first,
        exact=entry.exact,
        **(decode_stream_fields(record, space) if record is not None else {}),
    )
