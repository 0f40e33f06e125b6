"""The fitted models that ship, and how a directory of models is read.

``en.model`` and ``zh.model`` lie beside this file, each with its card (``en.md``: corpus, licence, size,
settings, hash). ``scripts/fit-default-models`` makes both from the development data; a site's own, made by
``aggregator fit``, take their places when ``models_dir`` names their directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aggregator.analysis.features import FALLBACK_GROUP, FeatureModel, HashedModel
from aggregator.errors import ModelError

BUNDLED_DIR = Path(__file__).parent


def load_models(directory: Path | None = None) -> dict[str, FeatureModel | HashedModel]:
    """One model per language group: those in ``directory``, else those that ship, else hashed tokens ("xx").

    Every ``*.model`` file counts, whatever its name; the group stands in the file. Raises ModelError when a
    file is unsound, two are of one group, or a directory was named that holds none.
    """
    models: dict[str, FeatureModel | HashedModel] = {FALLBACK_GROUP: HashedModel()}
    models |= _load_directory(BUNDLED_DIR)
    if directory is not None:
        own = _load_directory(directory)
        if not own:
            raise ModelError(
                f"{directory}: there is no .model file in this directory; put the output of `aggregator fit` "
                "there, or unset models_dir to use the models that ship."
            )
        models |= own
    return dict(sorted(models.items()))


def model_card(model: FeatureModel, file_name: str, size_bytes: int) -> str:
    """The model card, Markdown: what a reader must know before trusting or passing on a model."""
    about, settings = dict(model.metadata), dict(model.metadata.get("settings", {}))
    rows = [
        ("File", f"`{file_name}`, {size_bytes:,} bytes"),
        ("Language group", f"`{model.group}`"),
        ("Model id", f"`{model.id}`"),
        ("Content hash (SHA-256)", f"`{model.content_hash}`"),
        ("Corpus", str(about.get("corpus", "not stated"))),
        ("Licence of the corpus", str(about.get("licence", "not stated"))),
        ("Articles", f"{about.get('articles', 0):,}"),
        ("Period", str(about.get("period", "not stated"))),
        ("Index terms", f"`{model.recipe}`"),
        ("Vocabulary", f"{len(model.vocabulary):,} terms"),
        ("Matrix", f"{len(model.vocabulary):,} x 64, float16"),
        *((f"Setting `{name}`", f"`{value}`") for name, value in settings.items()),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return (
        f"# Feature model `{model.group}`\n\n"
        f"| | |\n| --- | --- |\n{table}\n\n"
        "It holds a vocabulary with inverse article frequencies and the fitted numbers that turn them into 64\n"
        "sums, and no text. It was fitted by `scripts/fit-default-models`; fingerprints of another model id are\n"
        f"not comparable with those of this one.\n\n{_limits_line(about)}"
    )


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


def _limits_line(about: Mapping[str, object]) -> str:
    limits = about.get("limits")
    return f"Limits: {limits}\n" if limits else ""
