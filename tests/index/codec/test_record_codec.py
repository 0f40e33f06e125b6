"""Stored form of records: it round-trips, and other formats are rejected."""

from __future__ import annotations

import zlib
from dataclasses import fields, replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.shingles import (
    build_sketch,
    estimate_overlap,
    sketch_keys,
)
from aggregator.domain import MAX_TEXT_WORDS, NO_SKETCH, ArticleRecord, Sketch
from aggregator.errors import DamagedValue, StoreUnavailable
from aggregator.index.codec.record_codec import (
    CANDIDATE_CACHE_ENTRIES,
    compress_text,
    decode_candidates,
    decode_record,
    decode_record_summary,
    decompress_text,
    encode_record,
)
from aggregator.index.codec.sketches import encode_sketch_sample
from aggregator.store.decoding import append_checksum

PINNED_RECORD = bytes.fromhex(
    "04dc001205a2656ecf0123456789abcdefc410000102030405060708090a0b0c0d0e0fce00c0ffeec2c002c4"
    "0b020012bea78f5843898909c402ff66c4041100000095a4706f7274aa506f7274206f70656e73b868747470"
    "733a2f2f6578616d706c652e6f72672f706f7274a74578616d706c65ad686172626f75720a6372616e65c402"
    "6040c400cd012c3300c22e56f4b9"
)


def record(sketch: Sketch) -> ArticleRecord:
    """An article with this sketch."""
    return ArticleRecord(
        number=7, first_version=5, id="port", space="en.0001", lang="en", fingerprint=0x0123456789ABCDEF,
        text_hash=bytes(range(16)), short=False, title="Port opens", url="https://example.org/port",
        source="Example", published_at_ms=None, sketch=sketch, terms=(("harbour", 1.0), ("crane", 0.4)),
        figures=(17,), text_key=0xC0FFEE, text_words=300, own_headline=0.2,
    )  # fmt: skip


def record_with_a_cut_sample() -> bytes:
    """A stored record whose sketch lacks a byte; its checksum is right."""
    whole = encode_record(record(build_sketch(["one", "two", "three", "four"])))
    sample = encode_sketch_sample(build_sketch(["one", "two", "three", "four"]).sample)
    cut = whole.replace(bytes([len(sample)]) + sample, bytes([len(sample) - 1]) + sample[:-1])
    assert cut != whole
    return append_checksum(cut[1:-4], 7)


def test_stored_sketches_compare_like_new_ones() -> None:
    """An article and its stored form have the same overlap with another one, and the same sketch keys."""
    first, second = (
        build_sketch([f"word{n}" for n in range(900)]),
        build_sketch([f"word{n}" for n in range(500, 1400)]),
    )
    stored = decode_record(encode_record(record(first)), "en.0001", 7).sketch
    assert estimate_overlap(stored, second) == estimate_overlap(first, second)
    assert sketch_keys(stored) == sketch_keys(first)


def test_the_stored_record_is_pinned() -> None:
    """Golden value. Short texts are not compressed; number and space are in the key."""
    made = record(build_sketch(["nine", "ships", "called", "today"]))
    assert encode_record(made).hex() == PINNED_RECORD.hex()
    read = decode_record(PINNED_RECORD, "en.0001", 7)
    assert read.sketch.sample.tolist() == made.sketch.sample.tolist()
    assert [term for term, _ in read.terms] == ["harbour", "crane"]
    assert [weight for _, weight in read.terms] == pytest.approx([1.0, 0.4])
    others = [f.name for f in fields(ArticleRecord) if f.name not in ("sketch", "terms")]
    assert [getattr(read, name) for name in others] == [getattr(made, name) for name in others]


def test_minor_terms_are_stored_behind_the_marks() -> None:
    """Golden value. The words of the text and its headline's share in 255ths follow."""
    made = replace(record(build_sketch(["nine", "ships", "called", "today"])), minor_terms=b"\x80\xc5\x8a")
    data = encode_record(made)
    assert data[:-4].hex() == PINNED_RECORD[:-12].hex() + "c40380c58a" + "cd012c3300c2"
    assert decode_record(data, "en.0001", 7).minor_terms == made.minor_terms


