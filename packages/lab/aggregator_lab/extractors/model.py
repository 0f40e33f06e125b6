"""Contract of feature extractors, and the model of any of them: features, centering, hyperplanes, 64 bits.

    x   = extractor.transform([text]), divided by its L2 norm     (d,)
    V   = x @ matrix - offset                                     (64,)

Bit k of the fingerprint is ``V_k > 0``. Term weights come from the idf of the corpus, not from the features.
``content_hash`` is part of the index name.

A ``StoredExtractor`` is an entry point of the group ``aggregator.extractors``, loaded before analysis workers
are forked: ``restore`` and ``transform`` must not leave threads or open files behind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np
import numpy.typing as npt

from aggregator.analysis import model_file
from aggregator.analysis.features import HashedModel, hash_of_parts
from aggregator.analysis.models import EXTRACTOR_KIND
from aggregator.analysis.simhash import FINGERPRINT_BITS, fingerprint_from_sums
from aggregator.analysis.term_frequencies import TermIdf
from aggregator.analysis.text.tokenizer import tokenizer_recipe
from aggregator.errors import ConfigurationError, ModelError
from aggregator_lab.model_writing import write

_ARRAY_PREFIX = "features."
Features = npt.NDArray[np.float32]
Arrays = Mapping[str, npt.NDArray[Any]]


class FeatureExtractor(Protocol):
    """Texts to feature vectors of ``dimensions`` d >= 64; ``name``: as in ``fit --features NAME``."""

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
    """Extractor that can be stored as values and arrays; ``summary``, ``limits``: for model cards."""

    summary: ClassVar[str]
    limits: ClassVar[str]

    @classmethod
    def fit(cls, texts: Sequence[str], languages: Sequence[str]) -> Self:
        """Fit to a corpus; seeded. Raises ConfigurationError if an extra is missing."""

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Arrays) -> Self:
        """Return the extractor that had these ``parameters`` and ``arrays``.

        Raises ConfigurationError if an extra is missing, KeyError, TypeError or ValueError for wrong values.
        """

    def parameters(self) -> dict[str, Any]:
        """Return everything but the arrays that vectors depend on: numbers, strings and lists."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the fitted arrays by name, of the types that ``model_writing.write`` takes."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedIdf:
    """Inverse document frequencies of a corpus by term; a term that is not listed gets the largest.

    vocabulary  V terms
    idf         (V,) float32, > 0
    """

    vocabulary: tuple[str, ...] = field(repr=False)
    idf_values: npt.NDArray[np.float32] = field(repr=False)
    content_hash: str = field(init=False)
    _by_term: dict[str, float] = field(init=False, repr=False)
    _largest: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.idf_values.shape != (len(self.vocabulary),) or not (self.idf_values > 0).all():
            raise ValueError("idf must have one value above 0 per term of the vocabulary")
        parts = "\n".join(self.vocabulary).encode(), self.idf_values.tobytes()
        object.__setattr__(self, "content_hash", hash_of_parts(*parts))
        by_term = dict(zip(self.vocabulary, self.idf_values.tolist(), strict=True))
        object.__setattr__(self, "_by_term", by_term)
        object.__setattr__(self, "_largest", float(self.idf_values.max()))

    def idf(self, _: str, term: str) -> float:
        """Return the idf of a term, in any language."""
        return self._by_term.get(term, self._largest)


