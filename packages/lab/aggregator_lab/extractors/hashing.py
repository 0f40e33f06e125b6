"""Hashed features: TF-IDF of index terms in 2^14 hash buckets, projected to 256 random signs each.

    x_b = sum over the terms of bucket b of (1 + ln tf) * idf_b, L2 norm 1     (FeatureHasher of scikit-learn)
    features = x @ signs, signs (2^14, 256) of +-1 from hashes                 (Achlioptas 2003)

Only the idf of the buckets (64 kB) is fitted: no vocabulary limits which terms count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from aggregator.analysis.simhash import FINGERPRINT_BITS, hash_signs
from aggregator.analysis.text.tokenizer import tokenize
from aggregator_lab.extractors.fitting import FittedByFile
from aggregator_lab.extractors.model import Arrays, Features

BUCKETS = 1 << 14
DIMENSIONS = 256


class HashingExtractor(FittedByFile):
    """The fitted extractor; immutable. ``idf``: (buckets,) float32."""

    name: ClassVar[str] = "hashing"
    summary: ClassVar[str] = "TF-IDF of hashed terms, random projection"
    limits: ClassVar[str] = (
        "The projection is random, so no direction is learned from the corpus: related articles are farther "
        "apart than with tfidf-pca."
    )

    def __init__(self, idf: npt.NDArray[np.float32], dimensions: int = DIMENSIONS) -> None:
        if idf.ndim != 1 or not (np.isfinite(idf).all() and (idf > 0).all()):
            raise ValueError("idf of the buckets must be a vector of finite values above 0")
        self._idf = idf
        self._dimensions = dimensions

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._idf, self._dimensions)

    @property
    def dimensions(self) -> int:
        """Return d."""
        return self._dimensions

    @classmethod
    def fit(cls, texts: Sequence[str], languages: Sequence[str]) -> Self:
        """Count in how many texts each bucket occurs."""
        counted = _hash_terms(texts, languages, BUCKETS)
        in_texts = np.bincount(counted.indices, minlength=BUCKETS)
        # The smoothed idf of scikit-learn's TfidfTransformer.
        return cls((np.log((1 + len(texts)) / (1 + in_texts)) + 1).astype("<f4"))

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Arrays) -> Self:
        """Return the extractor with these values."""
        return cls(arrays["idf"], int(parameters["dimensions"]))

    def parameters(self) -> dict[str, Any]:
        """Return the dimensions."""
        return {"dimensions": self._dimensions}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the idf."""
        return {"idf": self._idf}

    def transform(self, texts: Sequence[str], languages: Sequence[str]) -> Features:
        """Return (n, d) float32; texts without terms give zeros."""
        hashed = _hash_terms(texts, languages, len(self._idf))
        hashed.data *= self._idf[hashed.indices]
        # scipy adds row after row, so that the sums do not depend on the machine's vector instructions.
        projected = hashed @ _signs(len(self._idf), self._dimensions)
        lengths = np.sqrt(hashed.multiply(hashed).sum(axis=1)).A1 if hashed.nnz else np.zeros(len(texts))
        features: Features = projected / np.maximum(lengths, 1e-12).astype(np.float32)[:, None]
        return features


def _hash_terms(texts: Sequence[str], languages: Sequence[str], buckets: int) -> Any:
    """Return a (n, buckets) float32 csr_matrix of 1 + ln tf, summed over the terms of a bucket."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction import FeatureHasher

    if not texts:
        return csr_matrix((0, buckets), dtype=np.float32)

    rows = (
        [(term, 1 + math.log(count)) for term, count in Counter(tokenize(text, lang)).items()]
        for text, lang in zip(texts, languages, strict=True)
    )
    # Signs are alternated by the projection already.
    hasher = FeatureHasher(buckets, input_type="pair", dtype=np.float32, alternate_sign=False)
    hashed = hasher.transform(rows)
    hashed.sum_duplicates()
    return hashed


@cache
def _signs(buckets: int, dimensions: int) -> Features:
    """Return (buckets, dimensions) of +-1: the hash signs of the names ``bucket:<b>:<block of 64>``."""
    blocks = -(-dimensions // FINGERPRINT_BITS)
    signs = [hash_signs(f"bucket:{b}:{block}" for b in range(buckets)) for block in range(blocks)]
    return np.hstack(signs)[:, :dimensions].astype(np.float32)
