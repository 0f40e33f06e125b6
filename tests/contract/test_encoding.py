"""Domain values as response bodies."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.contract import responses
from aggregator.contract.decoding import to_unix_ms
from aggregator.contract.encoding import (
    article_out,
    article_ref,
    hamming_class,
    to_datetime_or_none,
    verdict_out,
)
from aggregator.domain import (
    NO_SKETCH,
    Answer,
    ArticleRecord,
    Match,
    Outcome,
    RelatedItem,
    VerdictName,
    article_number_at,
)
from aggregator.settings import Settings
from aggregator.time_units import to_datetime
from aggregator_client import wire
from tests.support.factories import START_MS

MATCH = Match(
    id="copy",
    number=30,
    canonical_id="original",
    canonical_first=10,
    distance=2,
    overlap=None,
    rule="hamming",
)
RECORD = ArticleRecord(
    number=article_number_at(START_MS + 5_000, 1),
    first_version=article_number_at(START_MS, 1),
    id="a",
    space="en.0000",
    lang="en",
    fingerprint=0xAB,
    text_hash=bytes(16),
    short=False,
    title="Ferry aground",
    url="https://one.example/ferry",
    source="one.example",
    published_at_ms=0,
    sketch=NO_SKETCH,
)


@pytest.mark.parametrize(
    ("distance", "verdict"),
    [(None, "new"), (0, "duplicate"), (3, "duplicate"), (4, "related"), (7, "related"), (8, "new")],
)
def test_the_class_by_distance_includes_its_threshold(distance: int | None, verdict: VerdictName) -> None:
    """At exactly 3 bits an article is a duplicate, at exactly 7 related."""
    assert hamming_class(distance, Settings()) == verdict


@given(st.integers(-8_520_336_000_000, 7_258_118_399_999))
def test_a_time_is_decoded_to_the_same_millisecond(at_ms: int) -> None:
    """From 1700 to 2199, the years that a request may name."""
    assert to_unix_ms(to_datetime(at_ms), "published_at") == at_ms


def test_the_time_zero_is_not_absent() -> None:
    """1970-01-01 is a date; None stays None."""
    assert to_datetime_or_none(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert to_datetime_or_none(None) is None


@given(st.integers(0, 2**64 - 1), st.none() | st.integers(0, 64))
def test_a_verdict_is_readable_as_the_documented_type(fingerprint: int, distance: int | None) -> None:
    """A client that checks the schema accepts any fingerprint, also one with leading zeros."""
    answer = Answer("a", Outcome("related", distance), "en.0000", fingerprint, short=False)

    out = verdict_out(answer, Settings())
    read = msgspec.json.decode(responses.encode(out), type=wire.VerdictOut)

    assert read == out
    assert int(read.fingerprint, 16) == fingerprint


def test_a_verdict_carries_match_and_related_articles() -> None:
    """An overlap that was not computed is null; a related article without a date has none."""
    item = RelatedItem("r", "Ferry refloated", "", "two.example", None, distance=6, similarity=0.5)
    answer = Answer(
        "a", Outcome("duplicate", 2, MATCH), "en.0000", 1, short=True, related=(item,), event_id="e"
    )

    out = verdict_out(answer, Settings())

    assert out.duplicate_of == wire.DuplicateOf("copy", "original", 2, None, "hamming")
    assert out.related == [wire.RelatedOut("r", "Ferry refloated", "", "two.example", None, 6, 0.5)]
    assert (out.verdict, out.hamming_class, out.event_id, out.short) == ("duplicate", "duplicate", "e", True)


def test_verdict_and_article_say_what_was_decided() -> None:
    """Each member of the outcome is in the answer, and in the stored article when it is read."""
    outcome = Outcome(
        "duplicate", 2, MATCH, updated_figures=True, reversed=True, keep_reason="fuller", adds=0.25,
        fuller=True, text_is_article=False, part_of="briefing", follows="live",
    )  # fmt: skip
    answer = Answer("a", outcome, "en.0000", 1, short=False)
    names = {field.name for field in fields(Outcome)} - {"match", "reused_id"}

    for out in (verdict_out(answer, Settings()), article_out(RECORD, outcome, None, Settings())):
        assert {name: getattr(out, name) for name in names} == {n: getattr(outcome, n) for n in names}
        assert out.duplicate_of is not None


def test_an_article_without_a_match_duplicates_nothing() -> None:
    """The member is null, not an empty object."""
    assert article_out(RECORD, Outcome("new"), None, Settings()).duplicate_of is None


def test_an_updated_article_has_two_times() -> None:
    """It arrived with its first version and was updated with the current one."""
    out = article_out(RECORD, Outcome("new"), None, Settings())

    assert out.arrived_at == to_datetime(START_MS) == article_ref(RECORD).arrived_at
    assert out.updated_at == to_datetime(START_MS + 5_000)
    assert out.published_at == to_datetime(0)
    assert out.fingerprint == "00000000000000ab"


def test_thresholds_change_only_the_class_by_fingerprint() -> None:
    """The verdict itself is the stored one."""
    out = article_out(RECORD, Outcome("new", 5), None, Settings(duplicate_bits=5))

    assert (out.verdict, out.hamming_class) == ("new", "duplicate")
    undated = article_out(replace(RECORD, published_at_ms=None), Outcome("new"), None, Settings())
    assert undated.published_at is None
