"""``aggregator fit``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aggregator.analysis.features import FeatureModel
from tests.cli.helpers import OTHER, ROWS, article_body, run, write_jsonl


def test_a_model_is_fitted_and_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--models-dir uses the written file; its space is not that of the shipped model."""
    texts = [row["text"] for row in ROWS.values() if row["text"].isascii()]
    rows = [
        {
            "id": str(n),
            "text": " ".join([*texts[n % 40].split()[n % 7 :], *texts[(n * 7) % 41].split()]),
            "lang": "en",
        }
        for n in range(150)
    ]
    corpus = write_jsonl(tmp_path / "corpus.jsonl", *rows)
    model = tmp_path / "models" / "en.model"
    model.parent.mkdir()
    options = [
        "--components",
        "64",
        "--counts",
        "power",
        "--whiten",
        "-1.25",
        "--corpus",
        "the demonstration",
    ]

    assert run("fit", corpus, "--group", "en", "--out", str(model), *options) == 0

    printed = capsys.readouterr().err
    fitted = FeatureModel.load(model)
    assert (fitted.metadata["settings"]["whiten"], fitted.term_weight) == (-1.25, "tf^.75")
    own = ("--models-dir", str(model.parent), "--store", "memory")
    assert run("ingest", *own, write_jsonl(tmp_path / "a", article_body(OTHER))) == 0
    space = json.loads(capsys.readouterr().out)["space"]
    assert f"index {space} (model " in printed, "the index that the service names"
    assert run("doctor", *own[:2], "--store-url", "memory") == 0
    assert f"{space}: " in capsys.readouterr().out
