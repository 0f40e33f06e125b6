"""Key layout: stored keys are pinned, and the fast builders agree with the simple ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.shingles import build_sketch, sketch_keys
from aggregator.analysis.term_profile import encode_minor_terms
from aggregator.domain import NO_SKETCH, Analysis, ArticleRecord
from aggregator.index import keys
from aggregator.index.blocks import MAX_RADIUS, BlockPlan
from aggregator.index.codec.postings import encode_term_postings
from tests.support.index_layout import PLANS, bucket_probes

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


@given(st.integers(0, 2**36 - 1))
def test_a_term_bucket_is_named_by_the_top_bits_of_its_key(hashed: int) -> None:
    """The upper 20 of 36 bits; the remainder is in the posting."""
    assert keys.term_buckets(TAG, [hashed]) == [TAG + b"t%05x" % (hashed >> 16)]


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
    assert set(own(b"", [0, (1 << 36) - 1, 0x1234_5678])) <= set(found)


@pytest.mark.integration
def test_all_wider_sketch_buckets_are_enumerated_once() -> None:
    """In the place of those of 18 bits."""
    found = list(keys.all_buckets([1], 20))

    assert len(set(found)) == len(found) == 2 + (1 << 20) + (1 << 20)
    assert found[2:4] == [b"s20:000000", b"s20:000001"]
    assert found[1 + (1 << 20) : 4 + (1 << 20)] == [b"s20:0fffff", b"t00000", b"t00001"]


def test_stored_hashes_are_unchanged() -> None:
    """Golden values; bucket key and posting together hold the hash."""
    assert keys.term_hash("ferry") == 65140461765
    assert keys.term_buckets(b"", [65140461765]) == [b"tf2aac"]
    assert encode_term_postings([65140461765], 2) == [b"\xc5\x90\x02" + bytes(7)]


def test_an_article_is_indexed_under_the_terms_of_its_lead() -> None:
    """They come before heavier ones of the rest of the text."""
    terms = tuple((f"term{n}", 0.9 - n / 100) for n in range(24))
    lead = encode_minor_terms(terms, (), {f"term{n}" for n in range(4, 20)})
    record = ArticleRecord(1, 1, "a", "en.0", "en", 0, b"", False, "", "", "", None, NO_SKETCH, terms)

    assert keys.index_keys(record) == [keys.term_hash(f"term{n}") for n in range(8)]
    assert keys.index_keys(replace(record, minor_terms=lead)) == [
        keys.term_hash(f"term{n}") for n in range(4, 12)
    ]
    assert keys.index_keys(replace(record, terms=())) == []


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
