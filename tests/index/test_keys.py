"""Key layout: stored keys are pinned, and the fast builders agree with the simple ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.shingles import build_sketch, sketch_keys
from aggregator.domain import Analysis
from aggregator.index import keys
from aggregator.index.blocks import MAX_RADIUS, PLANS, BlockPlan
from aggregator.index.codec.postings import encode_term_postings, top_by_terms
from tests.support.index_layout import bucket_probes

FINGERPRINTS = st.integers(0, 2**64 - 1)
TAG = b"{en.3f2a.7}"
SEVEN = bytes(7) + b"\x07"


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(fingerprint=FINGERPRINTS, radius=st.integers(0, MAX_RADIUS))
def test_block_buckets_equals_single_buckets(plan: BlockPlan, fingerprint: int, radius: int) -> None:
    """The same keys in the same order."""
    tag = keys.tag("en.3f2a", 7)

    built = keys.block_buckets(tag, [plan.probe_plan(fingerprint, radius)])

    assert built == [
        keys.block_bucket(tag, block, value) for block, value in bucket_probes(plan, fingerprint, radius)
    ]


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(fingerprints=st.lists(FINGERPRINTS, min_size=1, max_size=9), radius=st.integers(0, MAX_RADIUS))
def test_block_buckets_of_several_lookups(plan: BlockPlan, fingerprints: list[int], radius: int) -> None:
    """The keys of one lookup after another."""
    probe_plans = [plan.probe_plan(fingerprint, radius) for fingerprint in fingerprints]

    built = keys.block_buckets(b"{en.3f2a.7}", probe_plans)

    assert built == [key for plan_ in probe_plans for key in keys.block_buckets(b"{en.3f2a.7}", [plan_])]


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (keys.block_bucket(TAG, 0, 0x1F2), TAG + b"b0:01f2"),
        (keys.block_bucket(TAG, 63, 0xFFFF), TAG + b"b3f:ffff"),
        (TAG + keys.BINDING + b"h" * 16, TAG + b"i" + b"h" * 16),
        (TAG + keys.state(7), TAG + b"p" + SEVEN),
        (TAG + keys.tombstone(7), TAG + b"g" + SEVEN),
        (TAG + keys.duplicate_ids(7), TAG + b"c" + SEVEN),
        (TAG + keys.SEALED, TAG + b"closed"),
        (TAG + keys.WIDTH, TAG + b"width"),
        (TAG + keys.SAMPLES, TAG + b"marks"),
        (TAG + keys.DEAD_NUMBERS, TAG + b"dead"),
        (TAG + keys.VERSION, TAG + b"version"),
        (TAG + keys.STREAM, TAG + b"stream"),
        (keys.space_head("en.3f2a"), b"{en.3f2a}segments"),
        (keys.compaction_cursor("en.3f2a"), b"{en.3f2a}upkeep"),
        (keys.record("en.3f2a", 0xAB), b"r:en.3f2a:00000000000000ab"),
        (keys.text(0xAB), b"x:00000000000000ab"),
        (keys.record_prefix("sv.0002"), b"r:sv.0002:"),
    ],
)
def test_the_layout_is_pinned(built: bytes, expected: bytes) -> None:
    """Stored keys: a changed one would make the data of an earlier version invisible."""
    assert built == expected


@given(st.integers(0, 2**32 - 1))
def test_a_sketch_bucket_is_named_by_the_low_bits_of_its_key(sketch_key: int) -> None:
    """Eighteen bits in five hexadecimal digits."""
    assert keys.sketch_buckets(TAG, [sketch_key]) == [TAG + b"s%05x" % (sketch_key & 0x3FFFF)]


@given(st.integers(0, 2**32 - 1), st.integers(19, 24))
def test_a_wider_sketch_bucket_is_named_by_its_bits(sketch_key: int, bits: int) -> None:
    """Six digits after the number of bits."""
    low = sketch_key & (1 << bits) - 1

    assert keys.sketch_buckets(TAG, [sketch_key], bits) == [TAG + b"s%d:%06x" % (bits, low)]


@given(st.integers(0, 2**52 - 1))
def test_a_term_bucket_is_named_by_the_top_bits_of_its_key(index_key: int) -> None:
    """The upper 20 of 52 bits; the remainder is in the posting."""
    assert keys.term_buckets(TAG, [index_key]) == [TAG + b"t%05x" % (index_key >> 32)]


@given(st.integers(0, 2**32), st.binary(max_size=20))
def test_the_parts_of_a_key_are_found(segment: int, suffix: bytes) -> None:
    """Tag, space and segment, whatever bytes follow the tag: hashes may contain braces and periods."""
    tag = keys.tag("en.3f2a", segment)

    assert keys.tag_of(tag + suffix) == tag
    assert keys.space_of(tag + suffix) == "en.3f2a"
    assert keys.segment_of(tag + suffix) == segment
    assert tag.startswith(keys.space_prefix("en.3f2a"))


def test_a_space_prefix_does_not_match_a_longer_space() -> None:
    """One space may begin with the name of another."""
    assert not keys.tag("en.3f2ab", 0).startswith(keys.space_prefix("en.3f2a"))


@pytest.mark.parametrize("id_", ["", "}{en.0.1}", "line\nbreak", "\ud800", "x" * 100_000])
def test_any_id_has_a_binding_key_of_one_length(id_: str) -> None:
    """Ids are untrusted: their text never gets into a key."""
    key = TAG + keys.binding(id_)

    assert len(key) == len(TAG) + 17
    assert key == TAG + keys.BINDING + keys.id_hash(id_)


@pytest.mark.integration
@pytest.mark.parametrize("own", [keys.sketch_buckets, keys.term_buckets])
def test_all_buckets_are_enumerated_once(own: Callable[[bytes, list[int]], list[bytes]]) -> None:
    """Compaction visits every bucket that an article may be written to, in an order that never changes."""
    found = list(keys.all_buckets([2, 1]))

    assert found[:6] == [b"b0:0000", b"b0:0001", b"b0:0002", b"b0:0003", b"b1:0000", b"b1:0001"]
    assert len(set(found)) == len(found) == 6 + (1 << 18) + (1 << 20)
    assert set(own(b"", [0, (1 << 52) - 1, 0x1234_5678])) <= set(found)


@pytest.mark.integration
def test_all_wider_sketch_buckets_are_enumerated_once() -> None:
    """In the place of those of 18 bits."""
    found = list(keys.all_buckets([1], 20))

    assert len(set(found)) == len(found) == 2 + (1 << 20) + (1 << 20)
    assert found[2:4] == [b"s20:000000", b"s20:000001"]
    assert found[1 + (1 << 20) : 4 + (1 << 20)] == [b"s20:0fffff", b"t00000", b"t00001"]


TERMS = tuple((f"term{n}", 1 / (n + 1)) for n in range(30))


def test_stored_hashes_are_unchanged() -> None:
    """Golden values. The lowest byte is the weight; bucket key and posting together hold the index key."""
    assert keys.term_hash("ferry") == 4269045302255872
    assert keys.index_keys([("ferry", 0.5)]) == [4269045302255872 | 128]
    assert keys.term_buckets(b"", [4269045302255872 | 128]) == [b"tf2aac"]
    posting = bytes.fromhex("8061c590") + b"\x02" + bytes(7)
    assert encode_term_postings([4269045302255872 | 128], 2) == [posting]


def test_the_heaviest_terms_are_indexed_and_more_are_queried() -> None:
    """A term whose weight rounds to zero keeps the smallest weight."""
    hashes = [index_key & ~0xFF for index_key in keys.index_keys(TERMS)]
    assert hashes == list(keys.query_weights(TERMS))[: keys.INDEXED_TERMS]
    assert len(keys.query_weights(TERMS)) == keys.QUERY_TERMS
    assert keys.index_keys([("faint", 0.0001)])[0] & 0xFF == 1
    assert keys.index_keys([]) == [] and keys.query_weights([]) == {}


def test_articles_are_ranked_by_the_weight_of_shared_terms() -> None:
    """Products are summed over buckets and segments; ties: newer first."""
    sea, storm, other = (keys.term_hash(term) for term in ("sea", "storm", "other"))

    def posting(index_key: int, number: int) -> bytes:
        return encode_term_postings([index_key], number)[0]

    frozen = [
        b"".join(posting(sea | weight, number) for number, weight in ((1, 200), (5, 100), (7, 100))),
        posting(storm | 60, 3) + posting(other | 255, 9),
    ]
    writable = [posting(sea | 100, 3), None]

    assert top_by_terms(frozen + writable, {sea: 0.5, storm: 0.5}, 3).tolist() == [3, 7, 5]
    assert top_by_terms([None, None], {sea: 0.5, storm: 0.5}, 3).tolist() == []
    assert top_by_terms([], {}, 0).tolist() == []
    assert top_by_terms([b""], {sea: 1.0}, 0).dtype == np.uint64


def test_an_article_is_indexed_under_its_wording() -> None:
    """Once under each; no text key is 0."""
    sketch = build_sketch([f"word{n}" for n in range(40)])
    analysis = Analysis("en", "en.0001", 0, bytes(16), True, sketch)
    own = sketch_keys(sketch)
    assert keys.wording_keys(analysis) == own
    assert keys.wording_keys(replace(analysis, text_key=7)) == (7, *own)
    shared = keys.wording_keys(replace(analysis, text_key=own[2]))
    assert (len(shared), set(shared)) == (len(own), set(own))
    assert keys.wording_keys(replace(analysis, text_key=7), 2) == (7, *own[:2])
    titled = replace(analysis, text_key=7, title="Beavers flood a campsite")
    assert keys.wording_keys(titled, 2) == (7, *own[:2], keys.headline_key(titled.title, "en"))


@pytest.mark.parametrize(
    ("lang", "title", "same", "other"),
    [
        (
            "en",
            "Beavers flood the campsite at Ellerby",
            ["Campsite at Ellerby: beavers flood", "BEAVERS FLOOD ELLERBY CAMPSITE",
             "beavers beavers flood campsite Ellerby",
             "Beavers flood the campsite at Ellerby | The Harbour Gazette"],
            ["Beavers flood the campsite at Maresby", "Beavers flood the campsite"],
        ),
        (
            "de",
            "Lotsen beenden Streik in Tornavik",
            ["Streik in Tornavik: Lotsen beenden", "Lotsen beenden Streik in Tornavik | Hafenzeitung"],
            ["Lotsen beginnen Streik in Tornavik"],
        ),
        (
            "ru",
            "Лоцманы Торнавика прекратили забастовку",
            ["Забастовку прекратили лоцманы Торнавика"],
            ["Лоцманы Торнавика начали забастовку"],
        ),
        ("zh", "天文台发现双尾彗星", ["双尾彗星发现天文台"], ["天文台发现三尾彗星"]),
    ],
)  # fmt: skip
def test_a_headline_is_looked_up_by_its_terms(
    lang: str, title: str, same: list[str], other: list[str]
) -> None:
    """Whatever their order, their case and the name of the outlet; another term gives another key."""
    key = keys.headline_key(title, lang)

    assert key and all(keys.headline_key(variant, lang) == key for variant in same)
    assert all(keys.headline_key(variant, lang) != key for variant in other)


@pytest.mark.parametrize(
    "title", ["", "Weather", "Live: Tornavik", "The storm and the harbour", "!!!", "\ud800"]
)
def test_a_headline_of_fewer_than_three_terms_has_no_key(title: str) -> None:
    """Many articles have it; stop words do not count."""
    assert keys.headline_key(title, "en") == 0


@given(st.text(), st.sampled_from(["en", "de", "zh", "ja", "ko", "und"]))
def test_any_headline_has_a_key_of_32_bits(title: str, lang: str) -> None:
    """Also lone surrogates and marks only."""
    assert 0 <= keys.headline_key(title, lang) < 2**32
