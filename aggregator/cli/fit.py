"""``aggregator fit``: fit a feature model to articles and write it to a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from aggregator.analysis.analyzer import space_name
from aggregator.cli.progress import ItemProgress
from aggregator.offline.fitting import FitSettings, fit_file
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.settings import Settings

FIT_OPTIONS = ("terms", "components", "hyperplanes", "counts", "whiten")
METADATA_OPTIONS = ("corpus", "licence")


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Fit and write the model. Raises InvalidInput, ModelError."""
    rules = FitSettings(**_given_options(args, FIT_OPTIONS))
    metadata = _given_options(args, METADATA_OPTIONS)
    with ItemProgress("articles", shown=not args.no_progress) as progress:
        fitted = fit_file(
            args.files, args.group, args.out, rules, metadata=metadata, progress=progress.set_count
        )
    model = fitted.model
    size = Path(args.out).stat().st_size
    index = space_name(model.group, model, settings.block_plan)
    print(
        f"{args.out}: index {index} (model {model.id}, block plan {settings.block_plan}), "
        f"{len(model.vocabulary)} terms, {fitted.settings.components} components, {size / 1e6:.1f} MB. "
        "To use it, pass its directory as --models-dir.",
        file=sys.stderr,
    )
    return EXIT_OK


def _given_options(args: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    """The options that were given; the others keep the defaults of ``FitSettings``."""
    values = {name: getattr(args, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}
