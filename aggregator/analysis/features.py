"""Feature models: index terms of a text to the 64 sums whose signs are its fingerprint.

``FeatureModel`` is a fitted model: TF-IDF, then PCA, then hyperplanes (Hu & You, MECS 2017, section 3), with
everything after the TF-IDF folded into one (V, 64) matrix (docs/design/feature-models.md):

    x_i = (1 + ln tf_i) * idf_i, divided by the L2 norm of x          (n known terms)
    V   = x @ matrix - offset                                         (64,)

``HashedModel`` needs no fit: the signs of a term are the bits of its hash. Texts without a known term of a
``FeatureModel`` get such signs too: projected to ``-offset``, they would all have one fingerprint.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.analysis import model_file, simhash
from aggregator.analysis.simhash import FINGERPRINT_BITS, HASH_SEED, FloatArray, hashed_sums, l2_normalize
from aggregator.analysis.term_frequencies import EQUAL_IDF, TermIdf
from aggregator.analysis.text.language import FALLBACK_GROUP, UNDETERMINED
from aggregator.analysis.text.tokenizer import TOKENIZER_RECIPE, tokenizer_recipe
from aggregator.errors import ModelError

# Function of the term frequency, applied before idf; stored in the model and part of its hash.
LOG_TF_WEIGHT = "1+ln(tf)"

# Index terms of one text in order, or term -> count in order of first occurrence.
IndexTerms = Sequence[str] | Mapping[str, int]
_TF_TABLE_SIZE = 64


@dataclass(frozen=True, slots=True, eq=False)
class FeatureModel:
    """A fitted model; immutable, picklable, safe to share between threads.

    group       language group it was fitted for: "en", "zh", ...
    vocabulary  V terms in row order
    idf         (V,) float32, > 0
    matrix      (V, 64) float32: principal axes times hyperplanes, rounded to float16, as they are stored
    offset      (64,) float64, subtracted from every projection (zeros: not centered)
    recipe      ``tokenizer_recipe`` of the group at the time of the fit
    metadata    informative, not part of ``content_hash``
    """

    group: str
    vocabulary: tuple[str, ...] = field(repr=False)
    idf: npt.NDArray[np.float32] = field(repr=False)
    matrix: npt.NDArray[np.float32] = field(repr=False)
    offset: npt.NDArray[np.float64] = field(repr=False)
    recipe: str = TOKENIZER_RECIPE
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    content_hash: str = field(init=False)
    _row_of_term: dict[str, int] = field(init=False, repr=False)
    _max_idf: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Converting the stored float16 once (exactly) halves the time of ``project_rows``.
        object.__setattr__(self, "matrix", self.matrix.astype(np.float16, copy=False).astype(np.float32))
        _check_shapes(self)
        derived: dict[str, Any] = {
            "content_hash": hash_of_parts(
                "folded-pca",
                self.group,
                self.recipe,
                LOG_TF_WEIGHT,
                str(HASH_SEED),
                *(array.tobytes() for array in stored_arrays(self).values()),
            ),
            "_row_of_term": {term: row for row, term in enumerate(self.vocabulary)},
            "_max_idf": float(self.idf.max()),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def id(self) -> str:
        """First 4 hex digits of the content hash; part of the names of fingerprint spaces."""
        return self.content_hash[:4]

    def project(self, terms: IndexTerms) -> FloatArray:
        """Return the (64,) float64 sums of the index terms of one text; no terms give zeros."""
        counts = Counter(terms)
        known = {self._row_of_term[term]: n for term, n in counts.items() if term in self._row_of_term}
        if not known:
            return hashed_sums({term: _log_tf(count) for term, count in counts.items()})
        rows = np.array(list(known))
        return self.project_rows(rows, tf_weights(np.array(list(known.values()))) * self.idf[rows])

    def project_rows(self, rows: npt.NDArray[np.int64], tf_idf: npt.NDArray[np.float64]) -> FloatArray:
        """``project`` of known terms: ``rows`` and ``tf_idf``, (n,), n > 0, in order of occurrence."""
        # Not ``@``: the summation order of BLAS varies. Reducing the first axis adds row after row.
        weighted = self.matrix.take(rows, axis=0) * l2_normalize(tf_idf)[:, None]
        sums: FloatArray = np.add.reduce(weighted, axis=0) - self.offset
        return sums

    def for_language(self, _: str) -> FeatureModel:
        """The model itself, which has one idf per term."""
        return self

    def row_and_idf(self, term: str) -> tuple[int, float]:
        """The matrix row and the idf of a term; for an unknown term -1 and the largest idf."""
        row = self._row_of_term.get(term, -1)
        return row, float(self.idf[row]) if row >= 0 else self._max_idf

    @classmethod
    def restore(cls, path: Path, fields: Mapping[str, Any], arrays: model_file.Arrays) -> FeatureModel:
        """The model in a file with these contents, for ``models.load_model``."""
        recipe, term_weight = fields["recipe"], fields["term_weight"]
        expected_recipe = tokenizer_recipe(fields["group"])
        if recipe != expected_recipe or term_weight != LOG_TF_WEIGHT:
            raise ModelError(
                f"{path}: the model was fitted for index terms {recipe!r} with weights {term_weight!r}, but "
                f"this program uses {expected_recipe!r} with {LOG_TF_WEIGHT!r}; "
                "fit it again (`aggregator fit --help`)."
            )
        return cls(
            fields["group"],
            model_file.unpack_strings(arrays["vocabulary"]),
            arrays["idf"].copy(),  # a view would keep the content of the file
            arrays["matrix"],
            arrays["offset"].copy(),
            recipe,
            fields["metadata"],
        )


@dataclass(frozen=True, slots=True)
class HashedModel:
    """Model without a fit: the signs of a term are the bits of its hash, its weight is ``(1 + ln tf) * idf``.

    ``term_idf``: the idf by language and term; None, and languages that it does not have: 1 for all terms.
    """

    group: str = FALLBACK_GROUP
    term_idf: TermIdf | None = None
    lang: str = UNDETERMINED

    @property
    def content_hash(self) -> str:
        """SHA-256 of everything that the fingerprints depend on."""
        table = (self.term_idf.content_hash,) if self.term_idf is not None else ()
        return hash_of_parts(
            "hashed", self.group, tokenizer_recipe(self.group), LOG_TF_WEIGHT, str(HASH_SEED), *table
        )

    def for_language(self, lang: str) -> HashedModel:
        """The model with the idf of this language."""
        return replace(self, lang=lang)

    @property
    def id(self) -> str:
        """First 4 hex digits of the content hash."""
        return self.content_hash[:4]

    def project(self, terms: IndexTerms) -> FloatArray:
        """Return the (64,) float64 sums of the index terms of one text; no terms give zeros."""
        counts = Counter(terms).items()
        return hashed_sums({term: _log_tf(count) * self.row_and_idf(term)[1] for term, count in counts})

    def project_rows(self, rows: npt.NDArray[np.uint64], tf_idf: FloatArray) -> FloatArray:
        """``project`` of terms given by their ``rows`` and weights, (n,)."""
        return simhash.sums_of_hashes(rows, tf_idf)

    def row_and_idf(self, term: str) -> tuple[int, float]:
        """The ``feature_hash`` of a term, which is its row, and its idf."""
        idf = EQUAL_IDF if self.term_idf is None else self.term_idf.idf(self.lang, term)
        return simhash.feature_hash(term), idf


def _log_tf(count: int) -> float:
    return 1.0 + math.log(count)


_TF_TABLE: FloatArray = np.array([0.0, *map(_log_tf, range(1, _TF_TABLE_SIZE))])


def tf_weights(counts: npt.NDArray[np.int64]) -> FloatArray:
    """The weights before idf, (n,) float64, of terms with these ``counts``, (n,), all > 0."""
    if counts.max() < _TF_TABLE_SIZE:
        return _TF_TABLE[counts]
    return np.array([_log_tf(count) for count in counts.tolist()])


def stored_arrays(model: FeatureModel) -> dict[str, npt.NDArray[Any]]:
    """The arrays of its file, which the content hash covers."""
    vocabulary = model_file.pack_strings(model.vocabulary)
    matrix = model.matrix.astype(np.float16)
    return {"vocabulary": vocabulary, "idf": model.idf, "matrix": matrix, "offset": model.offset}


def hash_of_parts(*parts: str | bytes) -> str:
    """Return the SHA-256 of parts and their lengths, 64 hex digits."""
    digest = sha256()
    for part in parts:
        data = part.encode("utf-8") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _check_shapes(model: FeatureModel) -> None:
    terms = len(model.vocabulary)
    expected = {
        "idf": ((terms,), "<f4"),
        "matrix": ((terms, FINGERPRINT_BITS), "<f4"),
        "offset": ((FINGERPRINT_BITS,), "<f8"),
    }
    for name, (shape, dtype) in expected.items():
        array: npt.NDArray[Any] = getattr(model, name)
        if array.shape != shape or array.dtype.str != dtype:
            raise ValueError(f"{name} is {array.dtype.str} {array.shape}, expected {dtype} {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has values that are not finite")
    if not terms or len(set(model.vocabulary)) != terms or any("\n" in term for term in model.vocabulary):
        raise ValueError("the vocabulary is empty, repeats a term or has a line break in one")
    if not (model.idf > 0).all():
        raise ValueError("idf has values that are not above 0")
