"""Stored form of article stream entries: verdicts, completed with the fields of the record."""

from dataclasses import fields, replace

import pytest

from aggregator.analysis.shingles import build_sketch
from aggregator.analysis.term_profile import OPENING_WEIGHT
from aggregator.domain import NUMBER_RANDOM_BITS, ArticleRecord, Match, Outcome, StreamItem
from aggregator.errors import StoreUnavailable
from aggregator.index.codec.bindings import Binding
from aggregator.index.codec.records import decode_record, encode_record
from aggregator.index.codec.stream_entries import decode_stream_entry, encode_stream_entry, to_stream_item

NUMBER = 1_770_000_000_000 << NUMBER_RANDOM_BITS
COPY = Binding(
    NUMBER, 5, bytes(16), "port", Outcome("duplicate", 0, Match("pier", 9, "quay", 3, 0, 1.0, "exact"))
)
# With a title long enough for compression.
RECORD = ArticleRecord(
    number=NUMBER, first_version=5, id="port", space="en.0001", lang="en", fingerprint=0x0123456789ABCDEF,
    text_hash=bytes(range(16)), short=False, title="The port opens " * 8, url="https://example.org/port",
    source="Example", published_at_ms=7, sketch=build_sketch(["the", "port", "opens"]),
    terms=(("harbour", 1.0), ("crane", 0.4)), figures=(17,),
)  # fmt: skip


def test_an_entry_is_completed_with_its_record() -> None:
    """Every field that a record and a stream item share has the value of the record, but the terms."""
    stored = encode_record(RECORD)
    item, record = (
        to_stream_item(
            decode_stream_entry(encode_stream_entry("article", COPY, replace(RECORD, opening_mask=0b10))),
            "en.0001",
            stored,
        ),
        decode_record(stored, "en.0001", NUMBER),
    )

    shared = {f.name for f in fields(StreamItem)} & {f.name for f in fields(ArticleRecord)} - {"terms"}
    assert {name: getattr(item, name) for name in shared} == {name: getattr(record, name) for name in shared}
    assert len(shared) == 11 and item.title == RECORD.title
    assert item.terms == (("port", 1.0), ("crane", OPENING_WEIGHT))


def test_a_declared_backfill_is_stored_in_the_entry() -> None:
    """The detector reads it there."""
    data = encode_stream_entry("article", COPY, replace(RECORD, backfill=True))

    assert to_stream_item(decode_stream_entry(data), "en.0001", encode_record(RECORD)).backfill


@pytest.mark.parametrize("kind", ["article", "deleted"])
def test_an_entry_without_its_record_has_the_verdict(kind: str) -> None:
    """The record may have expired before the stream is read."""
    data = encode_stream_entry(kind, COPY)
    item = to_stream_item(decode_stream_entry(data), "en.0001", None)

    assert (item.kind, item.number, item.first_version, item.id, item.verdict) == (
        kind,
        NUMBER,
        5,
        "port",
        "duplicate",
    )
    assert (item.matched_number, item.canonical_first, item.exact) == (9, 3, True)
    assert item.arrived_ms == 1_770_000_000_000 and decode_stream_entry(data).number == NUMBER
    assert (item.title, item.terms, item.space) == ("", (), "")


def test_damaged_values_and_other_formats_are_rejected() -> None:
    """Entry or record, by its format byte or by truncation."""
    data, stored = encode_stream_entry("article", COPY), encode_record(RECORD)
    for entry, record in (
        (b"\x09" + data[1:], None),
        (data[:-3], None),
        (data, b"\x09" + stored[1:]),
        (data, stored[:-3]),
    ):
        with pytest.raises(StoreUnavailable):
            to_stream_item(decode_stream_entry(entry), "en.0001", record)


def test_stream_records_do_not_enter_the_cache() -> None:
    """They would displace the records that are read repeatedly."""
    before = decode_record.cache_info()
    to_stream_item(
        decode_stream_entry(encode_stream_entry("article", COPY)), "en.0001", encode_record(RECORD)
    )
    assert decode_record.cache_info() == before
