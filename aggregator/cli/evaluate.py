"""``aggregator evaluate`` on labelled articles and pairs: near-duplicates, clusters, pairs, related."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.cli.fit_replay import article, label, rows_of
from aggregator.domain import Analysis
from aggregator.errors import BadInput
from aggregator.offline import jsonl
from aggregator.offline.evaluation import calibration
from aggregator.offline.evaluation.calibration import Curve
from aggregator.runtime.exit_codes import OK
from aggregator.settings import Settings

if TYPE_CHECKING:
    from aggregator.analysis.analyzer import Analyser
    from aggregator.offline.evaluation.near_duplicates import Labelled


def near_duplicates(args: argparse.Namespace, settings: Settings) -> int:
    """Score the verdicts on labelled articles, the paper's rule beside the policy in force."""
    from aggregator.app import policy_of
    from aggregator.offline.evaluation import near_duplicates as protocol

    jsonl.check_readable([*args.files, *args.background])
    if args.grid:
        return _grid(args)
    gold, background = _labelled(args.files, args.html), [article(row) for row in rows_of(args.background)]
    analyser = _analyser(settings)
    policy = policy_of(settings)
    policies = {n: p for n, p in protocol.POLICIES.items() if p.name == "hamming"} | {policy.name: policy}
    rows = asyncio.run(
        protocol.evaluate(gold, analyser, orders=args.orders, policies=policies, background=background)
    )
    curves = _calibrated(args, gold, analyser)
    if args.json:
        listed = [row.as_json() for row in rows]
        print(json.dumps({"rows": listed, "curves": calibration.as_json(curves)} if curves else listed))
        return OK
    print(f"{len(gold)} labelled articles, {len(background)} of background, random orders: {args.orders}")
    print(protocol.table(rows))
    _advise(curves)
    return OK


def _grid(args: argparse.Namespace) -> int:
    """The published system over a grid of its settings."""
    from aggregator.offline.evaluation import shingling

    settings = shingling.grid(
        args.shingle, args.sample, args.sketch, args.collisions, args.leading, args.overlap
    )
    background = [article(row) for row in rows_of(args.background)]
    lines = shingling.evaluate(_labelled(args.files), settings, orders=args.orders, background=background)
    print(json.dumps([line.as_json() for line in lines]) if args.json else shingling.table(lines))
    return OK


def clusters(args: argparse.Namespace, settings: Settings) -> int:
    """Compare groups of copies with labelled ones."""
    from aggregator.app import policy_of
    from aggregator.offline.evaluation import clusters as protocol

    jsonl.check_readable([*args.files, *args.background])
    gold, analyser = _labelled(args.files, args.html), _analyser(settings)
    background = [article(row) for row in rows_of(args.background)]
    found = asyncio.run(
        protocol.evaluate(
            gold, analyser, policy=policy_of(settings), orders=args.orders, background=background
        )
    )
    curves = _calibrated(args, gold, analyser)
    if args.json:
        listed = [row.as_json() for row in found]
        print(json.dumps({"rows": listed, "curves": calibration.as_json(curves)} if curves else listed))
        return OK
    print(protocol.table(found))
    _advise(curves)
    return OK


def pairs(args: argparse.Namespace, settings: Settings) -> int:
    """Score judged pairs."""
    from aggregator.offline.evaluation import pairs as protocol

    jsonl.check_readable(args.files)
    report = protocol.evaluate(protocol.pairs_of(rows_of(args.files)), _analyser(settings))
    curves = report.curves()
    if args.plot:
        calibration.draw(curves, Path(args.plot))
    if args.json:
        print(json.dumps(report.as_json() | {"curves": calibration.as_json(curves)}))
        return OK
    print(protocol.table(report))
    _advise(curves)
    return OK


def related(args: argparse.Namespace, settings: Settings) -> int:
    """Score related articles."""
    from aggregator.app import policy_of
    from aggregator.offline.evaluation import related as protocol

    jsonl.check_readable([*args.files, *args.background])
    gold, analyser = _labelled(args.files), _analyser(settings)
    report = asyncio.run(
        protocol.evaluate(
            gold,
            analyser,
            background=[article(row) for row in rows_of(args.background)],
            k=args.limit,
            policy=policy_of(settings),
        )
    )
    curves: list[Curve] = []
    if args.plot or args.calibrate:
        curves = calibration.of_events(*_analysed(gold, analyser))
        _draw(args, curves)
    if args.json:
        print(json.dumps(report.as_json() | ({"curves": calibration.as_json(curves)} if curves else {})))
        return OK
    print(protocol.table(report))
    _advise(curves)
    return OK


def _calibrated(args: argparse.Namespace, gold: Sequence[Labelled], analyser: Analyser) -> list[Curve]:
    """Curves of labelled articles when they were asked for, drawn where that was said."""
    if not args.plot and not args.calibrate:
        return []
    curves = calibration.of_articles(*_analysed(gold, analyser))
    _draw(args, curves)
    return curves


def _analysed(gold: Sequence[Labelled], analyser: Analyser) -> tuple[list[Analysis], list[str]]:
    """What could be analysed, and its labels."""
    results = analyser.analyse_many([one.article for one in gold])
    usable = [(r, one.label) for r, one in zip(results, gold, strict=True) if isinstance(r, Analysis)]
    return [analysis for analysis, _ in usable], [label for _, label in usable]


def _draw(args: argparse.Namespace, curves: Sequence[Curve]) -> None:
    if args.plot:
        calibration.draw(curves, Path(args.plot))


def _advise(curves: Sequence[Curve]) -> None:
    if curves:
        print(f"\n{calibration.advice(curves)}")


def _labelled(files: Sequence[str], html: str = "") -> list[Labelled]:
    """The labelled articles; with ``html`` their pages' markup in place of their texts.

    Raises BadInput, also when there are none, or two under one id: the second would be taken for the first again.
    """
    from aggregator.offline.evaluation.html_articles import with_pages
    from aggregator.offline.evaluation.near_duplicates import Labelled

    gold = [Labelled(article(row), label(row, at)) for at, row in enumerate(rows_of(files), 1)]
    if not gold:
        raise BadInput(f"{', '.join(files)}: there are no articles in it.")
    if (twice := Counter(one.article.id for one in gold).most_common(1)[0])[1] > 1:
        raise BadInput(f"The id {twice[0]!r} stands for {twice[1]} of these articles: give each its own.")
    if not html:
        return gold
    pages = with_pages([one.article for one in gold], Path(html))
    return [Labelled(page, one.label) for page, one in zip(pages, gold, strict=True)]


def _analyser(settings: Settings) -> Analyser:
    from aggregator.analysis.analyzer import Analyser
    from aggregator.analysis.models import load_models

    return Analyser(load_models(Path(settings.models_dir) if settings.models_dir else None))
