"""Contract of feature extractors: ``texts -> (n, d) float32``.

The framework of Hu & You (MECS 2017) is general: any vectors serve, and everything after them is the same.

    texts -> (n, d) features -> centering -> 64 hyperplanes -> 64 bits

``extractor_model.ExtractorModel`` computes the steps after the features and stores the extractor in its file.
To add an extractor: a class that is a ``StoredExtractor``, as an entry point of the group
``aggregator.extractors``.

An extractor is loaded before analysis workers are forked and used after it: ``restore`` and ``transform``
must not leave threads or open files behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

Features = npt.NDArray[np.float32]
Arrays = Mapping[str, npt.NDArray[Any]]


class FeatureExtractor(Protocol):
    """Texts to feature vectors.

    name        as in ``aggregator fit --features NAME``
    dimensions  d, at least 64
    """

    name: ClassVar[str]

    @property
    def dimensions(self) -> int:
        """Return d."""

    @property
    def package_bytes(self) -> int:
        """Return the size of weights that are read from an installed package, not from the model file."""

    def transform(self, texts: Sequence[str], languages: Sequence[str]) -> Features:
        """Return (n, d) float32, one row per text; a row of zeros: the text has no known feature.

        ``languages``: ISO 639-1 code of each text. Equal texts give equal rows, in any order and company.
        """


class StoredExtractor(FeatureExtractor, Protocol):
    """Extractor that can be fitted, stored as plain values and arrays, and restored from them.

    summary  one line for model cards
    limits   sentences for model cards
    """

    summary: ClassVar[str]
    limits: ClassVar[str]

    @classmethod
    def fit(cls, texts: Sequence[str], languages: Sequence[str]) -> Self:
        """Fit to a corpus; seeded. Raises ConfigurationError if an extra is missing."""

    @classmethod
    def fit_file(
        cls,
        paths: Sequence[Path | str],
        group: str,
        out: Path | str,
        *,
        metadata: Mapping[str, Any] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Fit to the articles of one group in JSON lines files and write an ``ExtractorModel`` to ``out``."""

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Arrays) -> Self:
        """Return the extractor that had these ``parameters`` and ``arrays``.

        Raises ConfigurationError if an extra is missing, KeyError, TypeError or ValueError for wrong values.
        """

    def parameters(self) -> dict[str, Any]:
        """Return everything but the arrays that vectors depend on: numbers, strings and lists."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the fitted arrays by name, of the types that ``model_file.write`` takes."""