def test_a_summary_is_the_record_without_its_wording() -> None:
    """What related articles are ranked and shown by."""
    data = encode_record(replace(record(build_sketch(["nine", "ships"])), minor_terms=b"\x80\xc5\x8a"))
    summary, read = decode_record_summary(data, "en.0001", 7), decode_record(data, "en.0001", 7)
    assert summary.sketch is NO_SKETCH and summary.figures == ()
    others = [f.name for f in fields(ArticleRecord) if f.name not in ("sketch", "figures")]
    assert [getattr(summary, name) for name in others] == [getattr(read, name) for name in others]


@given(st.lists(st.text(), min_size=4, max_size=4), st.integers(0, 40))
def test_texts_round_trip(texts: list[str], times: int) -> None:
    """Any text, short or long enough to be compressed."""
    names = ("id", "title", "url", "source")
    changes: dict[str, Any] = {n: t * times for n, t in zip(names, texts, strict=True)}
    made = replace(record(build_sketch(["one"])), **changes)
    read = decode_record(encode_record(made), "en.0001", 7)
    assert [getattr(read, name) for name in names] == [getattr(made, name) for name in names]


def test_a_headline_repeated_in_the_url_is_compressed() -> None:
    """Texts are compressed together; truncated compressed texts are rejected."""
    title = "Harbour cranes stand still after the storm, and nobody says for how long they will"
    made = replace(
        record(build_sketch(["one"])), title=title, url="https://example.org/" + title.replace(" ", "-")
    )
    data = encode_record(made)
    assert len(data) < len(encode_record(replace(made, title="", url=""))) + 1.6 * len(title)
    with pytest.raises(StoreUnavailable, match="The record 0000000000000007 of en"):
        decode_record(with_cut_texts(data), "en.0001", 7)


def with_cut_texts(data: bytes) -> bytes:
    """A stored record, number 7, with compressed texts that lack their last byte."""
    texts = msgspec.msgpack.decode(data[1:-4])[-7]  # the marks, the minor terms and four numbers follow
    cut = data.replace(bytes([0xC4, len(texts)]) + texts, bytes([0xC4, len(texts) - 1]) + texts[:-1])
    assert cut != data
    return append_checksum(cut[1:-4], 7)


@given(st.integers(0, MAX_TEXT_WORDS), st.floats(0, 1))
def test_words_and_headline_share_round_trip(words: int, share: float) -> None:
    """The share to within half a 255th, and of a summary too."""
    data = encode_record(replace(record(NO_SKETCH), text_words=words, own_headline=share))
    for read in (decode_record(data, "en.0001", 7), decode_record_summary(data, "en.0001", 7)):
        assert read.text_words == words
        assert read.own_headline == pytest.approx(share, abs=0.5 / 255)


def test_marks_round_trip() -> None:
    """Of all sampled hashes; a record with fewer is damaged."""
    sketch = build_sketch([f"word{n}" for n in range(900)])
    data = encode_record(record(sketch))
    assert decode_record(data, "en.0001", 7).sketch.marks.tolist() == sketch.marks.tolist()
    fewer = encode_record(record(Sketch(sketch.size, sketch.sample, sketch.marks[1:])))
    with pytest.raises(StoreUnavailable, match="marks do not match"):
        decode_record(fewer, "en.0001", 7)


@pytest.mark.parametrize("first", [5, 7])
def test_the_first_version_round_trips(first: int) -> None:
    """In a first version and in a later one."""
    written = encode_record(replace(record(build_sketch(["one"])), first_version=first))
    read = decode_record(written, "en.0001", 7)
    assert (read.number, read.first_version) == (7, first)


@pytest.mark.parametrize("format_", ["01", "02", "09"])
def test_another_format_is_rejected(format_: str) -> None:
    """Records of earlier and later formats."""
    with pytest.raises(StoreUnavailable, match=f"format {format_}, this version reads 04"):
        decode_record(bytes.fromhex(format_) + encode_record(record(build_sketch(["one"])))[1:], "en.0001", 7)


def test_a_record_with_a_damaged_sample_is_rejected() -> None:
    """With StoreUnavailable, whichever part of the record is damaged."""
    with pytest.raises(StoreUnavailable, match=r"in the store is damaged \(a sample ends"):
        decode_record(record_with_a_cut_sample(), "en.0001", 7)


