"""Registry of feature extractors, by the names that ``aggregator fit --features`` accepts."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aggregator.errors import ModelError

if TYPE_CHECKING:  # it imports numpy, and the help text of ``fit`` needs the names only
    from aggregator.analysis.extractors.contract import StoredExtractor

# Not in the table: it is folded into one matrix and has its own file format (``features.FeatureModel``).
TFIDF_PCA = "tfidf-pca"


@dataclass(frozen=True, slots=True)
class Registration:
    """Where an extractor is implemented.

    module   imported at first use, since some load large libraries
    summary  one line for ``--help`` and model cards
    limits   sentences for the model card
    """

    module: str
    class_name: str
    summary: str
    limits: str


EXTRACTORS: Mapping[str, Registration] = {
    "hashing": Registration(
        "aggregator.analysis.extractors.hashing",
        "HashingExtractor",
        "TF-IDF of hashed terms, random projection",
        "The projection is random, so no direction is learned from the corpus: related articles are farther "
        "apart than with tfidf-pca.",
    ),
    "doc2vec": Registration(
        "aggregator.analysis.extractors.doc2vec",
        "Doc2VecExtractor",
        "paragraph vectors (PV-DBOW, gensim; extra doc2vec)",
        "Needs some thousands of articles. Vectors are inferred by gradient descent in the floating point "
        "arithmetic of the machine: bits may differ between machines for sums near 0.",
    ),
    "minilm": Registration(
        "aggregator.analysis.extractors.minilm",
        "MiniLmExtractor",
        "sentence vectors of all-MiniLM-L6-v2 (PyTorch; extra minilm)",
        "Reads the first 256 word pieces of a text and is trained on English. Takes tens of milliseconds per "
        "article and some hundred MB per process. Bits may differ between machines for sums near 0.",
    ),
}
FEATURE_NAMES = (TFIDF_PCA, *EXTRACTORS)


def extractor_class(name: str) -> type[StoredExtractor]:
    """Return the class of an extractor. Raises ModelError for an unknown name."""
    registration = EXTRACTORS.get(name)
    if registration is None:
        raise ModelError(
            f"The feature extractor {name!r} is unknown to this program; known: {', '.join(FEATURE_NAMES)}."
        )
    found: type[StoredExtractor] = getattr(
        importlib.import_module(registration.module), registration.class_name
    )
    return found
