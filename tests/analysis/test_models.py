"""Bundled models: valid, small, described by their cards, with pinned fingerprints."""

import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from aggregator.analysis.features import FeatureModel, HashedModel
from aggregator.analysis.models import BUNDLED_DIR, load_model, load_models
from aggregator.analysis.simhash import fingerprint_from_sums, hamming_distance
from aggregator.analysis.text.tokenizer import tokenize, tokenizer_recipe
from aggregator.errors import ModelError
from aggregator_lab.fit import model_card
from aggregator_lab.model_writing import save

BUNDLED_GROUPS = ("en", "ru", "zh")
MODELS = load_models()

# Sentences written for this test. Only a new model or tokenizer recipe may change these values, and it
# changes the names of the spaces too.
GOLDEN = [
    (
        "en",
        "The river rose overnight and two thousand people left their homes in the valley.",
        "19224d4f40d5d7c2",
    ),
    (
        "en",
        "Senators delayed the vote on the budget after a long night of talks in the capitol.",
        "4e4665b0dfac7e59",
    ),
    ("en", "A court ordered the company to pay back what it had charged its customers.", "78eeec8e5d7bcef4"),
    ("zh", "昨夜河水上涨，山谷里的两千名居民离开家园，救援队伍已经抵达现场。", "e1f15fddb646ea01"),
    ("zh", "当地政府表示，新的铁路将在明年春天通车，沿线企业和居民都将受益。", "58fd783e3913c294"),
    ("xx", "Der Fluss stieg in der Nacht, und zweitausend Menschen verließen das Tal.", "01b31853120b8512"),
]

STORY = """The river rose overnight and two thousand people left their homes in the valley. Rescue teams
reached the village of Estmark by boat before dawn and brought out families who had waited on their roofs.
The governor declared an emergency in four counties and asked the national guard for helicopters. Officials
said that the old levee had been due for repair since last spring, but that money for the work was not in
the budget. Schools will stay closed until Monday, and the bridge on the northern road is being inspected
by engineers. Insurance companies expect claims of more than ninety million dollars. Forecasters see
another storm on its way to the coast, with heavy rain in the hills by the end of the week."""


def fingerprint(group: str, text: str) -> int:
    return fingerprint_from_sums(
        MODELS[group].for_language("").project(tokenize(text, {"xx": "de"}.get(group, group)))
    )


@pytest.mark.parametrize(("group", "sentence", "expected"), GOLDEN)
def test_golden_fingerprints(group: str, sentence: str, expected: str) -> None:
    """From text to 64 bits, equal on every machine."""
    assert f"{fingerprint(group, sentence):016x}" == expected


@pytest.mark.integration
def test_loading_models_does_not_import_scikit_learn() -> None:
    """Its import costs seconds and memory that only a fit needs."""
    program = "import sys, aggregator.analysis.models as m; m.load_models(); print('sklearn' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)

    assert answer.stdout.strip() == "False"


def test_bundled_files() -> None:
    """A model for en, ru and zh, hashed terms for the rest, at most 12 MB in total; n-grams of languages."""
    assert list(MODELS) == ["en", "ru", "xx", "zh"]
    assert isinstance(MODELS["xx"], HashedModel)
    assert sum(path.stat().st_size for path in BUNDLED_DIR.glob("*.model")) <= 12_000_000
    assert {path.name for path in BUNDLED_DIR.iterdir() if path.name != "__pycache__"} == {
        "__init__.py",
        "languages.md",
        "languages.ngrams",
        "xx.idf",
        "xx.md",
        *(f"{group}{suffix}" for group in BUNDLED_GROUPS for suffix in (".model", ".md")),
    }


@pytest.mark.parametrize("group", BUNDLED_GROUPS)
def test_cards_describe_their_models(group: str) -> None:
    """Each card states what is in the model file: hash, size, settings, corpus and licence."""
    path = BUNDLED_DIR / f"{group}.model"
    model = load_model(path)
    assert isinstance(model, FeatureModel)
    card = path.with_suffix(".md").read_text(encoding="utf-8")

    limits = " ".join(card.partition("**Limits:**")[2].split())
    assert len(limits) > 80
    assert card == model_card(model, path.name, path.stat().st_size, limits)
    assert (model.group, model.recipe) == (group, tokenizer_recipe(group))
    assert f"`{model.id}`" in card
    assert re.search(r"Licence of the corpus \| (Apache-2\.0|CC BY 4\.0|MIT)", card)


@pytest.mark.parametrize("group", BUNDLED_GROUPS)
def test_models_contain_words_and_no_texts(group: str) -> None:
    """Metadata is a few short fields, and no vocabulary entry is longer than a word."""
    model = MODELS[group]
    assert isinstance(model, FeatureModel)

    assert set(model.metadata) == {"corpus", "licence", "period", "limits", "articles", "settings"}
    assert max(map(len, model.vocabulary)) <= 40
    assert not any(character.isspace() for term in model.vocabulary for character in term)


def test_an_edited_copy_is_near_and_another_story_far() -> None:
    """A story without its last sentence is within 7 bits; other news is far."""
    copy = STORY[: STORY.index("Forecasters")]
    others = [fingerprint("en", sentence) for group, sentence, _ in GOLDEN if group == "en"][1:]

    assert hamming_distance(fingerprint("en", STORY), fingerprint("en", copy)) <= 7
    assert min(hamming_distance(fingerprint("en", STORY), other) for other in others) > 15


@pytest.mark.parametrize("group", BUNDLED_GROUPS)
def test_bits_are_balanced(group: str) -> None:
    """Over texts of known terms no bit is constant, so the buckets fill evenly."""
    model = MODELS[group]
    assert isinstance(model, FeatureModel)
    bits = [fingerprint_from_sums(model.project(model.vocabulary[i : i + 40])) for i in range(0, 20_000, 40)]
    shares = [sum(b >> k & 1 for b in bits) / len(bits) for k in range(64)]

    assert min(shares) > 0.02 and max(shares) < 0.98
    assert 0.3 < statistics.mean(shares) < 0.7
    assert len(set(bits)) > 0.95 * len(bits)


def test_site_models_replace_bundled_ones(tmp_path: Path) -> None:
    """A model of the directory replaces that of its group, whatever the file name; the others stay."""
    en = MODELS["en"]
    assert isinstance(en, FeatureModel)
    site = FeatureModel(
        "xx", en.vocabulary[:100], en.idf[:100], en.matrix[:100], en.offset, tokenizer_recipe("xx")
    )
    save(site, tmp_path / "site.model")
    models = load_models(tmp_path)

    assert models["xx"].id == site.id
    assert models["en"] is en


def test_unusable_model_directories_are_rejected(tmp_path: Path) -> None:
    """Missing, empty, with a truncated file or with two models of one group: each has its error."""
    with pytest.raises(ModelError, match="no such directory"):
        load_models(tmp_path / "absent")
    with pytest.raises(ModelError, match=r"no \.model file in this directory"):
        load_models(tmp_path)
    content = (BUNDLED_DIR / "en.model").read_bytes()
    (tmp_path / "a.model").write_bytes(content)
    (tmp_path / "b.model").write_bytes(content)
    with pytest.raises(ModelError, match=r"b\.model: it is for language group 'en', as is a\.model"):
        load_models(tmp_path)
    (tmp_path / "b.model").write_bytes(content[:-5])
    with pytest.raises(ModelError, match=r"b\.model: the file is truncated"):
        load_models(tmp_path)
