"""Curves and advice on a site's own labels."""

from pathlib import Path

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Analysis, Article
from aggregator.errors import InvalidInput
from aggregator.offline.evaluation import calibration
from aggregator.offline.evaluation.calibration import (
    as_json,
    build_curve,
    draw_curves,
    duplicate_curves,
    event_curves,
    threshold_advice,
)
from tests.support.factories import edited, story

ANALYSER = Analyzer({"xx": HashedModel()})


def labelled(stories: int = 8, copies: int = 3) -> tuple[list[Analysis], list[str]]:
    """Stories with lightly edited copies."""
    articles = [
        Article(id=f"{s}-{c}", text=edited(story(s), c), lang="en")
        for s in range(stories)
        for c in range(copies)
    ]
    analysed = [one for one in ANALYSER.analyze_many(articles) if isinstance(one, Analysis)]
    return analysed, [article.id.split("-")[0] for article in articles]


def test_curve_counts_at_each_threshold() -> None:
    """Two of three called from .5 on are right, of four wanted."""
    found = build_curve("overlap", [(0.9, True), (0.5, True), (0.5, False), (0.1, True)], relevant_count=4)
    at = {point.threshold: point for point in found.points}

    assert (at[0.5].precision, at[0.5].recall) == (2 / 3, 0.5)
    assert (at[0.9].precision, at[0.9].recall) == (1.0, 0.25)
    assert at[0.5].f1 == pytest.approx(4 / 7)
    assert found.high_precision_point() == at[0.55]


def test_distance_is_nearer_when_lower() -> None:
    """Up to a threshold, the threshold itself included."""
    found = build_curve("distance", [(3.0, True), (7.0, False)], relevant_count=1)

    assert [found.points[bits].precision for bits in (2, 3, 6, 7)] == [1.0, 1.0, 1.0, 0.5]
    assert found.best_f1_point.threshold == 3


def test_copies_are_told_apart() -> None:
    """Light edits: each score alone has a threshold that makes no mistake."""
    for one in duplicate_curves(*labelled()):
        assert one.best_f1_point.f1 == 1.0, one
    assert {one.score for one in event_curves(*labelled())} == {"distance", "overlap", "similarity"}


def test_advice_names_settings_and_says_when_there_is_none() -> None:
    """One line per score."""
    analysed, labels = labelled()
    assert "min_containment" in threshold_advice(duplicate_curves(analysed, labels))
    hopeless = build_curve("overlap", [(0.9, False)], relevant_count=1)
    assert "no threshold has P 0.99" in threshold_advice([hopeless])
    assert as_json([hopeless])[0]["precise_at"] is None


def test_too_many_articles(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs are compared, so there is an end to it."""
    monkeypatch.setattr(calibration, "MAX_ARTICLES", 5)
    with pytest.raises(InvalidInput, match="at most 5"):
        duplicate_curves(*labelled())
    with pytest.raises(InvalidInput, match="at most 5"):
        event_curves(*labelled())


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("deep/a.svg", b"<?xml")])
def test_draw(name: str, magic: bytes, tmp_path: Path) -> None:
    """PNG or SVG by the name of the file; other names are refused."""
    pytest.importorskip("matplotlib")
    draw_curves(duplicate_curves(*labelled(3, 2)), tmp_path / name)

    assert (tmp_path / name).read_bytes().startswith(magic)
    with pytest.raises(InvalidInput, match="must end in"):
        draw_curves([], tmp_path / "a.gif")
