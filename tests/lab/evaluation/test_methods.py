"""Comparison of methods: each finds the copies of a small archive, thresholds are tuned on the other half."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aggregator.cli import main
from aggregator.domain import Article
from aggregator_lab.evaluation import methods
from aggregator_lab.evaluation.noise import CLEAN, NOISE_LEVELS, add_ocr_noise
from aggregator_lab.evaluation.pair_scorers import (
    METHODS,
    default_methods,
)
from aggregator_lab.evaluation.vectors import ScoredPairs
from aggregator_lab.labeled import LabeledArticle
from tests.support.factories import edited, story


def gold(groups: int = 8, size: int = 3) -> list[LabeledArticle]:
    """Groups of an original and near-copies of it."""
    articles = []
    for group in range(groups):
        text = story(500 + group, 12)
        for copy in range(size):
            article = Article(id=f"{group}-{copy}", title=f"Group {group}", text=edited(text, copy, 3 * copy))
            articles.append(LabeledArticle(article, f"label{group:02}"))
    return articles


@pytest.mark.integration
@pytest.mark.parametrize("method", [name for name in METHODS if name in default_methods()])
def test_every_method_scores_true_pairs_higher(method: str) -> None:
    """Most pairs of one group are scored, and higher than all others on average."""
    labeled = gold()
    articles = [item.article for item in labeled]
    if (
        "ignatures" in method or method == "SpotSigs"
    ):  # which need frequent words: the made-up texts have none
        articles = [replace(a, text=" the ".join(a.text.split())) for a in articles]
    scored = METHODS[method](articles)
    same = np.array([labeled[a].label == labeled[b].label for a, b in zip(scored.a, scored.b, strict=True)])

    assert (scored.a < scored.b).all()
    assert ((scored.score >= 0) & (scored.score <= 1)).all()
    assert same.sum() >= 0.6 * 8 * 3
    if (~same).any():
        # 24 texts of made-up words are too few to train vectors.
        margin = 0.0 if method in ("doc2vec", "bi-encoder") else 0.1
        assert scored.score[same].mean() > scored.score[~same].mean() + margin


@pytest.mark.integration
@pytest.mark.parametrize("method", ["combined", "tfidf"])
def test_thresholds_are_tuned_on_one_half_and_scored_on_the_other(method: str) -> None:
    """Easy copies are grouped without an error in both directions."""
    rows = methods.evaluate_method(gold(), method, CLEAN)

    assert [row.clustering for row in rows] == list(methods.CLUSTERINGS)
    for row in rows:
        assert (row.b_cubed_f1, row.adjusted_rand, row.pair_f1, row.mean_group) == (1.0, 1.0, 1.0, 3.0)


def test_random_scores_give_low_measures() -> None:
    """B-cubed F1 falls when scores carry no information."""
    labeled = gold()
    a, b = np.triu_indices(len(labeled), 1)
    random = ScoredPairs(a.astype(np.int64), b.astype(np.int64), np.random.default_rng(1).random(len(a)))
    truth = [item.label for item in labeled]

    assert methods.tune_and_score([random, random], "union-find", truth, truth)["b_cubed_f1"] < 0.7


def test_pairs_are_counted_over_groups() -> None:
    """Two of three copies in one group, together with an unrelated article."""
    assert methods.pairwise_precision_recall_f1(["x", "x", "x", "y"], [1, 1, 2, 1]) == (1 / 3, 1 / 3, 1 / 3)
    assert methods.pairwise_precision_recall_f1(["x", "y"], [1, 2]) == (1.0, 1.0, 1.0)


def test_ocr_noise_is_seeded_and_grows_with_the_level() -> None:
    """The same seed gives the same noise; the level ``CLEAN`` changes nothing."""
    text = story(3)
    kept = []
    for level in NOISE_LEVELS:
        assert add_ocr_noise(text, level, "a") == add_ocr_noise(text, level, "a")
        kept.append(len(set(text.split()) & set(add_ocr_noise(text, level, "a").split())))

    assert add_ocr_noise(text, CLEAN, "a") == text
    assert kept == sorted(kept, reverse=True)
    assert kept[0] > kept[-1]


def test_copies_without_a_common_10_gram_are_counted() -> None:
    """Of three copies, one differs in every tenth word; words of two groups do not count."""
    words = story(1, 12).split()
    rows = [
        ("x", words),
        ("x", words[20:]),
        ("x", [f"other{at}" if at % 9 == 0 else word for at, word in enumerate(words)]),
        ("y", words),
        ("y", [f"another{at}" for at in range(60)]),
    ]
    labeled = [
        LabeledArticle(Article(id=str(at), title="", text=" ".join(text)), label)
        for at, (label, text) in enumerate(rows)
    ]

    assert methods.shares_without_common_ngram(labeled, [CLEAN]) == {"clean": pytest.approx(3 / 4)}
    noisy = methods.shares_without_common_ngram(gold(), [CLEAN, *NOISE_LEVELS])
    assert noisy["clean"] < noisy["medium"] < noisy["heavy"]


@pytest.mark.integration
def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of the selected method, and published results marked as such."""
    file = tmp_path / "gold.jsonl"
    lines = [
        {"id": g.article.id, "title": g.article.title, "text": g.article.text, "cluster": g.label}
        for g in gold(4)
    ]
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    args = ["evaluate", "methods", str(file), "--method", "n-gram overlap 3", "--level", "clean"]
    args += ["--per-label", "2"]

    assert main(args) == 0
    printed = capsys.readouterr().out
    assert "clean    not run: simhash; sketch; combined" in printed
    assert "% of the pairs of copies have no common 10-gram" in printed
    groups = [line.split()[-4] for line in printed.splitlines() if line.startswith("clean    n-gram")]
    assert groups == ["2.0"] * 3  # the third copy of each is left out
    assert main([*args[:3], "--method", "magic"]) == 2
    assert "unknown value 'magic'" in capsys.readouterr().err


@pytest.mark.integration
@pytest.mark.parametrize(
    ("groups", "message"), [(0, "no articles found"), (1, "Give copies of at least two articles")]
)
def test_too_few_groups_of_copies_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], groups: int, message: str
) -> None:
    """One group cannot be both tuned on and scored; the message comes before any method runs."""
    file = tmp_path / "gold.jsonl"
    lines = [{"text": g.article.text, "cluster": g.label} for g in gold(groups)]
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    assert main(["evaluate", "methods", str(file)]) == 2
    assert message in capsys.readouterr().err
