"""First publisher and edges of a text's lineage."""

from __future__ import annotations

from itertools import permutations

from aggregator.domain import ArticleRecord
from aggregator.provenance.lineage import Lineage, trace
from tests.provenance.records import record
from tests.support.factories import edited, story

TEXT = story(1, 20)
EDITED = edited(TEXT, 2, 25)


def edges(lineage: Lineage) -> dict[str, str | None]:
    """Id of each article -> id of the one it repeats."""
    ids = [step.record.id for step in lineage.steps]
    return {ids[i]: None if s.parent is None else ids[s.parent] for i, s in enumerate(lineage.steps)}


def test_a_copy_of_a_copy_is_linked_to_the_copy_whatever_arrives_first() -> None:
    """Publication time orders, wording chooses the parent, arrival does not matter."""
    for arrivals in permutations((2_000.0, 3_000.0, 4_000.0)):
        lineage = trace(
            [
                record("original", TEXT, published_min=0, arrived_min=arrivals[0]),
                record("copy", EDITED, published_min=30, arrived_min=arrivals[1]),
                record("second copy", edited(EDITED, 3, 3), published_min=90, arrived_min=arrivals[2]),
            ]
        )

        assert edges(lineage) == {"original": None, "copy": "original", "second copy": "copy"}
        assert [step.lag_ms for step in lineage.steps] == [0, 30 * 60_000, 90 * 60_000]
        assert lineage.is_first_certain


def test_among_equal_texts_the_earliest_is_the_model() -> None:
    """Nothing distinguishes two equal texts: the first publisher is the simplest explanation."""
    lineage = trace([record(id_, TEXT, published_min=minute) for minute, id_ in enumerate("abcd")])

    assert edges(lineage) == {"a": None, "b": "a", "c": "a", "d": "a"}


def test_no_article_repeats_one_of_the_same_time_or_later() -> None:
    """Also where many share a minute."""
    records = [
        record(f"{minute}-{n}", edited(TEXT, 7 * minute + n, 10), published_min=minute, arrived_min=9 - n)
        for minute in range(3)
        for n in range(3)
    ]
    steps = trace(records).steps

    for step in steps:
        if step.parent is not None:
            assert steps[step.parent].publication.at_ms < step.publication.at_ms
    assert [step.parent is None for step in steps] == [True] * 3 + [False] * 6


def test_the_first_publisher_is_uncertain_without_distinct_known_times() -> None:
    """An equal time, or an arrival instead of a publication time; not a repetition by the same outlet."""

    def certain(*records: ArticleRecord) -> bool:
        return trace(records).is_first_certain

    first = record("a", TEXT, published_min=0, arrived_min=9)
    assert certain(first)
    assert certain(first, record("b", TEXT, published_min=1))
    assert certain(first, record("c", TEXT, published_min=0, source="a"))
    assert not certain(first, record("b", TEXT, published_min=0))
    assert not certain(first, record("b", TEXT, arrived_min=30))


def test_articles_without_a_sketch_repeat_the_first() -> None:
    """A title alone has too few shingles to compare."""
    assert edges(trace([record(i, "", title=i * 3, published_min=n) for n, i in enumerate("ab")])) == {
        "a": None,
        "b": "a",
    }
