"""Fit of a feature extractor, its centering and its 64 orthogonal hyperplanes to a corpus.

scikit-learn is imported by the fit only: the service imports this module for models of an extractor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from aggregator.analysis import model_file
from aggregator.analysis.simhash import FINGERPRINT_BITS
from aggregator.analysis.text.tokenizer import tokenize, tokenizer_recipe
from aggregator.errors import InvalidInput
from aggregator_lab.extractors.model import FittedIdf, FittedModel, StoredExtractor

MIN_ARTICLES = FINGERPRINT_BITS + 1
# Evenly spaced articles whose mean is the center: their vectors cost up to 50 ms each.
CENTER_ARTICLES = 2_000
_CONTENTS = (
    "The file contains the fitted arrays of the features, centering and hyperplanes as one matrix, and a "
    "vocabulary with the inverse article frequency of each term. It contains no text. Fingerprints of models "
    "with different ids are not comparable."
)


class FittedByFile:
    """Base of the extractors: what `aggregator fit` and the service (``analysis.models.Extractor``) call."""

    @property
    def package_bytes(self) -> int:
        """Return 0: the model file has everything."""
        return 0

    @classmethod
    def check_installed(cls) -> None:
        """Raise ConfigurationError if a library of the fit is missing."""

    @classmethod
    def restore_model(cls, path: Path, fields: Mapping[str, Any], arrays: model_file.Arrays) -> FittedModel:
        """Return the model in a file with these contents."""
        return FittedModel.restore(cast("type[StoredExtractor]", cls), path, fields, arrays)

    @classmethod
    def fit_file(
        cls,
        paths: Sequence[Path | str],
        group: str,
        out: Path | str,
        *,
        metadata: Mapping[str, Any],
        limits: str,
        progress: Callable[[int], None],
        columns: Sequence[tuple[str, str]] = (),
    ) -> tuple[FittedModel, str, str]:
        """Fit to the articles of ``group`` in files; returns the model, its contents and its card."""
        cls.check_installed()  # before the articles are read
        from aggregator_lab.fit import texts_of_group

        read = list(texts_of_group(paths, group, columns, progress))
        extractor, (texts, languages) = cast("type[StoredExtractor]", cls), zip(*read, strict=True)
        model = fit_extractor(extractor, texts, languages, group, metadata=metadata)
        model.save(out)
        contents = f"{len(model.idf.vocabulary)} terms, {model.extractor.dimensions} dimensions"
        return model, contents, model_card(model, Path(out), limits)


def fit_extractor(
    extractor_type: type[StoredExtractor],
    texts: Sequence[str],
    languages: Sequence[str],
    group: str,
    *,
    metadata: Mapping[str, Any] | None = None,
) -> FittedModel:
    """Fit an extractor to texts of one group.

    Raises InvalidInput for fewer than ``MIN_ARTICLES`` texts or too few terms that two texts share,
    ConfigurationError if an extra is missing.
    """
    if len(texts) < MIN_ARTICLES:
        raise InvalidInput(
            f"{len(texts)} articles in group {group!r} are too few; give at least {MIN_ARTICLES}."
        )
    idf = _fit_idf(texts, languages, group)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

    with threadpool_limits(1):  # sums of BLAS depend on the number of threads
        extractor = extractor_type.fit(texts, languages)
        matrix, offset = _fold(_center(extractor, texts, languages))
    return FittedModel(
        group,
        extractor,
        matrix,
        offset,
        idf,
        tokenizer_recipe(group),
        {**(metadata or {}), "articles": len(texts)},
    )


def _fit_idf(texts: Sequence[str], languages: Sequence[str], group: str) -> FittedIdf:
    from sklearn.feature_extraction.text import TfidfTransformer

    from aggregator_lab.fit import FitSettings, count_terms

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
    """Return the matrix (d, 64) and the offset (64,) of "direction" centering (``aggregator_lab.fit``)."""
    from aggregator_lab.fit import FitSettings, initial_hyperplanes

    normals = initial_hyperplanes(FitSettings(components=len(center)))
    matrix = normals - np.outer(center, center @ normals)
    return matrix.astype("<f4"), np.zeros(FINGERPRINT_BITS)


def model_card(model: FittedModel, file: Path, limits: str) -> str:
    """The card of a model file, as that of ``aggregator_lab.fit``."""
    from aggregator_lab.fit import render_card

    extractor = model.extractor
    own_rows = [
        ("Features", f"`{extractor.name}`: {extractor.summary}; {extractor.dimensions} dimensions"),
        ("Vocabulary of term weights", f"{len(model.idf.vocabulary):,} terms"),
        *((f"Parameter `{name}`", f"`{value}`") for name, value in extractor.parameters().items()),
    ]
    limits = f"{extractor.limits} {limits}"
    return render_card(model, file.name, file.stat().st_size, own_rows, _CONTENTS, limits)
