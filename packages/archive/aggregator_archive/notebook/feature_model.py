"""Feature vectors and fingerprints of texts as a transformer of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from aggregator.analysis import features, models
from aggregator.analysis.simhash import FINGERPRINT_BITS
from aggregator.analysis.text.language import FALLBACK_GROUP, language_group
from aggregator.analysis.text.tokenizer import tokenize, words
from aggregator.errors import InvalidInput
from aggregator_archive.notebook.tables import article_fields


class FeatureModel(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A feature model, shipped or fitted by ``aggregator fit``, as a transformer; ``fit`` changes nothing.

    language  tag of the texts: "en", "ru" and "zh" have shipped models, others share an unfitted one
    path      model file; empty: the shipped model of the language
    columns   {"text": NAME, "title": NAME}, for tables with columns of other names
    """

    def __init__(
        self, language: str = "en", path: str | Path = "", columns: Mapping[str, str] | None = None
    ) -> None:
        self.language = language
        self.path = path
        self.columns = columns

    def fit(self, texts: Any = None, y: Any = None) -> Self:
        """Load the model and return the transformer. Raises ModelError if the file is not a model."""
        self._load()
        return self

    def transform(self, texts: Any) -> npt.NDArray[np.float32]:
        """Return (n, 64) float32: the sums whose signs are the fingerprints, one row per text.

        ``texts``: an iterable of texts, or a table with a column ``text`` (and ``title``). Cosines of rows
        approximate those of the model's principal components. A text without words gives zeros. Raises
        InvalidInput if the table has neither column, or another value than a text.
        """
        return self._sums(texts).astype(np.float32)

    def fingerprints(self, texts: Any) -> npt.NDArray[np.uint64]:
        """Return (n,) uint64: the fingerprints of the service, bit k set if sum k is above 0."""
        packed = np.packbits(self._sums(texts) > 0, axis=1, bitorder="little")
        return packed.view("<u8").astype(np.uint64).reshape(-1)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the 64 columns."""
        return np.array([f"bit{k}" for k in range(FINGERPRINT_BITS)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _load(self) -> features.FeatureModel | features.HashedModel:
        if self.path:
            model = models.load_model(Path(self.path))
            if model.group != language_group(self.language):
                raise InvalidInput(
                    f"{self.path} is a model of language group {model.group!r}, not of {self.language!r}."
                )
            if not isinstance(model, features.FeatureModel):
                raise InvalidInput(f"{self.path} is a model of other features than TF-IDF and PCA.")
            return model
        shipped = models.load_models()
        return shipped.get(language_group(self.language), shipped[FALLBACK_GROUP]).for_language(self.language)

    def _sums(self, texts: Any) -> npt.NDArray[np.float64]:
        model, lang = self._load(), self.language
        # As in the analysis, a text of stop words only uses its words as terms.
        rows = [
            model.project(tokenize(text, lang) or words(text, lang))
            for text in _texts(texts, self.columns or {})
        ]
        return np.array(rows, np.float64).reshape(-1, FINGERPRINT_BITS)


def _texts(table: Any, columns: Mapping[str, str]) -> Iterable[str]:
    """Headline and text of each row, joined as the analysis does."""
    read = ("text", "title")
    for number, row in enumerate(article_fields(table, columns, read, compared=read), 1):
        title, text = row.get("title") or "", row.get("text") or ""
        if not (isinstance(title, str) and isinstance(text, str)):
            raise InvalidInput(f"Row {number}: expected texts, found {title!r:.40} and {text!r:.40}.")
        yield f"{title}\n{text}"
