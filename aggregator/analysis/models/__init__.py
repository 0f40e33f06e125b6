"""Bundled feature models (each with a card: ``en.md``, ...), and loading of models and their frequencies.

``scripts/fit-default-models`` fits ``*.model``; ``scripts/build-term-idf`` builds the term frequencies
``xx.idf`` of other languages.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

from aggregator import extensions
from aggregator.analysis import model_file
from aggregator.analysis.features import FeatureModel, HashedModel
from aggregator.analysis.term_frequencies import RateTable, TermIdf, TermRates
from aggregator.analysis.text.language import FALLBACK_GROUP
from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.tokenizer import tokenizer_recipe
from aggregator.errors import ModelError

EXTRACTOR_KIND = "extractor"  # in the field ``kind`` of the model files of extensions
BUNDLED_DIR = Path(__file__).parent
TERM_IDF_PATH = BUNDLED_DIR / f"{FALLBACK_GROUP}.idf"


class ExtractorModel(Protocol):
    """A fitted model of other features than TF-IDF and PCA; immutable, picklable."""

    @property
    def group(self) -> str:
        """Language group it was fitted for."""

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
    """An extension: restores models of one kind of features, which the lab fits."""

    @classmethod
    def restore_model(
        cls, path: Path, fields: Mapping[str, Any], arrays: model_file.Arrays
    ) -> ExtractorModel:
        """The model in a file with these contents, for ``load_model``; loaded before workers fork."""


Model = FeatureModel | HashedModel | ExtractorModel


def load_models(directory: Path | None = None, setting: str = "models_dir") -> dict[str, Model]:
    """Return one model per language group: that in ``directory`` (the ``setting``), or the bundled one.

    Without a model for ``FALLBACK_GROUP`` its texts use ``HashedModel`` with the bundled frequencies. Raises
    ModelError when a file is invalid, two files are of one group, or ``directory`` has no models.
    """
    models: dict[str, Model] = dict(_load_directory(directory, setting)) if directory else {}
    if FALLBACK_GROUP not in models:
        models[FALLBACK_GROUP] = HashedModel(term_idf=load_term_idf())
    for path in BUNDLED_DIR.glob("*.model"):
        if path.stem not in models:
            models[path.stem] = _load_bundled(path)
    return dict(sorted(models.items()))


@cache  # 13 ms
def load_term_idf() -> TermIdf:
    """Return the bundled inverse document frequencies. Raises ModelError if the file is invalid."""
    return TermIdf.load(TERM_IDF_PATH, tokenizer_recipe(FALLBACK_GROUP))


@lru_cache(maxsize=2)
def load_term_rates(directory: Path | None = None) -> TermRates:
    """The term rates of the models of ``load_models``, without their matrices; 0.1 s. Raises ModelError."""
    tables: dict[str, RateTable] = {}
    for folder in (BUNDLED_DIR, directory):
        for path in sorted(folder.glob("*.model")) if folder is not None else ():
            fields, arrays = model_file.read(path)
            terms = model_file.unpack_strings(arrays["vocabulary"])
            group = str(fields["group"])
            missing = {t: float(share) for t, share in table("omitted_term", group).items() if t not in terms}
            tables[group] = RateTable.from_idf(terms, arrays["idf"], missing)
    return TermRates(tables, load_term_idf())


def _load_directory(directory: Path, setting: str) -> dict[str, FeatureModel | ExtractorModel]:
    if not directory.is_dir():
        raise ModelError(f"{directory}: there is no such directory; set {setting} to one with .model files.")
    found: dict[str, FeatureModel | ExtractorModel] = {}
    names: dict[str, str] = {}
    for path in sorted(directory.glob("*.model")):
        model = load_model(path)
        if model.group in found:
            raise ModelError(
                f"{path}: it is for language group {model.group!r}, as is {names[model.group]}; "
                "keep one of the two."
            )
        found[model.group], names[model.group] = model, path.name
    if not found:
        raise ModelError(
            f"{directory}: there is no .model file in this directory; fit one there "
            f"(`aggregator fit --help`), or unset {setting}."
        )
    return found


def extractor_class(name: str, where: str = "") -> type[Extractor]:
    """The class of an extractor. Raises ModelError for an unknown name, which begins with ``where``."""
    point = extensions.installed(extensions.EXTRACTORS).get(name)
    if point is None:
        raise ModelError(
            f"{where}The feature extractor {name!r} is unknown to this program; known: "
            f"{', '.join(extensions.feature_names())} (newsdedup-lab has others)."
        )
    found: type[Extractor] = point.load()
    return found


def load_model(path: Path) -> FeatureModel | ExtractorModel:
    """Read a model file of either kind. Raises ModelError, with the file and the remedy, if it is invalid."""
    fields, arrays = model_file.read(path)
    try:
        if fields.get("kind") != EXTRACTOR_KIND:
            model: FeatureModel | ExtractorModel = FeatureModel.restore(path, fields, arrays)
        else:
            model = extractor_class(fields["features"], f"{path}: ").restore_model(path, fields, arrays)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(
            f"{path}: the parts of the model do not fit together ({error}); "
            "fit it again (`aggregator fit --help`)."
        ) from error
    if model.content_hash != fields.get("content_hash"):
        raise ModelError(
            f"{path}: the model's content does not match the content hash stored in it; "
            "fit it again (`aggregator fit --help`)."
        )
    return model


_load_bundled = cache(load_model)  # 150 ms and 50 MB for all; both sides of a migration share them
