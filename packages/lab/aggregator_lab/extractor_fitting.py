"""Fit of a feature extractor, its centering and its hyperplanes to a corpus, offline.

features of the corpus -> centering -> 64 orthogonal hyperplanes, as in ``fitting.py``
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import TfidfTransformer
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from aggregator.analysis.extractor_model import ExtractorModel, FittedIdf
from aggregator.analysis.extractors.contract import StoredExtractor
from aggregator.analysis.model_file import check_writable
from aggregator.analysis.simhash import FINGERPRINT_BITS
from aggregator.analysis.text.tokenizer import tokenize, tokenizer_recipe
from aggregator.errors import InvalidInput
from aggregator.fit.fitting import (
    FitSettings,
    count_terms,
    initial_hyperplanes,
    texts_of_group,
    with_progress,
)
from aggregator.jsonl import check_readable

MIN_ARTICLES = FINGERPRINT_BITS + 1
# Evenly spaced articles whose mean is the center: their vectors cost up to 50 ms each.
CENTER_ARTICLES = 2_000


def fit_extractor(
    extractor_type: type[StoredExtractor],
    texts: Sequence[str],
    languages: Sequence[str],
    group: str,
    *,
    metadata: Mapping[str, Any] | None = None,
) -> ExtractorModel:
    """Fit an extractor to texts of one group.

    Raises InvalidInput for fewer than ``MIN_ARTICLES`` texts or too few terms that two texts share,
    ConfigurationError if an extra is missing.
    """
    if len(texts) < MIN_ARTICLES:
        raise InvalidInput(
            f"{len(texts)} articles in group {group!r} are too few; give at least {MIN_ARTICLES}."
        )
    idf = _fit_idf(texts, languages, group)
    with threadpool_limits(1):  # sums of BLAS depend on the number of threads
        extractor = extractor_type.fit(texts, languages)
        matrix, offset = _fold(_center(extractor, texts, languages))
    return ExtractorModel(
        group,
        extractor,
        matrix,
        offset,
        idf,
        tokenizer_recipe(group),
        {**(metadata or {}), "articles": len(texts)},
    )


def fit_extractor_file(
    extractor_type: type[StoredExtractor],
    paths: Sequence[Path | str],
    group: str,
    out: Path | str,
    *,
    metadata: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> ExtractorModel:
    """Fit to the articles of ``group`` in files and save the model; arguments and errors as ``fit_file``.

    All texts of the group are held in memory.
    """
    files = [str(path) for path in paths]
    check_readable(files)
    check_writable(Path(out))
    read = list(with_progress(texts_of_group(files, group), progress))
    texts, languages = [text for text, _ in read], [lang for _, lang in read]
    model = fit_extractor(extractor_type, texts, languages, group, metadata=metadata)
    model.save(out)
    return model


def _fit_idf(texts: Sequence[str], languages: Sequence[str], group: str) -> FittedIdf:
    counts, vocabulary = count_terms(map(tokenize, texts, languages), group, FitSettings())
    if not vocabulary:
        raise InvalidInput(f"No term occurs in two articles of group {group!r}; give more articles.")
    return FittedIdf(vocabulary, TfidfTransformer().fit(counts).idf_.astype("<f4"))


def _center(
    extractor: StoredExtractor, texts: Sequence[str], languages: Sequence[str]
) -> npt.NDArray[np.float64]:
    """Return the mean direction, (d,) of L2 norm 1, of texts of the corpus."""
    chosen = range(0, len(texts), -(-len(texts) // CENTER_ARTICLES))
    chosen_texts, chosen_languages = [texts[i] for i in chosen], [languages[i] for i in chosen]
    features = extractor.transform(chosen_texts, chosen_languages).astype(np.float64)
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    mean = (features / np.where(lengths > 0, lengths, 1.0)).mean(axis=0)
    center: npt.NDArray[np.float64] = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return center


def _fold(center: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """Return the matrix (d, 64) and the offset (64,) of "direction" centering (``fitting.py``)."""
    normals = initial_hyperplanes(FitSettings(components=len(center)))
    matrix = normals - np.outer(center, center @ normals)
    return matrix.astype("<f4"), np.zeros(FINGERPRINT_BITS)
