"""Fine-tuned encoders: their pairs and the re-ranking; with the extra ``minilm`` the training itself."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from aggregator.domain import Article
from aggregator_lab.evaluation import trained_encoders
from aggregator_lab.evaluation.trained_encoders import BATCH_LABELS, training_pairs
from aggregator_lab.evaluation.vectors import ScoredPairs
from aggregator_lab.extractors import minilm
from tests.support.factories import edited, story

ARTICLES = [
    Article(id=f"{group}-{copy}", title="", text=edited(story(600 + group, 20), copy, 3 * copy))
    for group in range(14)
    for copy in range(3)
]
LABELS = [article.id.partition("-")[0] for article in ARTICLES]


def test_a_batch_has_two_texts_each_of_different_labels() -> None:
    """Seeded; a text is never paired with itself, and about half are an article without noise."""
    label_of = {article.text: label for article, label in zip(ARTICLES, LABELS, strict=True)}
    texts = []
    for seed in range(20):
        pairs = training_pairs(ARTICLES, LABELS, random.Random(seed))
        assert pairs == training_pairs(ARTICLES, LABELS, random.Random(seed))
        assert len(pairs) == BATCH_LABELS
        assert all(first != second for first, second in pairs)
        unchanged = [{label_of[text] for text in pair if text in label_of} for pair in pairs]
        assert all(len(labels) <= 1 for labels in unchanged)
        found = [label for labels in unchanged for label in labels]
        assert len(set(found)) == len(found)
        texts += [text for pair in pairs for text in pair]

    assert 0.3 < sum(text in label_of for text in texts) / len(texts) < 0.5


def test_hard_negatives_are_the_nearest_articles_of_other_labels() -> None:
    """As many for each article."""
    rows = np.array([[1.0, 0.0], [0.99, 0.1], [0.9, 0.4], [0.0, 1.0]], np.float32)

    found = trained_encoders.hard_negatives(rows, ["x", "x", "y", "z"])

    assert found.tolist() == [[2, 3], [2, 3], [1, 0], [2, 1]]


def test_pairs_nearest_to_the_threshold_are_uncertain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their positions, in order."""
    monkeypatch.setattr(trained_encoders, "RERANKED_PAIRS", 2)

    assert trained_encoders.uncertain(np.array([0.1, 0.75, 0.9, 0.65]), 0.7).tolist() == [1, 3]


def test_the_cross_encoder_decides_uncertain_pairs_at_every_threshold() -> None:
    """The certain pairs keep their scores."""
    rows = np.arange(3)
    scored = ScoredPairs(rows, rows + 1, np.array([0.95, 0.72, 0.66]))

    after = trained_encoders.rerank(scored, np.array([1, 2]), np.array([0.25, 0.5]))

    assert after.score.tolist() == [0.95, 0.0, 1.0]
    assert scored.score.tolist() == [0.95, 0.72, 0.66]


@pytest.mark.parametrize(
    ("same", "threshold"), [([True, True, False], 0.8), ([True, False, True], 0.3), ([False] * 3, 1.0)]
)
def test_the_threshold_gives_the_highest_f1(same: list[bool], threshold: float) -> None:
    """1 without a pair of copies."""
    assert trained_encoders.best_threshold(np.array([0.9, 0.8, 0.3]), np.array(same)) == threshold


if minilm.is_installed():  # PyTorch is too large for the packages that tests install.

    def test_training_is_reproducible_and_moves_copies_together() -> None:
        """Four steps on two labels raise the cosine of copies relative to other texts."""
        articles, labels = ARTICLES[:6], LABELS[:6]
        texts = [article.text for article in articles]

        before = minilm.encode(minilm.load_transformer(), texts)
        after, again = (
            minilm.encode(trained_encoders.train_bi_encoder(articles, labels, 4), texts) for _ in range(2)
        )

        np.testing.assert_array_equal(after, again)
        margins = [float((rows[0] * rows[1]).sum() - (rows[0] * rows[4]).sum()) for rows in (before, after)]
        assert margins[1] > margins[0] + 0.01

    def test_a_trained_cross_encoder_knows_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Copies become more probable than other pairs, and stored weights score every pair."""
        monkeypatch.setattr(trained_encoders, "RERANKED_PAIRS", 4)
        articles, labels = ARTICLES[:12], LABELS[:12]
        texts = [article.text for article in articles]
        rows = minilm.encode(minilm.load_transformer(), texts)
        trained = trained_encoders.train_cross_encoder(articles, labels, rows, 12)
        copies = [(texts[at], texts[at + 1]) for at in (0, 3, 6, 9)]
        others = [(texts[at], texts[(at + 4) % 12]) for at in (0, 3, 6, 9)]

        probability = trained_encoders.probabilities(trained, [*copies, *others])
        assert probability[:4].mean() > probability[4:].mean() + 0.01

        trained_encoders.train(articles[:6], labels[:6], tmp_path / "weights", steps=1)
        scored = trained_encoders.reranked(articles[6:], tmp_path / "weights")
        assert len(scored.score) == 15
        assert ((scored.score >= 0) & (scored.score <= 1)).all()
