"""Cross-encoder: which pairs it sees and how they are ranked; with the extra ``minilm``, that it learns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aggregator_lab.evaluation import cross_encoder, transformer_scorers
from aggregator_lab.evaluation.scored_pairs import ScoredPairs
from aggregator_lab.extractors import minilm
from tests.lab.evaluation.test_encoder_training import ARTICLES, LABELS, LANGS


def test_hard_negatives_are_the_nearest_articles_of_other_labels() -> None:
    vectors = np.array([[1.0, 0.0], [0.99, 0.1], [0.9, 0.4], [0.0, 1.0]], np.float32)

    assert cross_encoder.hard_negatives(vectors, ["x", "x", "y", "z"]).tolist() == [
        [2, 3],
        [2, 3],
        [1, 0],
        [2, 1],
    ]


def test_pairs_nearest_to_the_threshold_are_uncertain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_encoder, "RERANKED_PAIRS", 2)

    assert cross_encoder.uncertain(np.array([0.1, 0.75, 0.9, 0.65]), 0.7).tolist() == [1, 3]


def test_the_cross_encoder_decides_uncertain_pairs_at_every_threshold() -> None:
    """The certain pairs keep their scores."""
    rows = np.arange(3)
    scored = ScoredPairs(rows, rows + 1, np.array([0.95, 0.72, 0.66]))

    after = cross_encoder.rerank(scored, np.array([1, 2]), np.array([0.25, 0.5]))

    assert after.score.tolist() == [0.95, 0.0, 1.0]
    assert scored.score.tolist() == [0.95, 0.72, 0.66]


@pytest.mark.parametrize(
    ("same", "threshold"), [([True, True, False], 0.8), ([True, False, True], 0.3), ([False] * 3, 1.0)]
)
def test_the_threshold_gives_the_highest_f1(same: list[bool], threshold: float) -> None:
    assert cross_encoder.best_threshold(np.array([0.9, 0.8, 0.3]), np.array(same)) == threshold


if minilm.is_installed():  # PyTorch is too large for the packages that tests install.

    def test_a_trained_cross_encoder_knows_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """After a few steps copies of the labels are more probable than other pairs; scores are complete."""
        monkeypatch.setattr(cross_encoder, "RERANKED_PAIRS", 4)
        articles, labels = ARTICLES[:12], LABELS[:12]
        vectors = minilm.encode(minilm.load_transformer(), [article.text for article in articles])
        trained = cross_encoder.fine_tune(articles, labels, LANGS[:12], vectors, steps=12)
        texts = [article.text for article in articles]
        copies = [(texts[at], texts[at + 1]) for at in (0, 3, 6, 9)]
        others = [(texts[at], texts[(at + 4) % 12]) for at in (0, 3, 6, 9)]

        probability = cross_encoder.probabilities(trained, [*copies, *others])
        assert probability[:4].mean() > probability[4:].mean() + 0.01

        transformer_scorers.train(articles[:6], labels[:6], tmp_path / "weights", steps=1)
        scored = transformer_scorers.reranked(articles[6:], tmp_path / "weights")
        assert len(scored.score) == 15
        assert ((scored.score >= 0) & (scored.score <= 1)).all()
