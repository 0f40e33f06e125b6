"""Bundled feature models, and loading of a directory of models.

``en.model`` and ``zh.model`` are stored in this package, each with a model card (``en.md``: corpus, licence,
size, settings, hash). ``scripts/fit-default-models`` fits them from the development data. Models fitted by
``aggregator fit`` replace those of their language group when ``models_dir`` names their directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aggregator.analysis.features import FeatureModel, HashedModel
from aggregator.analysis.text.language import FALLBACK_GROUP
from aggregator.errors import ModelError

BUNDLED_DIR = Path(__file__).parent


def load_models(directory: Path | None = None) -> dict[str, FeatureModel | HashedModel]:
    """Return one model per language group: that in ``directory``, else the bundled one.

    Without a model for ``FALLBACK_GROUP`` its texts use ``HashedModel``.
    Every ``*.model`` file is loaded; the group is stored in the file, its name does not matter. Raises
    ModelError when a file is invalid, two files are of one group, or ``directory`` has no models.
    """
    models: dict[str, FeatureModel | HashedModel] = {FALLBACK_GROUP: HashedModel()}
    models |= _load_directory(BUNDLED_DIR)
    if directory is not None:
        site_models = _load_directory(directory)
        if not site_models:
            raise ModelError(
                f"{directory}: there is no .model file in this directory; put the output of `aggregator fit` "
                "there, or unset models_dir to use the bundled models."
            )
        models |= site_models
    return dict(sorted(models.items()))


def _load_directory(directory: Path) -> Mapping[str, FeatureModel]:
    if not directory.is_dir():
        raise ModelError(f"{directory}: there is no such directory; set models_dir to one with .model files.")
    found: dict[str, tuple[FeatureModel, Path]] = {}
    for path in sorted(directory.glob("*.model")):
        model = FeatureModel.load(path)
        if model.group in found:
            raise ModelError(
                f"{path}: it is for language group {model.group!r}, as is {found[model.group][1].name}; "
                "keep one of the two."
            )
        found[model.group] = model, path
    return {group: model for group, (model, _) in found.items()}
