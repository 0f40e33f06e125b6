"""``aggregator evaluate methods``: archive methods of the literature, on clean and on noisy text."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable

from aggregator import jsonl
from aggregator.errors import ConfigurationError
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.settings import Settings
from aggregator_lab.evaluation import methods as protocol
from aggregator_lab.evaluation import methods_table
from aggregator_lab.evaluation.ocr_noise import CLEAN, NOISE_LEVELS, SINGLE_KINDS
from aggregator_lab.evaluation.pair_scorers import METHODS, default_methods
from aggregator_lab.labeled import first_per_label, load_labeled


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Score each method at each noise level."""
    jsonl.check_readable(args.files)
    levels = {level.name: level for level in (CLEAN, *NOISE_LEVELS, *SINGLE_KINDS)}
    _check_names("method", args.method, METHODS)
    _check_names("level", args.level, levels)
    gold = first_per_label(load_labeled(args.files, unique_ids=False), args.per_label)
    chosen = [levels[name] for name in args.level] if args.level else [CLEAN, *NOISE_LEVELS]
    results = protocol.evaluate(
        gold, methods=args.method or default_methods(), levels=chosen, processes=args.processes
    )
    shares = protocol.shares_without_common_ngram(gold, chosen)
    if args.json:
        print(json.dumps({"rows": methods_table.as_json(results), "without_common_10gram": shares}))
    else:
        print(methods_table.format_table(results, shares))
    return EXIT_OK


def _check_names(option: str, given: Iterable[str] | None, known: Iterable[str]) -> None:
    names = list(known)
    for name in given or ():
        if name not in names:
            raise ConfigurationError(f"{option}: unknown value {name!r}; allowed: {', '.join(names)}.")
