"""Lineage of a text: first publisher, edges, what a later article changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import LATE_MS, ArticleRecord
from aggregator.provenance.lineage import (
    MAX_PASSAGE_CHARS,
    Lineage,
    Publication,
    changes_between,
    describe,
    trace,
)
from aggregator.time_units import DAY_MS
from tests.provenance.records import record
from tests.support.factories import START_MS, edited, story

TEXT = story(1, 20)
EDITED = edited(TEXT, 2, 25)


def traced(records: Iterable[ArticleRecord], **believed_ms: float) -> Lineage:
    """The lineage of records, of which each source is believed so far; ``LATE_MS`` where it is not given."""
    return trace([Publication.of(r, believed_ms.get(r.source, LATE_MS)) for r in records])


def edges(lineage: Lineage) -> dict[str, str | None]:
    """Id of each article -> id of the one it repeats."""
    ids = [step.record.id for step in lineage.steps]
    return {ids[i]: None if s.parent is None else ids[s.parent] for i, s in enumerate(lineage.steps)}


def test_a_copy_of_a_copy_is_linked_to_the_copy_whatever_arrives_first() -> None:
    """Publication time orders, wording chooses the parent, arrival does not matter."""
    for arrivals in permutations((100.0, 101.0, 102.0)):
        lineage = traced(
            [
                record("original", TEXT, published_min=0, arrived_min=arrivals[0]),
                record("copy", EDITED, published_min=30, arrived_min=arrivals[1]),
                record("second copy", edited(EDITED, 3, 3), published_min=90, arrived_min=arrivals[2]),
            ]
        )

        assert edges(lineage) == {"original": None, "copy": "original", "second copy": "copy"}
        assert [step.lag_ms for step in lineage.steps] == [0, 30 * 60_000, 90 * 60_000]
        assert lineage.is_first_certain == (min(arrivals) == arrivals[0])


def test_among_equal_texts_the_earliest_is_the_model() -> None:
    """Nothing distinguishes two equal texts: the first publisher is the simplest explanation."""
    lineage = traced([record(id_, TEXT, published_min=minute) for minute, id_ in enumerate("abcd")])

    assert edges(lineage) == {"a": None, "b": "a", "c": "a", "d": "a"}


def test_no_article_repeats_one_of_the_same_time_or_later() -> None:
    """Also where many share a minute."""
    records = [
        record(f"{minute}-{n}", edited(TEXT, 7 * minute + n, 10), published_min=minute, arrived_min=9 - n)
        for minute in range(3)
        for n in range(3)
    ]
    steps = traced(records).steps

    for step in steps:
        if step.parent is not None:
            assert steps[step.parent].publication.at_ms < step.publication.at_ms
    assert [step.parent is None for step in steps] == [True] * 3 + [False] * 6


def test_the_first_publisher_is_uncertain_without_distinct_known_times() -> None:
    """An equal time, or an arrival instead of a publication time; not a repetition by the same outlet."""

    def certain(*records: ArticleRecord) -> bool:
        return traced(records).is_first_certain

    first = record("a", TEXT, published_min=0, arrived_min=9)
    assert certain(first)
    assert certain(first, record("b", TEXT, published_min=1))
    assert certain(first, record("c", TEXT, published_min=0, source="a"))
    assert not certain(first, record("b", TEXT, published_min=0))
    assert not certain(first, record("b", TEXT, arrived_min=130))


def test_articles_without_a_sketch_repeat_the_first() -> None:
    """A title alone has too few shingles to compare."""
    assert edges(traced([record(i, "", title=i * 3, published_min=n) for n, i in enumerate("ab")])) == {
        "a": None,
        "b": "a",
    }


BEFORE = (
    "The ferry to Estmark ran aground on Friday with 120 passengers and 14 crew on board. "
    "All were brought ashore by noon, the coast guard said. The captain, who has sailed the route for "
    "eleven years, said that a buoy was missing. An inquiry begins on Monday."
)
AFTER = (
    "The ferry to Estmark ran aground on Friday with 135 passengers and 14 crew on board. "
    "All were brought ashore by noon, the coast guard said. Two of them were treated for cold and shock."
)


def test_stored_texts_show_what_was_cut_and_added() -> None:
    """Passages, words and figures, in both directions."""
    a, b = record("a", BEFORE, title="Ferry runs aground"), record("b", AFTER, title="Ferry  Runs Aground")
    changes = changes_between(a, b, (BEFORE, AFTER))
    texts = changes.texts

    assert texts is not None
    assert not changes.same_text and not changes.headline_changed
    assert texts.cut_figures == ("120",) and texts.added_figures == ("135",)
    assert any("eleven years" in passage for passage in texts.cut)
    assert any("treated for cold" in passage for passage in texts.added)
    assert 22 <= texts.cut_words <= 30 and 8 <= texts.added_words <= 12
    assert 0.4 < changes.kept < 0.6 and 0.2 < changes.own < 0.4
    assert describe(changes).startswith("keeps 4") or describe(changes).startswith("keeps 5")
    assert "figures: 1 left out, 1 new" in describe(changes)


@pytest.mark.parametrize("sentences", [30, 60, 200])
@pytest.mark.parametrize("share", [0.3, 0.45, 0.6])
@pytest.mark.parametrize("has_texts", [False, True])
def test_a_text_that_ends_early_is_a_shortened_copy(sentences: int, share: float, has_texts: bool) -> None:
    """Nothing of it is its own, neither by samples of both texts nor if it ends within a word."""
    text = story(sentences, sentences)
    cut = text[: int(len(text) * share)]
    changes = changes_between(record("a", text), record("b", cut), (text, cut) if has_texts else None)

    said = re.match(r"shortened copy with (?:about )?(\d+)% of the original$", describe(changes))
    assert said and abs(int(said[1]) / 100 - share) < (0.03 if has_texts else 0.12)


def test_a_copy_with_passages_of_its_own_is_not_only_shortened() -> None:
    """It says how much is its own."""
    own = story(5, 30)[:800] + " " + story(9, 4)
    changes = changes_between(record("a", story(5, 30)), record("b", own), (story(5, 30), own))

    assert re.match(r"keeps \d+% of the earlier text; \d+% is its own", describe(changes))


def test_without_texts_the_changes_are_estimated() -> None:
    """Sketches give the shares, hashes the number of figures; no passages."""
    text = story(4, 30)
    a, b = record("a", text + " 17"), record("b", text[: len(text) // 2], title="Other words")
    changes = changes_between(a, b)

    assert changes.texts is None
    assert abs(changes.kept - 0.5) < 0.1 and changes.own < 0.1
    assert (changes.figures_cut, changes.figures_added) == (1, 0)
    assert changes.headline_changed
    assert describe(changes).startswith("shortened copy with about ")


def test_a_shorter_copy_under_another_headline_has_nothing_of_its_own() -> None:
    """Its headline is no text of its own; an estimate of what is its own is not said."""
    words = story(6, 9).split()[:83]
    headline = "Harbour pilots call off their strike after a night of talks"
    a = record("a", " ".join(words), title=" ".join(words[:8]))
    cut = changes_between(a, record("b", " ".join(words[:70]), title=headline))
    other = changes_between(a, record("c", " ".join((*words[:50], story(7, 4))), title=headline))

    assert describe(cut).startswith("shortened copy with about 8") and cut.own < 0.05
    assert describe(other).startswith("keeps about ") and "own" not in describe(other) and other.own > 0.3


def test_equal_texts() -> None:
    """Word for word; under another headline that is known only from the texts."""
    a, b = record("a", BEFORE, title="One"), record("b", BEFORE, title="Two")
    changes = changes_between(a, b, (BEFORE, BEFORE.replace(" ", "  ")))

    assert changes.same_text and changes.kept == 1 and changes.own == 0
    assert describe(changes) == "the same text, another headline"
    assert not changes_between(a, b).same_text
    assert describe(changes_between(a, a)) == "the same text, word for word"


@pytest.mark.parametrize(("earlier", "later"), [("", ""), ("", BEFORE), (BEFORE, "")])
def test_of_headlines_alone_no_text_is_said_to_be_repeated(earlier: str, later: str) -> None:
    """Nobody has seen the texts: neither the same, nor kept, nor own."""
    a, b = record("a", earlier, title="Ferry runs aground"), record("b", later, title="Ferry runs  aground")
    other = record("c", later, title="Ferry aground")

    assert describe(changes_between(a, b, ("Ferry runs aground",) * 2)) == "the same headline"
    assert describe(changes_between(a, other)) == "a similar headline"
    assert not changes_between(a, b).same_text and not changes_between(a, b).has_texts


def test_long_passages_are_shortened() -> None:
    """A page shows a few lines, not the article."""
    long = story(5, 100)
    changes = changes_between(record("a", BEFORE), record("b", BEFORE + long), (BEFORE, BEFORE + " " + long))

    assert changes.texts is not None
    assert max(map(len, changes.texts.added)) == MAX_PASSAGE_CHARS
    assert changes.texts.added[0].endswith("…")


def test_scattered_edits_keep_most_of_the_wording() -> None:
    """Ten of 300 words replaced."""
    text = story(6, 30)
    changes = changes_between(record("a", text), record("b", edited(text, 1, 10)))

    assert changes.kept > 0.8
    assert 0 < changes.own < 0.2


@given(st.integers(60, 60 * 24 * 60), st.integers(0, 239), st.sampled_from([240, 3 * 60 * 24, 90 * 60 * 24]))
def test_a_copy_with_a_forged_date_is_never_a_certain_first(forged: int, own: int, believed: int) -> None:
    """Whatever its source is known for; a claim stays behind what arrived before it."""
    victim = record("victim", TEXT, published_min=-own, arrived_min=0)
    copy = record("copy", TEXT, published_min=5 - forged, arrived_min=5)
    lineage = traced([victim, copy], victim=believed * 60_000, copy=believed * 60_000)

    assert lineage.first.source == "victim" or not lineage.is_first_certain
    assert forged <= believed or edges(lineage) == {"victim": None, "copy": "victim"}


def test_a_date_that_its_event_believes_is_no_arrival() -> None:
    """As of what an editor added; the date of a day is a day's, and what is undated arrived."""
    dated, undated = (record("a", TEXT, published_min=at, arrived_min=600) for at in (1, None))
    day = replace(dated, published_at_ms=START_MS - START_MS % DAY_MS - 2 * DAY_MS)
    known = [Publication.of(each) for each in (dated, day, undated)]
    assert [p.at_ms == p.arrived_ms for p in known] == [True] * 3
    assert [p.at(p.record.publication_ms).basis for p in known] == ["published", "day", "arrived"]
    assert known[0].at(START_MS).basis == "claimed"
    assert Publication.of(dated, 1e9).at(known[0].arrived_ms).basis == "claimed"


@given(st.integers(1, 60 * 24 * 20), st.booleans())
def test_a_late_delivery_keeps_its_order(delay: int, declared: bool) -> None:
    """Of a source that is known for such delays, or whose past was declared: then it is certain."""
    original = record("original", TEXT, published_min=0, arrived_min=delay)
    copy = record("copy", TEXT, published_min=0.5, arrived_min=0.75)
    believed_ms = 0 if declared else delay * 60_000
    records = [copy, replace(original, backfill=declared)]
    lineage = traced(records, original=believed_ms, copy=60_000)

    assert edges(lineage) == {"original": None, "copy": "original"}
    assert lineage.is_first_certain is declared
