"""Models of feature extractors: file, identity, fingerprints."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator.analysis import model_file
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import FeatureModel
from aggregator.analysis.models import BUNDLED_DIR, load_model, load_models, load_term_rates
from aggregator.analysis.simhash import hamming_distance
from aggregator.domain import Article
from aggregator.errors import InvalidInput, ModelError
from aggregator_lab.extractors.fitting import fit_extractor
from aggregator_lab.extractors.hashing import HashingExtractor
from aggregator_lab.extractors.model import FittedModel
from aggregator_lab.model_writing import write
from tests.lab.extractors.corpus import TEXTS, mixed_texts


@pytest.fixture(scope="module")
def model() -> FittedModel:
    corpus = mixed_texts(100)
    return fit_extractor(
        HashingExtractor, corpus, ["en"] * len(corpus), "en", metadata={"corpus": "invented"}
    )


def test_a_stored_model_computes_the_same_analysis(model: FittedModel, tmp_path: Path) -> None:
    model.save(tmp_path / "en.model")
    loaded = load_models(tmp_path)["en"]
    assert isinstance(loaded, FittedModel)

    assert (loaded.content_hash, loaded.metadata) == (
        model.content_hash,
        {"corpus": "invented", "articles": 100},
    )
    article = Article(id="a", text=TEXTS[0], lang="en")
    analyses = [Analyzer({"xx": load_models()["xx"], "en": m}).analyze(article) for m in (model, loaded)]
    assert len({(a.space, a.fingerprint, a.terms, a.minor_terms) for a in analyses}) == 1
    assert analyses[0].fingerprint == model.fingerprint(f"\n{TEXTS[0]}", "en")
    assert load_term_rates(tmp_path)  # events read the vocabulary of any model file


def test_copies_are_near_and_other_articles_are_not(model: FittedModel) -> None:
    fingerprints = [model.fingerprint(text, "en") for text in TEXTS[:20]]
    copies = [model.fingerprint(" ".join(text.split()[3:]), "en") for text in TEXTS[:20]]

    def distance(a: int | None, b: int | None) -> int:
        assert a is not None
        assert b is not None
        return hamming_distance(a, b)

    own = [distance(a, b) for a, b in zip(fingerprints, copies, strict=True)]
    others = [distance(fingerprints[i], copies[j]) for i in range(20) for j in range(20) if i != j]
    assert max(own) < sum(others) / len(others) / 2


def test_a_text_without_features_has_the_fingerprint_of_its_terms(model: FittedModel) -> None:
    """Texts of stop words differ from each other."""
    analyzer = Analyzer({"xx": load_models()["xx"], "en": model})
    assert model.fingerprint("the of", "en") is None

    first, second = (
        analyzer.analyze(Article(id="a", text=text, lang="en")).fingerprint for text in ("the of", "and was")
    )
    assert first != second


def test_another_corpus_or_kind_is_another_index(model: FittedModel) -> None:
    corpus = mixed_texts(90)
    other = fit_extractor(HashingExtractor, corpus, ["en"] * len(corpus), "en")

    bundled = load_model(BUNDLED_DIR / "en.model")
    assert isinstance(bundled, FeatureModel)
    assert len({model.content_hash, other.content_hash, bundled.content_hash}) == 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"recipe": "old"}, "fitted for index terms 'old'"),
        ({"features": "oracle"}, "'oracle' is unknown"),
        ({"parameters": {}}, "do not fit together"),
        ({"parameters": {"dimensions": 128}}, "do not fit together"),
        ({"content_hash": "0"}, "does not match the content hash"),
    ],
)
def test_a_wrong_file_is_refused(
    model: FittedModel, tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    path = tmp_path / "en.model"
    model.save(path)
    fields, arrays = model_file.read(path)
    write(path, fields | changed, arrays)

    with pytest.raises(ModelError, match=message):
        load_model(path)


def test_too_few_articles_are_refused() -> None:
    with pytest.raises(InvalidInput, match="3 articles in group 'en' are too few"):
        fit_extractor(HashingExtractor, TEXTS[:3], ["en"] * 3, "en")
