"""Comparison of feature extractors: its measures on made-up vectors, and rows of fitted extractors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from aggregator_lab.evaluation import features
from aggregator_lab.evaluation.features import FeatureRow, Vectors
from tests.cli.helpers import run, write_jsonl
from tests.lab.extractors.corpus import TEXTS, mixed_texts


def vectors(rows: list[list[float]], fingerprints: list[int], unknown: tuple[int, ...] = ()) -> Vectors:
    known = np.array([number not in unknown for number in range(len(rows))])
    return Vectors(np.array(rows, np.float32), np.array(fingerprints, np.uint64), known)


def test_a_copy_is_found_within_the_radius_of_any_earlier_article_of_its_label() -> None:
    """Articles 0 and 1 differ in 2 bits, 2 from both in at most 7, the copies of y in 16; z has no copy."""
    coded = vectors([[1.0]] * 6, [0, 0b11, 0b11111 << 20, 0, 0xFFFF, 0])

    found = features.copies_found(coded.distances(), ["x", "x", "x", "y", "y", "z"])

    assert found == pytest.approx((1 / 3, 2 / 3))


def test_a_text_without_features_is_no_copy_and_has_no_neighbor() -> None:
    """Its fingerprint, 0, is not compared."""
    coded = vectors([[1.0], [0.0]], [0, 0], unknown=(1,))

    assert features.copies_found(coded.distances(), ["x", "x"]) == (0.0, 0.0)
    assert features.pair_auc(coded, vectors([[1.0], [1.0]], [0, 0]), [True, False]) == (1.0, 1.0)


def test_pairs_are_ranked_by_cosine_and_by_bits() -> None:
    """The alike pair has the higher cosine; its fingerprints differ in more bits."""
    firsts = vectors([[1.0, 0.0], [1.0, 0.0]], [0, 0])
    seconds = vectors([[1.0, 0.0], [0.0, 1.0]], [0b1111, 0b1])

    assert features.pair_auc(firsts, seconds, [True, False]) == (1.0, 0.0)


def test_related_articles_are_ranked_among_the_background() -> None:
    """By cosine the other article is first; by bits ten articles of the background are nearer."""
    events = vectors([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 0xFFFF, 0])
    background = vectors([[0.0, 1.0]] * 12, [1] * 12)

    by_cosine, by_bits = features.related_recall(events, ["e", "e", "alone"], background)

    assert (by_cosine, by_bits) == (1.0, 0.0)


@pytest.mark.integration
def test_the_command_measures_every_extractor_that_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies are found and cost is reported; an extractor without its library has the reason as its row."""
    monkeypatch.setitem(sys.modules, "gensim.models.doc2vec", None)
    corpus = write_jsonl(
        tmp_path / "corpus", *({"id": str(n), "text": text} for n, text in enumerate(mixed_texts(280)))
    )
    labeled = [
        {"id": f"{n}{kind}", "text": text, "cluster": n}
        for n, whole in enumerate(TEXTS[:12])
        for kind, text in (("a", whole), ("b", whole.rpartition(".")[0] or whole))
    ]
    copies = write_jsonl(tmp_path / "copies", *labeled)
    judged = write_jsonl(
        tmp_path / "pairs",
        *({"text1": TEXTS[n], "text2": labeled[2 * n + 1]["text"], "same": True} for n in range(4)),
        *({"text1": TEXTS[n], "text2": TEXTS[n + 20], "same": False} for n in range(4)),
    )
    command = ("evaluate", "features", copies, "--corpus", corpus, "--pairs", judged, "--events", copies)
    names = [option for name in ("tfidf-pca", "hashing", "doc2vec") for option in ("--features", name)]

    assert run(*command, *names, "--json") == 0
    rows = {row["features"]: row for row in json.loads(capsys.readouterr().out)}
    for name in ("tfidf-pca", "hashing"):
        row = rows[name]
        assert 0.1 < row["copies"][0] <= row["copies"][1] <= 1
        assert row["auc_cosine"] > 0.9 and row["auc_bits"] > 0.9
        assert row["related_cosine"] > 0.9
        assert row["cpu_ms"] > 0 and row["fit_cpu_s"] > 0
        assert 0.01 < row["model_mb"] < 10
    assert rows["doc2vec"].keys() == {"features", "missing"}
    assert "newsdedup-lab[doc2vec]" in rows["doc2vec"]["missing"]

    assert run(*command[:5], "--group", "zh") == 2
    assert "No articles of group 'zh'" in capsys.readouterr().err


def test_the_table_shows_dashes_for_data_that_was_not_given_and_reasons_last() -> None:
    rows = [
        FeatureRow("doc2vec", missing="needs gensim"),
        FeatureRow("hashing", copies=(0.5, 0.75), false_neighbors=(0.0, 1.5), cpu_ms=2.0, model_mb=0.25),
    ]
    table = features.format_table(rows, features.FeatureData([], [], [])).splitlines()

    assert table[2].split() == ["hashing", "0.500", "0.750", "0.000", "1.500", *"----", "2.0", "0.0", "0.2"]
    assert table[3].split() == ["doc2vec", "not", "measured:", "needs", "gensim"]