@dataclass(frozen=True, slots=True, eq=False)
class FittedModel:
    """A fitted model; immutable, picklable.

    group      language group it was fitted for
    extractor  the features, d dimensions
    matrix     (d, 64) float32
    offset     (64,) float64
    idf        term weights, and the fingerprint of texts without a known feature
    recipe     ``tokenizer_recipe`` of the group at the time of the fit
    metadata   corpus, licence, size; informative, not part of ``content_hash``
    """

    group: str
    extractor: StoredExtractor = field(repr=False)
    matrix: npt.NDArray[np.float32] = field(repr=False)
    offset: npt.NDArray[np.float64] = field(repr=False)
    idf: FittedIdf = field(repr=False)
    recipe: str
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    content_hash: str = field(init=False)

    def __post_init__(self) -> None:
        expected = (self.extractor.dimensions, FINGERPRINT_BITS), (FINGERPRINT_BITS,)
        if (self.matrix.shape, self.offset.shape) != expected:
            raise ValueError(
                f"matrix and offset are {self.matrix.shape} and {self.offset.shape}, expected {expected}"
            )
        if not (np.isfinite(self.matrix).all() and np.isfinite(self.offset).all()):
            raise ValueError("matrix or offset has values that are not finite")
        object.__setattr__(self, "content_hash", _content_hash(self))

    @property
    def id(self) -> str:
        """First 4 hex digits of the content hash; part of the names of fingerprint spaces."""
        return self.content_hash[:4]

    def for_language(self, lang: str) -> HashedModel:
        """Return the term weights for texts of a language."""
        return HashedModel(self.group, cast(TermIdf, self.idf), lang)  # it has the method ``idf``

    def fingerprint(self, text: str, lang: str) -> int | None:
        """Return the fingerprint of a text; None if it has no known feature."""
        return self.fingerprint_of_features(self.extractor.transform([text], [lang])[0])

    def fingerprint_of_features(self, features: npt.NDArray[np.float32]) -> int | None:
        """Return the fingerprint of a row of the extractor, (d,); None for zeros."""
        row = features.astype(np.float64)
        length = float(np.linalg.norm(row))
        if not length:
            return None
        return fingerprint_from_sums(row / length @ self.matrix.astype(np.float64) - self.offset)

    def save(self, path: Path | str) -> None:
        """Write the model to one file atomically. Raises ModelError."""
        fields = {
            "kind": EXTRACTOR_KIND,
            "features": self.extractor.name,
            "parameters": self.extractor.parameters(),
            "group": self.group,
            "recipe": self.recipe,
            "content_hash": self.content_hash,
            "metadata": dict(self.metadata),
        }
        arrays: dict[str, npt.NDArray[Any]] = {
            "vocabulary": model_file.pack_strings(self.idf.vocabulary),
            "idf": self.idf.idf_values,
            "matrix": self.matrix,
            "offset": self.offset,
        }
        own = {f"{_ARRAY_PREFIX}{name}": array for name, array in self.extractor.arrays().items()}
        write(Path(path), fields, arrays | own)

    @classmethod
    def restore(
        cls,
        extractor_type: type[StoredExtractor],
        path: Path,
        fields: Mapping[str, Any],
        arrays: model_file.Arrays,
    ) -> FittedModel:
        """Return the model in a file with these contents. Raises ModelError, with the file and the remedy."""
        arrays = {name: array.copy() for name, array in arrays.items()}  # aligned in memory
        if fields["recipe"] != tokenizer_recipe(fields["group"]):
            raise ModelError(
                f"{path}: the model was fitted for index terms {fields['recipe']!r}, but this "
                f"program uses {tokenizer_recipe(fields['group'])!r}; fit it again (`aggregator fit --help`)."
            )
        own = {
            name.removeprefix(_ARRAY_PREFIX): array
            for name, array in arrays.items()
            if name.startswith(_ARRAY_PREFIX)
        }
        try:
            extractor = extractor_type.restore(fields["parameters"], own)
        except ConfigurationError as error:
            raise ModelError(f"{path}: {error}") from error
        return cls(
            fields["group"],
            extractor,
            arrays["matrix"],
            arrays["offset"],
            FittedIdf(model_file.unpack_strings(arrays["vocabulary"]), arrays["idf"]),
            fields["recipe"],
            fields["metadata"],
        )


def _content_hash(model: FittedModel) -> str:
    parameters = json.dumps(model.extractor.parameters(), sort_keys=True)
    arrays = [
        part for name, array in sorted(model.extractor.arrays().items()) for part in (name, array.tobytes())
    ]
    return hash_of_parts(
        EXTRACTOR_KIND,
        model.extractor.name,
        parameters,
        model.group,
        model.recipe,
        model.idf.content_hash,
        model.matrix.tobytes(),
        model.offset.tobytes(),
        *arrays,
    )
