"""Models of other feature extractors than TF-IDF and PCA: extensions that fit, write and restore them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from aggregator import extensions
from aggregator.analysis import model_file
from aggregator.analysis.features import FeatureModel, HashedModel
from aggregator.errors import ModelError

KIND = "extractor"  # in the field ``kind`` of a model file


class ExtractorModel(Protocol):
    """A fitted model; immutable, picklable."""

    @property
    def group(self) -> str:
        """Language group it was fitted for."""

    @property
    def recipe(self) -> str:
        """``tokenizer_recipe`` of the group at the time of the fit."""

    @property
    def content_hash(self) -> str:
        """Hash of all that fingerprints depend on."""

    @property
    def id(self) -> str:
        """First 4 hex digits of the content hash; part of the names of fingerprint spaces."""

    def for_language(self, lang: str) -> HashedModel:
        """Term weights (events, related articles, search): they do not come from the features."""

    def fingerprint(self, text: str, lang: str) -> int | None:
        """Fingerprint of a text; None if it has no known feature."""


class Extractor(Protocol):
    """An extension: fits and restores models of one kind of features."""

    @classmethod
    def restore_model(
        cls, path: Path, fields: Mapping[str, Any], arrays: model_file.Arrays
    ) -> ExtractorModel:
        """The model in a file with these contents, for ``model_file.load``; loaded before workers fork."""

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
    ) -> tuple[ExtractorModel, str, str]:
        """Fit to articles in JSON lines files and write the model to ``out``; raises as ``fit.fit_file``.

        Returns the model, its contents in a few words, and its card, which ends with ``limits``.
        """


Model = FeatureModel | HashedModel | ExtractorModel


def extractor_class(name: str) -> type[Extractor]:
    """The class of an extractor. Raises ModelError for an unknown name."""
    point = extensions.installed(extensions.EXTRACTORS).get(name)
    if point is None:
        raise ModelError(
            f"The feature extractor {name!r} is unknown to this program; known: "
            f"{', '.join(extensions.feature_names())} (newsdedup-lab has others)."
        )
    found: type[Extractor] = point.load()
    return found


def load_model(path: Path) -> FeatureModel | ExtractorModel:
    """Read a model file of either kind. Raises ModelError, with the file and the remedy."""

    def restore(fields: Mapping[str, Any], arrays: model_file.Arrays) -> FeatureModel | ExtractorModel:
        if fields.get("kind") != KIND:
            return FeatureModel.restore(path, fields, arrays)
        try:
            extractor = extractor_class(fields["features"])
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from error
        return extractor.restore_model(path, fields, arrays)

    return model_file.load(path, restore)
