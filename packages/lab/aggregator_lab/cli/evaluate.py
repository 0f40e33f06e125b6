"""``aggregator evaluate``: own, near-duplicates, clusters, pairs, related and events."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import functools
import importlib
import itertools
import json
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggregator import jsonl
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.cli.common_options import SETTING_FIELDS
from aggregator.cli.progress import open_bar
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, Article
from aggregator.errors import EXIT_OK, InvalidInput
from aggregator.settings import DATA_VARIABLE, Settings
from aggregator.time_units import HOUR_MS
from aggregator_archive import input_check
from aggregator_archive.cli.dedupe import selected_policy
from aggregator_archive.cli.options import input_file
from aggregator_archive.executors import end_with_parent
from aggregator_archive.optional_imports import import_optional
from aggregator_archive.rows import CONTENT_FIELDS, id_text, listed, parse_article, parse_rows, read_rows
from aggregator_lab.cli.evaluate_options import COLUMNS
from aggregator_lab.evaluation import calibration, plots, wrong_pairs
from aggregator_lab.evaluation.calibration import Curve
from aggregator_lab.evaluation.rankings import BM25, RANKINGS
from aggregator_lab.evaluation.wrong_pairs import JudgedPair
from aggregator_lab.labeled import load_articles, load_labeled, originals_first, shuffle
from aggregator_lab.model_writing import check_writable

if TYPE_CHECKING:
    from aggregator_lab.evaluation.near_duplicates import PolicyResult
    from aggregator_lab.labeled import LabeledArticle

    Order = Callable[[Sequence[LabeledArticle], int], list[LabeledArticle]]

RULE_MODES = ("stories", "literal")
# Protocols of ``own`` by the columns that their files have; the last fits all articles.
PROTOCOLS_BY_COLUMNS = {("text1", "text2"): "pairs", ("cluster",): "near-duplicates", (): "duplicates"}


def own(args: argparse.Namespace, settings: Settings) -> int:
    """Run the protocol that fits the columns of the files, and say which."""
    if jsonl.STDIN in args.files:
        raise InvalidInput("own reads its input twice and cannot use standard input; name a file.")
    input_check.check_formats(args.files)
    rows = list(itertools.islice(read_rows(args.files, args.column, report=False), input_check.COLUMN_ROWS))
    if not rows:
        raise InvalidInput(f"{', '.join(args.files)}: no articles found.")
    columns = {column for row in rows for column, value in row.items() if value is not None}
    if options := input_check.mapped_names(sorted(columns), COLUMNS):
        raise InvalidInput(f"Names of columns are in lower case; map these with {options}.")
    wanted, name = next(item for item in PROTOCOLS_BY_COLUMNS.items() if columns.issuperset(item[0]))
    if not wanted and columns.isdisjoint(CONTENT_FIELDS):
        named = listed(list(dict.fromkeys(column for row in rows for column in row)))
        raise InvalidInput(
            f"The columns are {named}; map them. Articles: --column text=NAME, with id, title, source and "
            "published_at where you have them, and cluster for labels. Pairs: --column text1=NAME "
            "--column text2=NAME --column same=NAME."
        )
    if args.errors and not wanted:
        raise InvalidInput("--errors needs labels; `evaluate duplicates FILE --page judge.html` needs none.")
    found = f"labels in {wanted[0]}" if wanted else "no labels (cluster, or text1, text2 and same)"
    found = "pairs in text1 and text2" if name == "pairs" else found
    given = dict(args.column)
    own_names = sorted(columns - ({*given.values()} - {*COLUMNS}))
    shown = ", ".join(f"{c} (from {given[c]})" if c in given else c for c in own_names)
    print(f"columns {shown}; {found}: `aggregator evaluate {name}`", file=sys.stderr)
    chosen = args.protocols[name].parse_args([*args.files, *(["--json"] if args.json else [])])
    for option in (*SETTING_FIELDS, "config_file", "column", "errors"):
        if hasattr(args, option):
            setattr(chosen, option, getattr(args, option))
    module, _, function = chosen.command_path.partition(":")
    return int(getattr(importlib.import_module(module), function)(chosen, settings))


def check_files(args: argparse.Namespace, *others: str) -> None:
    """Refuse before any work files that cannot be read, columns that are missing, and a plot."""
    for remark in input_check.check_columns([*args.files, *others], args.column, COLUMNS):
        print(remark, file=sys.stderr)
    if vars(args).get("plot"):
        plots.check_plot(args.plot)
    for file in filter(None, map(vars(args).get, ("plot", "errors", "page"))):
        check_writable(Path(file))


def near_duplicates(args: argparse.Namespace, settings: Settings) -> int:
    """Score verdicts on labeled articles, under the rule of the paper and under the current policy."""
    from aggregator_lab.evaluation import near_duplicates as protocol

    check_files(args, *args.background)
    gold, background = _load_gold(args)
    if args.plot or args.calibrate:
        calibration.check_article_count(gold)
    if args.grid and (args.errors or args.calibrate or args.plot):
        raise InvalidInput("--grid: leave out --errors, --calibrate and --plot.")
    analyzer = load_analyzer(settings)
    name, policy = selected_policy(args, settings)
    policies = {n: p for n, p in protocol.POLICIES.items() if p.name == "hamming"} | {name: policy}

    def evaluate(order: Order) -> list[PolicyResult]:
        return asyncio.run(
            protocol.evaluate(
                gold, analyzer, orders=args.orders, policies=policies, background=background, order=order
            )
        )

    if args.grid:
        return _evaluate_grid(args, gold, background, evaluate)
    rows = evaluate(originals_first if args.plant else shuffle)
    sizes = f"{len(gold)} labeled articles, {len(background)} in the background, random orders: {args.orders}"
    table = f"{sizes}\n{protocol.format_table(rows)}\n{wrong_pairs.HINT.format(name)}"
    if args.errors:
        articles = {article.id: article for article in (*background, *(item.article for item in gold))}
        wrong = next(row.wrong for row in rows if row.policy == name)
        pairs = [JudgedPair(articles[a], articles[b], same) for a, b, same in wrong]
        wrong_pairs.write(args.errors, pairs, analyzer, policy)
    curves = _duplicate_curves(args, gold, analyzer)
    return _print_rows(args, [row.as_json() for row in rows], table, curves)


def _load_gold(args: argparse.Namespace) -> tuple[list[LabeledArticle], list[Article]]:
    """Labeled articles and those stored before them; with ``--plant`` both are made from unlabeled files."""
    background = load_articles(args.background, args.column)
    if not args.plant:
        return _load_labeled(args), background
    from aggregator_lab.evaluation.article_files import read_articles
    from aggregator_lab.evaluation.edit_recall import plant_copies

    if args.html:
        raise InvalidInput("plant: copies are made from texts; leave out --html.")
    gold, others = plant_copies(read_articles(args.files, columns=args.column), args.plant)
    return gold, [*background, *others]


def _load_labeled(args: argparse.Namespace) -> list[LabeledArticle]:
    """Labeled articles; with ``--html`` the texts are replaced by the markup of their pages."""
    labeled = load_labeled(args.files, args.column)
    if not args.html:
        return labeled
    from aggregator_lab.evaluation.article_files import with_page_html

    pages = with_page_html([item.article for item in labeled], Path(args.html))
    return [dataclasses.replace(item, article=page) for page, item in zip(pages, labeled, strict=True)]


def _evaluate_grid(
    args: argparse.Namespace,
    gold: list[LabeledArticle],
    background: list[Article],
    evaluate: Callable[[Order], list[PolicyResult]],
) -> int:
    """Score shingling over a grid of settings: our reading, or the published rule with one row of ours.

    ``evaluate``: the results of the service in an order, to compare.
    """
    from aggregator_lab.evaluation import near_duplicates, published_shingling, shingling

    given = {
        "n": args.shingle, "k": args.sample, "p": args.sketch,
        "t": args.collisions, "f": args.leading, "r": args.overlap,
    }  # fmt: skip
    given = {letter: values for letter, values in given.items() if values is not None}
    if args.grid == "ours":
        settings = shingling.settings_grid(**{**shingling.OUR_VALUES, **given})
        ours = shingling.evaluate(gold, settings, orders=args.orders, background=background)
        if args.json:
            print(json.dumps([row.as_json() for row in ours]))
        else:
            table = near_duplicates.format_table(evaluate(shuffle))
            print(f"{shingling.format_table(ours)}\n\nthe service, the same orders:\n{table}")
        return EXIT_OK
    if "r" in given:
        raise InvalidInput("--overlap: the published rule computes no overlap; use --grid ours.")
    published = published_shingling.evaluate(
        gold,
        published_shingling.settings_grid(**{**published_shingling.GRID_VALUES, **given}),
        orders=args.orders,
        background=background,
    )
    ours = shingling.evaluate(
        gold, [shingling.COMPARED_SETTING], orders=args.orders, background=background,
        order=originals_first,
    )  # fmt: skip
    service = evaluate(originals_first)
    if args.json:
        tables: dict[str, Sequence[Any]] = {"published": published, "ours": ours, "service": service}
        rows = {name: [row.as_json() for row in table] for name, table in tables.items()}
        print(json.dumps({**rows, "table_4": dict(published_shingling.TABLE_4)}))
    else:
        print(published_shingling.format_table(published))
        print(f"\nour reading (shingling.py), the same orders:\n{shingling.format_table(ours)}")
        print(f"\nthe service, the same orders:\n{near_duplicates.format_table(service)}")
    return EXIT_OK


def clusters(args: argparse.Namespace, settings: Settings) -> int:
    """Compare duplicate groups with labeled ones."""
    from aggregator_lab.evaluation import near_duplicates as protocol

    check_files(args, *args.background)
    gold, analyzer = _load_labeled(args), load_analyzer(settings)
    if args.plot or args.calibrate:
        calibration.check_article_count(gold)
    background, policy = load_articles(args.background, args.column), selected_policy(args, settings)[1]
    rows = asyncio.run(
        protocol.evaluate_groups(gold, analyzer, policy=policy, orders=args.orders, background=background)
    )
    curves = _duplicate_curves(args, gold, analyzer)
    return _print_rows(args, [row.as_json() for row in rows], protocol.format_groups_table(rows), curves)


def pairs(args: argparse.Namespace, settings: Settings) -> int:
    """Score human-judged pairs."""
    from aggregator_lab.evaluation import pairs as protocol

    check_files(args)
    judged, analyzer = protocol.load_pairs(args.files, args.column), load_analyzer(settings)
    report = protocol.evaluate(judged, analyzer)
    table = f"{protocol.format_table(report)}\n{wrong_pairs.HINT.format('verified')}"
    print(json.dumps(report.as_json()) if args.json else table, flush=True)
    if args.errors:
        wrong_pairs.write(args.errors, report.wrong("verified"), analyzer, Policy())
    return EXIT_OK


def related(args: argparse.Namespace, settings: Settings) -> int:
    """Score related articles, file by file."""
    from aggregator_lab.evaluation import related as protocol
    from aggregator_lab.evaluation.article_files import read_articles
    from aggregator_lab.evaluation.judgments import read_judgments

    check_files(args, *args.background)
    if missing := set(args.compare or ()).difference(RANKINGS):
        raise InvalidInput(f"--compare: {missing.pop()!r} is not one of {', '.join(RANKINGS)}.")
    if "bm25" in (args.compare or ()):
        import_optional(*BM25)
    analyzer, background = load_analyzer(settings), load_articles(args.background, args.column)
    results = []
    for file in args.files:
        labels = parse_rows([file], args.column, _label_by_id, report=False)
        report = asyncio.run(
            protocol.evaluate(
                read_articles([file], columns=args.column),
                analyzer,
                labels={id_: label for id_, label in labels if label},
                background=background,
                k=args.limit,
                lists=args.lists,
                min_score=settings.related_min_score,
                policy=selected_policy(args, settings)[1],
                compare=args.compare or (),
                judgments=read_judgments(args.judged, [file]) if args.judged else (),
                progress=lambda step, items: open_bar(True, desc=step, iterable=items),
            )
        )
        results.append({"file": Path(file).name, **report.as_json()})
        if not args.json:
            print(protocol.format_table(report, Path(file).name))
            print(protocol.format_firsts(report, args.show) if args.show else "", flush=True)
    if args.json:
        print(json.dumps(results))
    return EXIT_OK


def _label_by_id(_: int, row: dict[str, Any]) -> tuple[str, str]:
    return parse_article(row, {}).id, id_text(row.get("cluster"))


def relatedness(args: argparse.Namespace, settings: Settings) -> int:
    """Fit the probability of one subject to judged pairs."""
    from aggregator_lab.evaluation import relatedness as protocol
    from aggregator_lab.evaluation.article_files import read_articles
    from aggregator_lab.evaluation.judgments import read_judgments
    from aggregator_lab.evaluation.pairs import load_pairs

    if not args.files:
        judged = sorted(Path(args.judged).glob("*.json"))
        args.files = [input_file(f"{path.stem}.jsonl.gz") for path in judged]
        if not any(map(os.path.exists, args.files)):
            raise InvalidInput(
                f"FILE: name articles of {args.judged}, or their directory in {DATA_VARIABLE}."
            )
    check_files(args, *args.pairs)
    analyzer = load_analyzer(settings)
    found = protocol.evidence_of_rows(load_pairs(args.pairs, args.column) if args.pairs else [], analyzer)
    for file in open_bar(True, iterable=args.files, unit=" files"):
        verdicts, articles = read_judgments(args.judged, [file]), read_articles([file], columns=args.column)
        found += asyncio.run(protocol.evidence_of_ids(articles, verdicts, analyzer))
    result = protocol.evaluate(found)
    print(json.dumps(result) if args.json else protocol.format_table(result))
    return EXIT_OK


def open_benchmark(args: argparse.Namespace, settings: Settings) -> int:
    """Write the open benchmark."""
    from aggregator_lab.open_benchmark.generate import write_directory

    count = write_directory(Path(args.out), args.stories, args.seed)
    print(f"{count:,} articles of {args.stories:,} stories written to {args.out}")
    return EXIT_OK


def events(args: argparse.Namespace, settings: Settings) -> int:
    """Score event detection on known events."""
    from aggregator.app import build_burst_rule
    from aggregator_lab.evaluation import event_metrics
    from aggregator_lab.evaluation import events as protocol

    lists = [Path(file) for file in args.files]
    windows = lists.pop(0) if len(lists) > 1 and lists[0].is_dir() else lists[0].parent
    rule = build_burst_rule(settings)
    with contextlib.ExitStack() as stack:
        executor = None
        if args.processes > 1:
            executor = stack.enter_context(ProcessPoolExecutor(args.processes, initializer=end_with_parent))
        reports = [
            protocol.evaluate(
                windows, lists, rule, label=mode, executor=executor, models_dir=settings.models_dir
            )
            for mode in (RULE_MODES if args.mode == "both" else (args.mode,))
        ]
    results = [report.as_json() for report in reports]
    result = results if args.mode == "both" else results[0]
    print(json.dumps(result) if args.json else event_metrics.format_table(reports))
    return EXIT_OK


def desk(args: argparse.Namespace, settings: Settings) -> int:
    """Score event detection on a mix of streams."""
    from aggregator.app import build_burst_rule
    from aggregator_archive.replay import parse_time_ms
    from aggregator_lab.evaluation import desk as protocol
    from aggregator_lab.evaluation import desk_report
    from aggregator_lab.evaluation import desk_streams as mixing
    from aggregator_lab.evaluation.events import read_known_events

    more = args.more or []
    jsonl.check_readable([*args.files, *args.marks, *args.peaks, *more[:1]])
    for file in filter(None, (args.alerts, args.page)):
        check_writable(Path(file))
    moments = [parse_time_ms(moment) for moment in args.align.split(",")] if args.align else []
    if None in moments or not all(number.isdecimal() for number in more[1:]):
        raise InvalidInput("--align: RFC 3339 times, --more: a file and a number.")
    read = functools.partial(mixing.read_stream, cache=Path(args.cache) if args.cache else None)
    streams = mixing.align([read(Path(file)) for file in args.files], [at_ms for at_ms in moments if at_ms])
    if more:
        span_ms = streams[0].times_ms[0], streams[0].times_ms[-1]
        if args.more_hours and moments:
            span_ms = moments[0] - args.more_hours * HOUR_MS, moments[0] + args.more_hours * HOUR_MS
        streams.append(mixing.more_headlines(read(Path(more[0])), int(more[1]), *span_ms))
    known = [event for file in args.events for event in read_known_events(Path(file))]
    marks = {(str(m.get("file")), str(m.get("id"))): str(m.get("mark")) for m in read_rows(args.marks)}
    peaks = [
        protocol.Peak(str(p["file"]), str(p["name"]), parse_time_ms(p["at"]) or 0, str(p["mark"]))
        for file in args.peaks
        for p in json.loads(Path(file).read_text("utf-8"))
    ]
    result = protocol.run(streams, build_burst_rule(settings), known, marks, peaks)
    alerts = [result.alert_json(alert) for alert in result.alerts]
    if args.alerts:
        Path(args.alerts).write_text(json.dumps(alerts, ensure_ascii=False, indent=1), "utf-8")
    print(json.dumps(result.as_json()) if args.json else desk_report.format_table(result.as_json()))
    if args.page:
        Path(args.page).write_text(desk_report.alerts_page(alerts), "utf-8")
    return EXIT_OK


def _print_rows(
    args: argparse.Namespace, rows: list[dict[str, Any]], table: str, curves: Sequence[Curve]
) -> int:
    """Print a result of several rows, with curves if there are any; then draw these."""
    if args.json:
        print(json.dumps({"rows": rows, "curves": calibration.as_json(curves)} if curves else rows))
    else:
        print(f"{table}\n\n{calibration.threshold_advice(curves)}" if curves else table, flush=True)
    if args.plot:
        plots.draw_curves(curves, args.plot)
    return EXIT_OK


def _duplicate_curves(
    args: argparse.Namespace, labeled: Sequence[LabeledArticle], analyzer: Analyzer
) -> list[Curve]:
    """Calibration curves; empty without ``--calibrate`` and ``--plot``."""
    if not args.plot and not args.calibrate:
        return []
    results = analyzer.analyze_many([item.article for item in labeled])
    usable = [(r, item.label) for r, item in zip(results, labeled, strict=True) if isinstance(r, Analysis)]
    return calibration.duplicate_curves([r for r, _ in usable], [label for _, label in usable])


def load_analyzer(settings: Settings) -> Analyzer:
    """The analyzer with the feature models of the settings."""
    return Analyzer(load_models(Path(settings.models_dir) if settings.models_dir else None))
