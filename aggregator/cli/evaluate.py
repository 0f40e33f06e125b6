"""``aggregator evaluate`` on labelled articles and pairs: near-duplicates, clusters, pairs, related."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.cli.fit_replay import parse_article, parse_label, read_rows
from aggregator.domain import Analysis
from aggregator.errors import InvalidInput
from aggregator.offline import jsonl
from aggregator.offline.evaluation import calibration
from aggregator.offline.evaluation.calibration import Curve
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.settings import Settings

if TYPE_CHECKING:
    from aggregator.analysis.analyzer import Analyzer
    from aggregator.offline.evaluation.near_duplicates import LabeledArticle


def near_duplicates(args: argparse.Namespace, settings: Settings) -> int:
    """Score the verdicts on labelled articles, the paper's rule beside the policy in force."""
    from aggregator.app import build_policy
    from aggregator.offline.evaluation import near_duplicates as protocol

    jsonl.check_readable([*args.files, *args.background])
    if args.grid:
        return _evaluate_grid(args)
    gold, background = (
        _load_labeled(args.files, args.html),
        [parse_article(row) for row in read_rows(args.background)],
    )
    analyser = _load_analyzer(settings)
    policy = build_policy(settings)
    policies = {n: p for n, p in protocol.POLICIES.items() if p.name == "hamming"} | {policy.name: policy}
    rows = asyncio.run(
        protocol.evaluate(gold, analyser, orders=args.orders, policies=policies, background=background)
    )
    curves = _calibration_curves(args, gold, analyser)
    if args.json:
        listed = [row.as_json() for row in rows]
        print(json.dumps({"rows": listed, "curves": calibration.as_json(curves)} if curves else listed))
        return EXIT_OK
    print(f"{len(gold)} labelled articles, {len(background)} of background, random orders: {args.orders}")
    print(protocol.format_table(rows))
    _print_advice(curves)
    return EXIT_OK


def _evaluate_grid(args: argparse.Namespace) -> int:
    """The published system over a grid of its settings."""
    from aggregator.offline.evaluation import shingling

    settings = shingling.settings_grid(
        args.shingle, args.sample, args.sketch, args.collisions, args.leading, args.overlap
    )
    background = [parse_article(row) for row in read_rows(args.background)]
    lines = shingling.evaluate(_load_labeled(args.files), settings, orders=args.orders, background=background)
    print(json.dumps([line.as_json() for line in lines]) if args.json else shingling.format_table(lines))
    return EXIT_OK


def clusters(args: argparse.Namespace, settings: Settings) -> int:
    """Compare groups of copies with labelled ones."""
    from aggregator.app import build_policy
    from aggregator.offline.evaluation import clusters as protocol

    jsonl.check_readable([*args.files, *args.background])
    gold, analyser = _load_labeled(args.files, args.html), _load_analyzer(settings)
    background = [parse_article(row) for row in read_rows(args.background)]
    found = asyncio.run(
        protocol.evaluate(
            gold, analyser, policy=build_policy(settings), orders=args.orders, background=background
        )
    )
    curves = _calibration_curves(args, gold, analyser)
    if args.json:
        listed = [row.as_json() for row in found]
        print(json.dumps({"rows": listed, "curves": calibration.as_json(curves)} if curves else listed))
        return EXIT_OK
    print(protocol.format_table(found))
    _print_advice(curves)
    return EXIT_OK


def pairs(args: argparse.Namespace, settings: Settings) -> int:
    """Score judged pairs."""
    from aggregator.offline.evaluation import pairs as protocol

    jsonl.check_readable(args.files)
    report = protocol.evaluate(protocol.parse_pairs(read_rows(args.files)), _load_analyzer(settings))
    curves = report.curves()
    if args.plot:
        calibration.draw_curves(curves, Path(args.plot))
    if args.json:
        print(json.dumps(report.as_json() | {"curves": calibration.as_json(curves)}))
        return EXIT_OK
    print(protocol.format_table(report))
    _print_advice(curves)
    return EXIT_OK


def related(args: argparse.Namespace, settings: Settings) -> int:
    """Score related articles."""
    from aggregator.app import build_policy
    from aggregator.offline.evaluation import related as protocol

    jsonl.check_readable([*args.files, *args.background])
    gold, analyser = _load_labeled(args.files), _load_analyzer(settings)
    report = asyncio.run(
        protocol.evaluate(
            gold,
            analyser,
            background=[parse_article(row) for row in read_rows(args.background)],
            k=args.limit,
            policy=build_policy(settings),
        )
    )
    curves: list[Curve] = []
    if args.plot or args.calibrate:
        curves = calibration.event_curves(*_analyze_labeled(gold, analyser))
        _draw_curves(args, curves)
    if args.json:
        print(json.dumps(report.as_json() | ({"curves": calibration.as_json(curves)} if curves else {})))
        return EXIT_OK
    print(protocol.format_table(report))
    _print_advice(curves)
    return EXIT_OK


def _calibration_curves(
    args: argparse.Namespace, labeled: Sequence[LabeledArticle], analyser: Analyzer
) -> list[Curve]:
    """Curves of labelled articles when they were asked for, drawn where that was said."""
    if not args.plot and not args.calibrate:
        return []
    curves = calibration.duplicate_curves(*_analyze_labeled(labeled, analyser))
    _draw_curves(args, curves)
    return curves


def _analyze_labeled(
    labeled: Sequence[LabeledArticle], analyser: Analyzer
) -> tuple[list[Analysis], list[str]]:
    """What could be analysed, and its labels."""
    results = analyser.analyze_many([one.article for one in labeled])
    usable = [(r, one.label) for r, one in zip(results, labeled, strict=True) if isinstance(r, Analysis)]
    return [analysis for analysis, _ in usable], [label for _, label in usable]


def _draw_curves(args: argparse.Namespace, curves: Sequence[Curve]) -> None:
    if args.plot:
        calibration.draw_curves(curves, Path(args.plot))


def _print_advice(curves: Sequence[Curve]) -> None:
    if curves:
        print(f"\n{calibration.threshold_advice(curves)}")


def _load_labeled(files: Sequence[str], html: str = "") -> list[LabeledArticle]:
    """The labelled articles; with ``html`` their pages' markup in place of their texts.

    Raises BadInput, also when there are none, or two under one id: the second would be taken for the first again.
    """
    from aggregator.offline.evaluation.html_articles import with_page_html
    from aggregator.offline.evaluation.near_duplicates import LabeledArticle

    gold = [
        LabeledArticle(parse_article(row), parse_label(row, at)) for at, row in enumerate(read_rows(files), 1)
    ]
    if not gold:
        raise InvalidInput(f"{', '.join(files)}: there are no articles in it.")
    if (twice := Counter(one.article.id for one in gold).most_common(1)[0])[1] > 1:
        raise InvalidInput(f"The id {twice[0]!r} stands for {twice[1]} of these articles: give each its own.")
    if not html:
        return gold
    pages = with_page_html([one.article for one in gold], Path(html))
    return [LabeledArticle(page, one.label) for page, one in zip(pages, gold, strict=True)]


def _load_analyzer(settings: Settings) -> Analyzer:
    from aggregator.analysis.analyzer import Analyzer
    from aggregator.analysis.models import load_models

    return Analyzer(load_models(Path(settings.models_dir) if settings.models_dir else None))
