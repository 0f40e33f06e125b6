"""``aggregator evaluate methods``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from aggregator.cli.fit_replay import parse_article, parse_label, read_rows
from aggregator.errors import ConfigurationError
from aggregator.offline import jsonl
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.settings import Settings


def methods(args: argparse.Namespace, settings: Settings) -> int:
    """Score every method at every level of noise."""
    from aggregator.offline.evaluation import methods as protocol
    from aggregator.offline.evaluation.near_duplicates import LabeledArticle
    from aggregator.offline.evaluation.ocr_noise import CLEAN, NOISE_LEVELS
    from aggregator.offline.evaluation.proposers import METHODS

    jsonl.check_readable(args.files)
    levels = {level.name: level for level in (CLEAN, *NOISE_LEVELS)}
    _check_names("method", args.method, METHODS)
    _check_names("level", args.level, levels)
    gold = [
        LabeledArticle(parse_article(row), parse_label(row, at))
        for at, row in enumerate(read_rows(args.files), 1)
    ]
    found = protocol.evaluate(
        gold,
        methods=args.method or list(METHODS),
        levels=[levels[name] for name in args.level or levels],
        processes=args.processes,
    )
    if args.out:
        from aggregator.offline.evaluation.methods_page import render_page

        Path(args.out).write_text(render_page(found), encoding="utf-8")
    print(json.dumps(protocol.as_json(found)) if args.json else protocol.format_table(found))
    return EXIT_OK


def _check_names(option: str, given: Iterable[str] | None, known: Iterable[str]) -> None:
    names = list(known)
    for name in given or ():
        if name not in names:
            raise ConfigurationError(f"{option}: there is no {name!r}; there are {', '.join(names)}.")
