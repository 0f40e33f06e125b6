"""Stored form of article stream entries: a format byte, then MessagePack.

An entry has the verdict; everything else about the article is in its record.
"""

from __future__ import annotations

import msgspec

from aggregator.analysis.term_profile import story_terms
from aggregator.domain import NUMBER_RANDOM_BITS, ArticleRecord, StreamItem, VerdictName
from aggregator.index.codec.bindings import Binding
from aggregator.index.codec.format_byte import PLAIN, decode_formatted
from aggregator.index.codec.records import decode_stream_fields


class StreamEntry(msgspec.Struct, frozen=True, array_like=True):
    """A ``StreamItem`` without the fields of its record."""

    kind: str
    number: int
    first_version: int
    id: str
    verdict: VerdictName
    matched_number: int | None
    canonical_first: int | None
    exact: bool
    opening_mask: int
    backfill: bool


_entry_decoder = msgspec.msgpack.Decoder(StreamEntry)
_encode = msgspec.msgpack.Encoder().encode


def encode_stream_entry(kind: str, binding: Binding, record: ArticleRecord | None = None) -> bytes:
    """The stored form of an entry. ``kind``: "article" for a stored version, "deleted" for a deletion.

    ``record``: that of the stored version, for its ``opening_mask`` (``analysis/term_profile.py``) and
    ``backfill``.
    """
    match = binding.outcome.match
    entry = StreamEntry(
        kind=kind,
        number=binding.number,
        first_version=binding.first_version,
        id=binding.id,
        verdict=binding.outcome.verdict,
        matched_number=match.number if match else None,
        canonical_first=match.canonical_first if match else None,
        exact=match is not None and match.rule == "exact",
        opening_mask=record.opening_mask if record else 0,
        backfill=record is not None and record.backfill,
    )
    return PLAIN + _encode(entry)


def decode_stream_entry(data: bytes) -> StreamEntry:
    """Decode an entry. Raises StoreUnavailable if it is damaged or has another format."""
    return decode_formatted(_entry_decoder, data, "A stream entry")


def to_stream_item(
    entry: StreamEntry, space: str, record: bytes | None, *, with_story_terms: bool = True
) -> StreamItem:
    """An entry with the fields of its stored record; they are empty if the record is gone (None).

    Its terms are the story terms, or those of the record, which takes a third of the time. Raises
    StoreUnavailable if the record is damaged or has another format.
    """
    fields = decode_stream_fields(record, space, entry.number) if record is not None else {}
    if fields and with_story_terms:
        fields["terms"] = story_terms(fields["title"], fields["lang"], fields["terms"], entry.opening_mask)
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
        backfill=entry.backfill,
        **fields,
    )
