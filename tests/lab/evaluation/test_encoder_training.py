"""Fine-tuning of the bi-encoder: its pairs, and with the extra ``minilm`` the training itself."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from aggregator.domain import Article
from aggregator_lab.evaluation import encoder_training
from aggregator_lab.evaluation.encoder_training import BATCH_LABELS, training_pairs
from aggregator_lab.extractors import minilm
from tests.support.factories import edited, story

ARTICLES = [
    Article(id=f"{group}-{copy}", title="", text=edited(story(600 + group, 20), copy, 3 * copy))
    for group in range(14)
    for copy in range(3)
]
LABELS = [article.id.partition("-")[0] for article in ARTICLES]
LANGS = ["en"] * len(ARTICLES)


def test_a_batch_has_two_texts_each_of_different_labels() -> None:
    """Seeded; a text is never paired with itself, and about half are an article without noise."""
    label_of = {article.text: label for article, label in zip(ARTICLES, LABELS, strict=True)}
    texts = []
    for seed in range(20):
        pairs = training_pairs(ARTICLES, LABELS, LANGS, random.Random(seed))
        assert pairs == training_pairs(ARTICLES, LABELS, LANGS, random.Random(seed))
        assert len(pairs) == BATCH_LABELS
        assert all(first != second for first, second in pairs)
        unchanged = [{label_of[text] for text in pair if text in label_of} for pair in pairs]
        assert all(len(labels) <= 1 for labels in unchanged)
        found = [label for labels in unchanged for label in labels]
        assert len(set(found)) == len(found)
        texts += [text for pair in pairs for text in pair]

    assert 0.3 < sum(text in label_of for text in texts) / len(texts) < 0.5


if minilm.is_installed():  # PyTorch is too large for the packages that tests install.

    def test_training_is_reproducible_and_moves_copies_together(tmp_path: Path) -> None:
        """Four steps on two labels raise the cosine of copies relative to other texts; weights are stored."""
        articles, labels = ARTICLES[:6], LABELS[:6]
        trained = encoder_training.fine_tune(articles, labels, LANGS[:6], steps=4)
        encoder_training.save_weights(trained, tmp_path / "weights")
        texts = [article.text for article in articles]

        before = minilm.encode(minilm.load_transformer(), texts)
        after = minilm.encode(encoder_training.load_weights(tmp_path / "weights"), texts)
        again = minilm.encode(encoder_training.fine_tune(articles, labels, LANGS[:6], steps=4), texts)

        np.testing.assert_array_equal(after, again)
        margins = [
            float((vectors[0] * vectors[1]).sum() - (vectors[0] * vectors[4]).sum())
            for vectors in (before, after)
        ]
        assert margins[1] > margins[0] + 0.01
