"""Threshold curves and advice from labeled articles."""

from pathlib import Path

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Analysis, Article
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation import calibration
from aggregator_lab.evaluation.calibration import (
    as_json,
    build_curve,
    duplicate_curves,
    threshold_advice,
)
from aggregator_lab.evaluation.plots import draw_curves
from tests.support.factories import edited, story

ANALYZER = Analyzer({"xx": HashedModel()})


def labeled(stories: int = 8, copies: int = 3) -> tuple[list[Analysis], list[str]]:
    """Stories with lightly edited copies."""
    articles = [
        Article(id=f"{s}-{c}", text=edited(story(s), c), lang="en")
        for s in range(stories)
        for c in range(copies)
    ]
    analyses = [result for result in ANALYZER.analyze_many(articles) if isinstance(result, Analysis)]
    return analyses, [article.id.split("-")[0] for article in articles]


def test_curve_counts_at_each_threshold() -> None:
    """Two of the three candidates from 0.5 on are correct, of four relevant ones."""
    curve = build_curve("overlap", [(0.9, True), (0.5, True), (0.5, False), (0.1, True)], relevant_count=4)
    point_at = {point.threshold: point for point in curve.points}

    assert (point_at[0.5].precision, point_at[0.5].recall) == (2 / 3, 0.5)
    assert (point_at[0.9].precision, point_at[0.9].recall) == (1.0, 0.25)
    assert point_at[0.5].f1 == pytest.approx(4 / 7)
    assert curve.high_precision_point() == point_at[0.55]


def test_distances_are_called_up_to_the_threshold() -> None:
    """A lower distance is nearer; the threshold itself is included."""
    curve = build_curve("distance", [(3.0, True), (7.0, False)], relevant_count=1)

    assert [curve.points[bits].precision for bits in (2, 3, 6, 7)] == [1.0, 1.0, 1.0, 0.5]
    assert curve.best_f1_point.threshold == 3


def test_each_score_separates_light_edits() -> None:
    """Each score alone has a threshold without an error."""
    for curve in duplicate_curves(*labeled()):
        assert curve.best_f1_point.f1 == 1.0, curve


def test_advice_names_the_setting_or_that_no_threshold_is_precise() -> None:
    """One line per score."""
    analyses, labels = labeled()
    advice = threshold_advice(duplicate_curves(analyses, labels))
    assert "min_containment" in advice and "not the rule of the service" in advice
    hopeless = build_curve("overlap", [(0.9, False)], relevant_count=1)
    assert "no threshold has P 0.99" in threshold_advice([hopeless])
    assert as_json([hopeless])[0]["precise_at"] is None


def test_too_many_articles_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs are compared, so the number of articles is limited."""
    monkeypatch.setattr(calibration, "MAX_ARTICLES", 5)
    with pytest.raises(InvalidInput, match="at most 5"):
        duplicate_curves(*labeled())


@pytest.mark.integration
@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("deep/a.svg", b"<?xml")])
def test_plots_are_drawn_as_png_or_svg(name: str, magic: bytes, tmp_path: Path) -> None:
    """PNG or SVG by the suffix of the file; other names are refused."""
    pytest.importorskip("matplotlib")
    for path in (tmp_path / name, f"{tmp_path}/text-{name.replace('/', '-')}"):
        draw_curves(duplicate_curves(*labeled(3, 2)), path)

        assert Path(path).read_bytes().startswith(magic)
    with pytest.raises(InvalidInput, match="must end in"):
        draw_curves([], tmp_path / "a.gif")