@given(st.integers(0, 8 * len(PINNED_RECORD) - 1))
def test_every_flipped_bit_of_a_record_is_noticed(bit: int) -> None:
    """In any byte; a flip in the first makes it another format or one without checksum."""
    data = bytearray(PINNED_RECORD)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(StoreUnavailable):
        decode_record(bytes(data), "en.0001", 7)


def test_a_record_under_the_key_of_another_one_is_damaged() -> None:
    """The number in the key is part of the checksum."""
    with pytest.raises(DamagedValue, match="its checksum does not match"):
        decode_record(PINNED_RECORD, "en.0001", 8)


@given(st.text(st.characters(exclude_categories=())), st.integers(1, 300))
def test_any_text_round_trips(text: str, times: int) -> None:
    """Lone surrogates included, which crawlers deliver in broken JSON."""
    assert decompress_text(compress_text(text * times)) == text * times


def test_the_stored_form_is_zlib_over_utf8() -> None:
    """Texts of earlier versions are read, whatever level they were compressed with."""
    text = "Grüße aus dem Hafen"

    assert zlib.decompress(compress_text(text)) == text.encode()
    assert decompress_text(zlib.compress(text.encode(), 1)) == text


def test_a_truncated_text_is_rejected() -> None:
    """It never yields the beginning of the text."""
    with pytest.raises(zlib.error):
        decompress_text(compress_text("Two ships waited for the tide.")[:-1])


def test_candidates_are_the_records() -> None:
    """What is decoded first, then the whole record; a repeated record among them."""
    stored = [
        (encode_record(record(build_sketch([f"w{n}" for n in range(size)]))), "en.0001", 7)
        for size in (0, 9, 700, 9)
    ]
    for item, candidate in zip(stored, decode_candidates(stored), strict=True):
        whole = decode_record(*item)
        assert (candidate.number, candidate.fingerprint) == (7, whole.fingerprint)
        assert candidate.text_hash == whole.text_hash
        assert (candidate.texts.id, candidate.texts.source) == (whole.id, whole.source)
        for field in fields(ArticleRecord):
            if field.name != "sketch":
                assert getattr(candidate.record, field.name) == getattr(whole, field.name)
        for part in ("size", "sample", "opening"):
            assert np.array_equal(getattr(candidate.sketch, part), getattr(whole.sketch, part))
        assert candidate.record.sketch is candidate.sketch
        assert (candidate.texts.id, candidate.texts.source) == (whole.id, whole.source)


def test_the_newest_candidates_stay_decoded() -> None:
    """Those used last; a record that was replaced under its number is decoded again."""
    data = encode_record(record(build_sketch(["one"])))
    first = decode_candidates([(data, "en.0001", 7)])[0]
    others = [
        (encode_record(replace(record(NO_SKETCH), number=n)), "en.0001", n)
        for n in range(100, 99 + CANDIDATE_CACHE_ENTRIES)
    ]
    decode_candidates(others)
    assert decode_candidates([(data, "en.0001", 7)])[0] is first
    decode_candidates([(encode_record(replace(record(NO_SKETCH), number=99)), "en.0001", 99), *others])
    assert decode_candidates([(data, "en.0001", 7)])[0] is not first
    moved = encode_record(replace(record(build_sketch(["one"])), title="Moved"))
    assert decode_candidates([(moved, "en.0001", 7)])[0].record.title == "Moved"


def test_a_damaged_candidate_among_others_is_named() -> None:
    """Sketches are decoded in one pass; the error names the record all the same."""
    other = encode_record(replace(record(NO_SKETCH), number=8))

    with pytest.raises(StoreUnavailable, match=r"record 0+7 of en\.0001 in the store is damaged \(a sample"):
        decode_candidates([(other, "en.0001", 8), (record_with_a_cut_sample(), "en.0001", 7)])


def test_damaged_texts_are_named_when_they_are_first_needed() -> None:
    """Most candidates are rejected before."""
    data = encode_record(replace(record(build_sketch(["one"])), title="Harbour cranes stand still " * 9))
    (candidate,) = decode_candidates([(with_cut_texts(data), "en.0001", 7)])
    for name in ("texts", "record"):
        with pytest.raises(StoreUnavailable, match="The record 0000000000000007 of en"):
            getattr(candidate, name)
