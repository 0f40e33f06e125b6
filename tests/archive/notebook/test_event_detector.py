"""Events of a table agree with ``aggregator replay``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas
import pytest

from aggregator.errors import InvalidInput
from aggregator.events.detection.model import BurstRule
from aggregator.runtime import demo
from aggregator_archive.notebook import EventDetector
from aggregator_archive.notebook.event_detector import EVENT_COLUMNS
from aggregator_archive.replay import replay

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
ARTICLES = [demo.article_body(row, NOON) for row in demo.load_rows()]


def test_a_shuffled_frame_gives_the_events_of_the_replay() -> None:
    """Rows are ordered by time, which may be a column of datetimes."""
    (event,) = replay(sorted(ARTICLES, key=lambda row: row["published_at"]), BurstRule())
    frame = pandas.DataFrame(ARTICLES)
    frame["published_at"] = pandas.to_datetime(frame["published_at"])

    columns = EventDetector().run(frame.sample(frac=1.0, random_state=1))

    assert tuple(columns) == EVENT_COLUMNS
    assert (columns["size"], columns["detected_at"]) == ([event["size"]], [event["detected_at"]])
    assert set(columns["items"][0]) == set(event["items"])


def test_options_change_the_rule() -> None:
    """More items than the story has, a window shorter than it, other column names."""
    renamed = [{"headline": row["title"], "published_at": row["published_at"]} for row in ARTICLES]

    assert len(EventDetector(columns={"title": "headline"}).run(renamed)["id"]) == 1
    assert EventDetector(items=40).run(ARTICLES)["id"] == []
    assert EventDetector(window=timedelta(minutes=10)).run(ARTICLES)["id"] == []


def test_a_table_without_dates_is_refused() -> None:
    """Nothing could be replayed."""
    with pytest.raises(InvalidInput, match=r"columns are title; .* columns=\{'published_at': NAME\}"):
        EventDetector().run([{"title": "Ferry late"}])
    with pytest.raises(InvalidInput, match="No article has a `published_at` that can be read"):
        EventDetector().run([{"title": "Ferry late", "published_at": "soon"}])


def test_a_table_without_headlines_is_refused() -> None:
    """No row could be part of an event, however many texts there are."""
    with pytest.raises(InvalidInput, match=r"no row has title; the columns are schlagzeile, .*'title': NAME"):
        EventDetector().run([{"schlagzeile": "Ferry late", "published_at": NOON}])


@pytest.mark.parametrize(
    "as_column",
    [
        list,
        lambda times: [at.strftime("%a, %d %b %Y %H:%M:%S GMT") for at in times],
        lambda times: np.array([at.replace(tzinfo=None) for at in times], "datetime64[ns]"),
    ],
    ids=["datetimes", "RFC 822", "numpy"],
)
def test_dates_are_read_as_for_duplicates(as_column: Callable[[list[datetime]], Any]) -> None:
    """One reader for both."""
    times = [datetime.fromisoformat(row["published_at"]) for row in ARTICLES]
    columns = {"title": [row["title"] for row in ARTICLES], "published_at": as_column(times)}

    assert len(EventDetector().run(columns)["id"]) == 1


@pytest.mark.parametrize("window", [4, "4h", timedelta()])
def test_a_window_is_a_span(window: Any) -> None:
    """Refused with an example, by the argument's name."""
    with pytest.raises(InvalidInput, match=r"^window: .* is not a span above 0 such as timedelta"):
        EventDetector(window=window)
