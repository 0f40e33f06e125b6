"""``aggregator fit``."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from aggregator.analysis.features import FeatureModel
from aggregator.analysis.models import load_model
from aggregator.errors import InvalidInput
from aggregator_lab.fit import fit_file
from tests.cli.helpers import OTHER, ROWS, article_body, run, write_jsonl
from tests.lab.extractors.corpus import mixed_texts


@pytest.mark.integration
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
        "--hyperplanes",
        "learned",
        "--corpus",
        "the demonstration",
    ]

    assert run("fit", corpus, "--group", "en", "--out", str(model), *options) == 0

    printed = capsys.readouterr().err
    fitted = load_model(model)
    assert isinstance(fitted, FeatureModel)
    assert fitted.metadata["settings"]["hyperplanes"] == "learned"
    own = ("--models-dir", str(model.parent), "--store", "memory")
    assert run("ingest", *own, write_jsonl(tmp_path / "a", article_body(OTHER))) == 0
    space = json.loads(capsys.readouterr().out)["space"]
    assert f"index {space} (model " in printed, "the index that the service names"
    assert run("doctor", *own[:2], "--store-url", "memory") == 0
    assert f"{space}: " in capsys.readouterr().out


def test_another_extractor_is_fitted_with_its_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--features and --card; options of the shipped features are refused with it."""
    rows = [{"id": str(n), "text": text, "lang": "en"} for n, text in enumerate(mixed_texts(80))]
    corpus, model, card = write_jsonl(tmp_path / "c.jsonl", *rows), tmp_path / "en.model", tmp_path / "en.md"
    options = ["--group", "en", "--features", "hashing", "--out", str(model), "--replace"]

    assert run("fit", corpus, *options, "--card", str(card), "--licence", "CC0") == 0
    assert "features hashing, " in capsys.readouterr().err
    text = card.read_text(encoding="utf-8")
    for part in (
        "`hashing`: TF-IDF of hashed terms",
        "256 dimensions",
        "| CC0 |",
        "| 80 |",
        "**Limits:** The",
    ):
        assert part in text

    assert run("fit", corpus, *options, "--components", "64") == 2
    assert "--components is an option of the features tfidf-pca only" in capsys.readouterr().err


def test_columns_have_any_name_and_files_that_exist_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every refusal names the option that helps, and nothing is written."""
    corpus, model = tmp_path / "c.tsv", tmp_path / "own" / "en.model"
    corpus.write_text("\n".join(["body\tlang", *(f"{text}\ten" for text in mixed_texts(80))]))
    options = ["--features", "hashing", "--out", str(model), "--no-progress", str(corpus)]
    named = ["--column", "text=body", *options]

    assert run("fit", "--group", "en", *options) == 2
    assert "No row has a text or a title: the columns are body, lang; map one with --column text=NAME." in (
        capsys.readouterr().err
    )
    assert run("fit", "--group", "de", *named) == 2
    assert (
        "group: no article is in 'de'; the groups of these articles are en (80)." in capsys.readouterr().err
    )
    assert run("fit", "--group", "en", "--card", str(tmp_path), *named) == 2
    assert f"{tmp_path}: the file cannot be written here (Is a directory)" in capsys.readouterr().err
    assert run("fit", "--group", "en", *named, "--out", str(tmp_path / "models")) == 2
    assert "models does not end in .model, so no service would read it." in capsys.readouterr().err
    assert not model.exists() and not (tmp_path / "models").exists()

    assert run("fit", "--group", "en", *named) == 0
    assert f"To use it, pass its directory: --models-dir {model.parent}\n" in capsys.readouterr().err
    written = model.read_bytes()
    for output in (["--out", str(model)], ["--out", str(tmp_path / "new.model"), "--card", str(corpus)]):
        assert run("fit", "--group", "en", *named, *output) == 2
        assert f"{output[-1]} exists; use another name, or add --replace." in capsys.readouterr().err
    assert (model.read_bytes(), corpus.read_text()[:9]) == (written, "body\tlang")
    assert run("fit", "--group", "en", *named, "--replace") == 0


@pytest.mark.parametrize("features", ["tfidf-pca", "hashing"])
def test_columns_are_checked_as_by_dedupe(
    features: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that no file has is an error, a text of another name reported; not dates, which no fit reads."""
    rows = [{"title": text[:30], "inhalt": text, "lang": "en"} for text in mixed_texts(80)]
    corpus, model = write_jsonl(tmp_path / "c.jsonl", *rows), tmp_path / "en.model"
    fit = ("fit", "--group", "en", "--out", str(model), "--features", features, "--no-progress", "--replace")
    fewer = ["--components", "8", "--hyperplanes", "hashed"] if features == "tfidf-pca" else []

    assert run(*fit, corpus, "--column", "text=nope") == 2
    assert f"{corpus}: no column 'nope' for text; the columns are title, inhalt, lang." in (
        capsys.readouterr().err
    )
    assert not model.exists()
    assert run(*fit, *fewer, corpus) == 0
    assert f"{corpus}: no column is text; unused: inhalt; map them, e.g. with --column text=NAME\n" in (
        capsys.readouterr().err
    )
    assert run(*fit, *fewer, corpus, "--column", "text=inhalt") == 0
    assert "no column is" not in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="no column 'nope' for text"):
        fit_file([corpus], "en", model, columns=[("text", "nope")])


@pytest.mark.parametrize("features", ["doc2vec", "minilm"])
def test_an_extractor_without_its_library_is_refused_first(
    features: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before an article is read; no directory is created."""
    importlib.import_module("scipy.stats")  # before torch is hidden, which it looks for
    for module in ("gensim.models.doc2vec", "torch"):
        monkeypatch.setitem(sys.modules, module, None)  # its import fails
    corpus, model = write_jsonl(tmp_path / "c.jsonl", "no article"), tmp_path / "own" / "en.model"

    assert run("fit", corpus, "--group", "en", "--features", features, "--out", str(model)) == 2
    assert f"-m pip install 'newsdedup-lab[{features}]'`" in capsys.readouterr().err
    assert not model.parent.exists()


def test_few_articles_are_advised_fewer_components_than_they_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tenth of the articles, not a constant above what was asked for."""
    corpus = write_jsonl(tmp_path / "c.jsonl", *({"text": text, "lang": "en"} for text in mixed_texts(80)))
    options = ["--out", str(tmp_path / "en.model"), "--components", "20", "--hyperplanes", "hashed"]

    assert run("fit", "--group", "en", *options, str(corpus)) == 0
    advice = "80 articles are few for 20 components; give more, or --components 8 --hyperplanes hashed"
    assert advice in capsys.readouterr().err
