"""The newest publications in packed arrays."""

from __future__ import annotations

from dataclasses import replace

from aggregator.domain import Problem, StreamItem
from aggregator.provenance.window import PublicationWindow
from tests.provenance.items import MINUTE_MS, deletion, item, number, report_on
from tests.support.factories import START_MS


def sources_of(window: PublicationWindow) -> list[str]:
    """Outlets of the current articles, by group and time."""
    found = window.publications()
    return [found.outlets[n] for n in found.outlet]


def test_publications_are_grouped_and_in_order_of_time() -> None:
    """Arrival order does not matter; an article without a time has that of its arrival."""
    window = PublicationWindow()
    for entry in (item(5, "B", minute=3), item(6, "A", of=5, minute=1), item(7, "C", of=5), item(8, "D")):
        window.add(entry)
    found = window.publications()

    assert sources_of(window) == ["A", "B", "C", "D"]
    assert found.group.tolist() == [number(5)] * 3 + [number(8)]
    assert found.at_ms.tolist() == [START_MS + n * MINUTE_MS for n in (1, 3, 7, 8)]
    assert found.is_dated.tolist() == [True, True, False, False]


def test_a_headline_with_news_is_no_copy() -> None:
    """A kept duplicate of which only the headline is known; one with a text still repeats it."""
    window, bare = PublicationWindow(), Problem.empty
    window.add(item(5, "A"))
    for n, keep, problems in ((6, True, bare), (7, False, bare), (8, True, 0)):
        window.add(replace(item(n, "B", of=5), keep=keep, problems=problems))

    assert window.publications().group.tolist() == [number(5)] * 3 + [number(6)]


def test_the_newest_version_counts_and_a_deleted_article_does_not() -> None:
    """An update may change source and group; the time of arrival stays that of the first version."""
    window = PublicationWindow()
    for entry in (item(1, "A"), item(2, "B"), item(3, "A2", version_of=1), deletion(4, of=2)):
        window.add(entry)

    assert sources_of(window) == ["A2"]
    assert window.publications().at_ms.tolist() == [START_MS + MINUTE_MS]


def test_an_entry_whose_record_is_gone_is_skipped() -> None:
    """Its source is unknown; a newer version of the article follows in the stream, or its deletion."""
    window = PublicationWindow()
    window.add(StreamItem(number(1), number(1), "a1", "new", START_MS))

    assert len(window) == 0 and window.since_ms is None


def test_the_oldest_entries_are_dropped() -> None:
    """Beyond the limit, with the names and deletions that only they used."""
    window = PublicationWindow(max_articles=20)
    window.add(deletion(0, of=0))
    for n in range(23):
        window.add(item(n, f"S{n}"))

    assert len(window) == 20
    assert window.since_ms == START_MS + 3 * MINUTE_MS
    assert window.publications().outlets == ("", *(f"S{n}" for n in range(3, 23)))
    assert sources_of(window) == [f"S{n}" for n in range(3, 23)]
    assert not window._deleted


def test_entries_before_a_time_are_dropped() -> None:
    """Those of the time itself stay."""
    window = PublicationWindow()
    for n in range(5):
        window.add(item(n, f"S{n}"))
    window.drop_before(START_MS + 3 * MINUTE_MS)

    assert sources_of(window) == ["S3", "S4"]


def test_names_beyond_the_limit_count_as_unnamed() -> None:
    """A crawler that sends another name with each article cannot fill the memory."""
    window = PublicationWindow(max_outlets=3)
    for n in range(5):
        window.add(item(n, f"S{n}"))

    assert sources_of(window) == ["S0", "S1", "", "", ""]


def test_an_empty_window() -> None:
    """Nothing stored yet."""
    assert len(PublicationWindow().publications()) == 0


def test_a_claimed_date_makes_no_original() -> None:
    """The copy of a source without a record of such delays; spellings of one outlet are one."""
    first, copy = item(0, "Gazette", minute=-1), item(5, "Evil", of=0, minute=-20_000)
    forged = replace(copy, problems=Problem.late)
    found = {source.name: source for source in report_on(first, forged, item(9, "GAZETTE", minute=8)).sources}

    assert found.keys() == {"Gazette", "Evil"} and found["Gazette"].articles == 2
    assert (found["Gazette"].originals, found["Evil"].copies, found["Evil"].undated) == (2, 1, 1)
