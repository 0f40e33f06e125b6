"""``aggregator evaluate`` on labelled articles and pairs: clusters, pairs, related."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator import reading
from aggregator.cli import OK
from aggregator.cli.offline import article, label, rows_of
from aggregator.settings import Settings

if TYPE_CHECKING:
    from aggregator.analyse import Analyser
    from aggregator.evaluation.near_duplicates import Labelled


def clusters(args: argparse.Namespace, settings: Settings) -> int:
    """Compare groups of copies with labelled ones."""
    from aggregator.app import policy_of
    from aggregator.evaluation import clusters as protocol

    reading.check_readable([*args.files, *args.background])
    gold = _labelled(args.files)
    background = [article(row) for row in rows_of(args.background)]
    found = asyncio.run(
        protocol.evaluate(
            gold, _analyser(settings), policy=policy_of(settings), orders=args.orders, background=background
        )
    )
    print(json.dumps([row.as_json() for row in found]) if args.json else protocol.table(found))
    return OK


def pairs(args: argparse.Namespace, settings: Settings) -> int:
    """Score judged pairs."""
    from aggregator.evaluation import pairs as protocol

    reading.check_readable(args.files)
    report = protocol.evaluate(protocol.pairs_of(rows_of(args.files)), _analyser(settings))
    print(json.dumps(report.as_json()) if args.json else protocol.table(report))
    return OK


def related(args: argparse.Namespace, settings: Settings) -> int:
    """Score related articles."""
    from aggregator.app import policy_of
    from aggregator.evaluation import related as protocol

    reading.check_readable([*args.files, *args.background])
    report = asyncio.run(
        protocol.evaluate(
            _labelled(args.files),
            _analyser(settings),
            background=[article(row) for row in rows_of(args.background)],
            k=args.limit,
            policy=policy_of(settings),
        )
    )
    print(json.dumps(report.as_json()) if args.json else protocol.table(report))
    return OK


def _labelled(files: Iterable[str]) -> list[Labelled]:
    from aggregator.evaluation.near_duplicates import Labelled

    return [Labelled(article(row), label(row, at)) for at, row in enumerate(rows_of(files), 1)]


def _analyser(settings: Settings) -> Analyser:
    from aggregator.analyse import Analyser
    from aggregator.models import load_models

    return Analyser(load_models(Path(settings.models_dir) if settings.models_dir else None))
