"""What the article stream tells: a decision, and of its article what the detector asks for."""

from dataclasses import fields

import numpy as np
import pytest

from aggregator.domain import NUMBER_RANDOM_BITS, ArticleRecord, Match, Outcome, Sketch, StreamItem
from aggregator.errors import StoreUnavailable
from aggregator.index.codec.records import Binding, decode_record, encode_record
from aggregator.index.codec.stream_entries import decode_stream_entry, encode_stream_entry, to_stream_item

NUMBER = 1_770_000_000_000 << NUMBER_RANDOM_BITS
COPY = Binding(
    NUMBER, 5, bytes(16), "port", Outcome("duplicate", 0, Match("pier", 9, "quay", 3, 0, 1.0, "exact"))
)
# A longer title, so that the texts are written compressed.
RECORD = ArticleRecord(
    number=NUMBER, first_version=5, id="port", space="en.0001", lang="en", fingerprint=0x0123456789ABCDEF,
    text_hash=bytes(range(16)), short=False, title="The port opens " * 8, url="https://example.org/port",
    source="Example", published_at_ms=7, sketch=Sketch(3, np.arange(3, dtype=np.uint32)),
    terms=(("harbour", 1.0), ("crane", 0.4)), figures=(17,),
)  # fmt: skip


def test_an_entry_is_completed_with_its_record() -> None:
    """All that a record and the stream both name is what a reader of records gets."""
    written = encode_record(RECORD)
    item, known = (
        to_stream_item(decode_stream_entry(encode_stream_entry("article", COPY)), "en.0001", written),
        decode_record(written, "en.0001", NUMBER),
    )

    both = {f.name for f in fields(StreamItem)} & {f.name for f in fields(ArticleRecord)}
    assert {name: getattr(item, name) for name in both} == {name: getattr(known, name) for name in both}
    assert len(both) == 11 and item.title == RECORD.title


@pytest.mark.parametrize("kind", ["article", "deleted"])
def test_without_its_record_an_entry_tells_the_decision(kind: str) -> None:
    """A record may have expired before somebody follows."""
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


def test_what_is_damaged_or_foreign_is_refused() -> None:
    """Entry or record, whole format or only its texts."""
    data, written = encode_stream_entry("article", COPY), encode_record(RECORD)
    for entry, record in (
        (b"\x09" + data[1:], None),
        (data[:-3], None),
        (data, b"\x09" + written[1:]),
        (data, written[:-3]),
    ):
        with pytest.raises(StoreUnavailable):
            to_stream_item(decode_stream_entry(entry), "en.0001", record)


def test_nothing_is_kept_of_what_passes() -> None:
    """Records that come again and again keep their place in the cache."""
    before = decode_record.cache_info()
    to_stream_item(
        decode_stream_entry(encode_stream_entry("article", COPY)), "en.0001", encode_record(RECORD)
    )
    assert decode_record.cache_info() == before
