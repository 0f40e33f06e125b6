"""Counts of outcomes and the log lines about articles without a verdict."""

from __future__ import annotations

import logging

import pytest

from aggregator_client.outcomes import WARNING_INTERVAL_S, Outcomes


class Clock:
    """A clock that the test moves."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def messages(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """Level and text of all log lines."""
    return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_a_warning_at_most_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """With the totals so far, the reasons and the last error."""
    clock = Clock()
    outcomes = Outcomes("items", clock=clock)
    for _ in range(97):
        outcomes.add_checked("new")
    for number in range(3):
        outcomes.add_unchecked("timeout", f"No answer to {number}.")
    assert messages(caplog) == [
        (logging.WARNING, "1 of 98 items passed unchecked: timeout 1 (last error: No answer to 0)")
    ]
    caplog.clear()

    clock.now_s = WARNING_INTERVAL_S
    outcomes.add_unchecked("connection_refused", "Connection refused.")

    assert messages(caplog) == [
        (
            logging.WARNING,
            "4 of 101 items passed unchecked: timeout 3, connection refused 1 "
            "(last error: Connection refused)",
        )
    ]


@pytest.mark.parametrize(("unchecked", "level"), [(1, logging.WARNING), (2, logging.ERROR)])
def test_more_than_one_percent_is_an_error_at_the_end(
    unchecked: int, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    """1 of 100 is a warning, 2 of 100 are an error; logged once."""
    outcomes = Outcomes()
    for _ in range(100 - unchecked):
        outcomes.add_checked("related")
    for _ in range(unchecked):
        outcomes.add_unchecked("timeout", "No answer.")
    caplog.clear()
    outcomes.close()
    outcomes.close()

    assert messages(caplog) == [
        (
            level,
            f"at the end: {unchecked} of 100 articles passed unchecked: timeout {unchecked} "
            "(last error: No answer)",
        )
    ]


@pytest.mark.parametrize("effect", ["passed unchecked", ""])
def test_rejected_articles_are_told_apart(effect: str, caplog: pytest.LogCaptureFixture) -> None:
    """Also when the caller gets an exception for each article without a verdict."""
    outcomes = Outcomes("items", effect)
    outcomes.add_rejected("text: empty.")
    outcomes.add_unchecked("tls", "TLS failed.")

    rejected = "items rejected by the service (last problem: text: empty)"
    unchecked = "1 of 2 items passed unchecked: tls 1 (last error: TLS failed); " if effect else ""
    assert outcomes.summary() == f"{unchecked}1 of 2 {rejected}"
    assert messages(caplog) == [(logging.WARNING, f"1 of 1 {rejected}")]


def test_nothing_is_logged_when_all_articles_were_checked(caplog: pytest.LogCaptureFixture) -> None:
    """Nor when the caller gets an exception for each."""
    checked, raising = Outcomes(), Outcomes(effect="")
    checked.add_checked("duplicate")
    raising.add_unchecked("timeout", "No answer.")
    checked.close()
    raising.close()

    assert messages(caplog) == []
    assert checked.counts == {"checked": 1, "duplicate": 1}
    assert raising.counts == {"unchecked": 1, "unchecked/timeout": 1}


def test_each_count_is_reported() -> None:
    """For the stats of a crawl."""
    names: list[str] = []
    outcomes = Outcomes(on_count=names.append)
    outcomes.add_checked("new", keep=True)
    outcomes.add_checked("duplicate")
    outcomes.add_checked("duplicate", keep=True)
    outcomes.add_unchecked("tls", "TLS failed.")

    checked = ["checked", "new", "checked", "duplicate", "checked", "duplicate", "duplicate/kept"]
    assert names == [*checked, "unchecked", "unchecked/tls"]


def test_articles_sent_without_their_date_are_reported_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """Once, also when the caller gets an exception for each article without a verdict."""
    outcomes = Outcomes("items", effect="")
    for _ in range(12):
        outcomes.add_unread_date({"published_at": "13.10.", "source": "Post"})
        outcomes.add_checked("new")
    outcomes.close()
    outcomes.close()

    assert messages(caplog) == [
        (
            logging.WARNING,
            "12 items had a date that could not be read, e.g. '13.10.' of Post; they were sent without one "
            "(use RFC 3339 such as 2026-11-20T08:00:00Z; a local time needs a declared time zone)",
        )
    ]
    assert outcomes.counts["unread_date"] == 12


@pytest.mark.parametrize(
    ("article", "named"),
    [({}, ""), ({"title": "Ferry", "source": ""}, " of Ferry"), ({"title": "Ferry", "id": "a"}, " of a")],
)
def test_an_unread_date_is_named_with_what_its_article_has(
    article: dict[str, str], named: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The address, the outlet, the id or the headline; without any of them the date alone."""
    outcomes = Outcomes()
    outcomes.add_unread_date({"published_at": "2026-11-28 10:00", **article})
    outcomes.close()

    assert f"e.g. '2026-11-28 10:00'{named};" in caplog.text


def test_problems_of_the_extraction_are_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """As shares of the checked articles, the most frequent first."""
    caplog.set_level(logging.INFO)
    outcomes = Outcomes("items")
    for problems in (["cut"], ["undated", "cut"], [], []):
        outcomes.add_checked("new", problems)
    outcomes.close()

    assert messages(caplog) == [(logging.INFO, "problems of 4 items: cut 50%, undated 25%")]
    assert outcomes.counts["problem/cut"] == 2
