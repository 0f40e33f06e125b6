"""Records of candidates equal the records decoded one by one, and the newest stay decoded."""

from dataclasses import fields, replace

import numpy as np
import pytest

from aggregator.analysis.shingles import build_sketch
from aggregator.domain import NO_SKETCH, ArticleRecord
from aggregator.errors import StoreUnavailable
from aggregator.index.codec.lazy_record import CANDIDATE_CACHE_ENTRIES, decode_candidates
from aggregator.index.codec.record_codec import decode_record, encode_record
from tests.index.codec.test_record_codec import (
    record,
    record_with_a_cut_sample,
    with_cut_texts,
)


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
        assert (candidate.id, candidate.source) == (whole.id, whole.source)
        for field in fields(ArticleRecord):
            if field.name != "sketch":
                assert getattr(candidate.record, field.name) == getattr(whole, field.name)
        for part in ("size", "sample", "opening"):
            assert np.array_equal(getattr(candidate.sketch, part), getattr(whole.sketch, part))
        assert candidate.record.sketch is candidate.sketch
        assert (candidate.id, candidate.source) == (whole.id, whole.source)


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
    for name in ("id", "source", "record"):
        with pytest.raises(StoreUnavailable, match="The record 0000000000000007 of en"):
            getattr(candidate, name)
