"""The shipped features, TF-IDF and PCA, under the contract of extractors.

``features.FeatureModel`` folds components, centering and hyperplanes into one matrix, so its vectors are the
64 sums whose signs are the bits. The service calls it directly, with interned terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from aggregator.analysis.features import FeatureModel
from aggregator.analysis.simhash import FINGERPRINT_BITS
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.extensions import TFIDF_PCA
from aggregator_lab.extractors.model import Features


class TfidfPcaExtractor:
    """A ``FeatureModel`` as an extractor; d = 64, centered, on the axes of the hyperplanes."""

    name: ClassVar[str] = TFIDF_PCA

    def __init__(self, model: FeatureModel) -> None:
        self._model = model

    @property
    def dimensions(self) -> int:
        """Return d."""
        return FINGERPRINT_BITS

    @property
    def package_bytes(self) -> int:
        """Return 0: the model file has everything."""
        return 0

    def transform(self, texts: Sequence[str], languages: Sequence[str]) -> Features:
        """Return (n, 64) float32, whose signs are the bits of the fingerprints."""
        rows = [
            self._model.project(tokenize(text, lang)) for text, lang in zip(texts, languages, strict=True)
        ]
        return np.array(rows, np.float32).reshape(len(texts), FINGERPRINT_BITS)
