"""The rule of Hu & You on chosen fingerprints."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.domain import Article
from aggregator.errors import NoText
from aggregator.events.detection.model import BurstRule
from aggregator_lab.evaluation.literal_rule import literal_events

RULE = BurstRule()


def row(minute: int, bits: int | None, space: str = "en.1") -> dict[str, Any]:
    """A row whose title says what ``CHOSEN`` answers."""
    title = f"{space} {bits}" if bits is not None else "blank"
    return {"id": f"{minute}", "title": title, "published_at": f"2031-03-{1 + minute // 1440:02}T"
            f"{minute // 60 % 24:02}:{minute % 60:02}:00Z"}  # fmt: skip


def analyze(article: Article) -> Any:
    """The fingerprint in the title."""
    if article.title == "blank":
        raise NoText("no words")
    space, bits = article.title.split()
    return SimpleNamespace(space=space, fingerprint=int(bits))


CHOSEN = cast(Analyzer, SimpleNamespace(analyze=analyze))


def test_more_than_15_articles_within_7_bits_of_the_last_make_an_event() -> None:
    """What comes later joins if it is near that one; what is far, of another space or blank does not."""
    rows = [row(i, 1 << i % 3) for i in range(15)] + [row(20, (1 << 64) - 1), row(21, 0)]
    rows += [row(22, 0b1111111), row(23, 0b11111111), row(24, 0, "ru.1"), row(25, None)]

    assert literal_events(rows[:16], RULE, CHOSEN) == []
    (event,) = literal_events(rows, RULE, CHOSEN)
    assert (event.id, event.size) == ("21", 17)
    assert event.items[-2:] == ["21", "22"]


@pytest.mark.parametrize(("minutes", "expected"), [(240, 1), (241, 0)])
def test_the_window_has_four_hours(minutes: int, expected: int) -> None:
    """An article of exactly that age counts."""
    rows = [row(i // 15, 5) for i in range(15)] + [row(minutes, 5)]

    assert len(literal_events(rows, RULE, CHOSEN)) == expected


def test_an_event_ends_with_its_last_article_in_the_window() -> None:
    """Then the same fingerprints are another event."""
    rows = [row(i, 9) for i in range(16)] + [row(400 + i, 9) for i in range(16)]

    assert [event.detected_at_ms // 60_000 % 1440 for event in literal_events(rows, RULE, CHOSEN)] == [
        15,
        415,
    ]
