"""``aggregator fit``: fit a feature model to articles and write it to a file, with its model card."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, cast

from aggregator.analysis.analyzer import space_name
from aggregator.analysis.models import Model, extractor_class
from aggregator.cli.progress import item_progress
from aggregator.errors import EXIT_OK, ConfigurationError, InvalidInput
from aggregator.extensions import TFIDF_PCA
from aggregator.settings import Settings
from aggregator_lab.extractors.fitting import FittedByFile
from aggregator_lab.fit import FitSettings, fit_file, model_card
from aggregator_lab.model_writing import check_writable

FIT_OPTIONS = ("terms", "components", "hyperplanes")
FEW_ARTICLES_PER_COMPONENT = 10  # below, components describe single articles
METADATA_OPTIONS = ("corpus", "licence")
_OWN_LIMITS = "fitted to your own articles; measure it on articles that were not part of the fit."


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Fit and write the model. Raises InvalidInput, ModelError, ConfigurationError."""
    options = _given_options(args, FIT_OPTIONS)
    common: dict[str, Any] = {"metadata": _given_options(args, METADATA_OPTIONS), "columns": args.column}
    if args.features != TFIDF_PCA and options:
        raise InvalidInput(f"--{next(iter(options))} is an option of the features {TFIDF_PCA} only.")
    rules = FitSettings(**options)
    out = Path(args.out)
    _check_outputs(args)
    model: Model
    with item_progress("articles", shown=not args.no_progress) as show_count:
        if args.features == TFIDF_PCA:
            model = fitted = fit_file(args.files, args.group, out, rules, progress=show_count, **common).model
            card = model_card(fitted, out.name, out.stat().st_size, _OWN_LIMITS)
            contents = f"{len(fitted.vocabulary)} terms, {rules.components} components"
            if fitted.metadata["articles"] < FEW_ARTICLES_PER_COMPONENT * rules.components:
                few = f"{fitted.metadata['articles']:,} articles are few for {rules.components} components"
                fewer = max(1, fitted.metadata["articles"] // FEW_ARTICLES_PER_COMPONENT)
                print(f"{few}; give more, or --components {fewer} --hyperplanes hashed", file=sys.stderr)
        else:
            extractor = cast("type[FittedByFile]", extractor_class(args.features))
            model, contents, card = extractor.fit_file(
                args.files, args.group, out, limits=_OWN_LIMITS, progress=show_count, **common
            )
    if args.card:
        Path(args.card).write_text(card, encoding="utf-8")
    print(
        f"{args.out}: index {space_name(model.group, model)} (model {model.id}), features "
        f"{args.features}, {contents}, {out.stat().st_size / 1e6:.1f} MB. "
        f"To use it, pass its directory: --models-dir {out.parent}",
        file=sys.stderr,
    )
    return EXIT_OK


def _check_outputs(args: argparse.Namespace) -> None:
    """Raise ConfigurationError for a file that exists or is not read, ModelError for an unwritable one."""
    if not args.out.endswith(".model"):
        raise ConfigurationError(f"out: {args.out} does not end in .model, so no service would read it.")
    for name in ("out", "card"):
        if given := getattr(args, name):
            if Path(given).is_file() and not args.replace:
                raise ConfigurationError(f"{name}: {given} exists; use another name, or add --replace.")
            check_writable(Path(given), makes_directory=name == "out")


def _given_options(args: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    """The options that were given; the others keep the defaults of ``FitSettings``."""
    return {name: value for name in names if (value := getattr(args, name)) is not None}
