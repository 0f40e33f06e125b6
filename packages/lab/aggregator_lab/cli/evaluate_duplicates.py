"""``aggregator evaluate duplicates``: wrong duplicates among unlabeled articles, edited copies, judgments."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from aggregator.cli.progress import open_bar
from aggregator.domain import Article
from aggregator.errors import EXIT_OK, InvalidInput
from aggregator.settings import Settings
from aggregator_archive.cli.dedupe import selected_policy
from aggregator_lab.cli.evaluate import check_files, load_analyzer
from aggregator_lab.evaluation import built_streams, duplicates, edit_recall, judgments
from aggregator_lab.evaluation.article_files import read_articles
from aggregator_lab.evaluation.duplicate_stream import DuplicateStream
from aggregator_lab.evaluation.published_shingling import COMPARED_SETTING, PublishedSettings
from aggregator_lab.evaluation.shingling import ShinglingSettings, settings_grid

SENT_AT_ONCE = 512  # articles per step of the progress bar
DEFAULT_OVERLAPS, DEFAULT_COLLISIONS = [0.2], [3]  # of --compare shingling and published


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Count the duplicates of the files, or what is lost in streams built from them."""
    check_files(args)
    return asyncio.run(_evaluate(args, settings))


async def _evaluate(args: argparse.Namespace, settings: Settings) -> int:
    compared, published = _compared_settings(args)
    verdicts = judgments.read_judgments(args.judged, args.files) if args.judged else []
    articles = read_articles(args.files, args.column, args.max)
    analyzer, policy = load_analyzer(settings), selected_policy(args, settings)[1]
    if args.built:
        built = await built_streams.evaluate(
            articles, analyzer, policy, args.built, args.seed, args.kinds or ()
        )
        print(json.dumps(built_streams.as_json(*built), ensure_ascii=False) if args.json
              else built_streams.format_table(*built))  # fmt: skip
        return EXIT_OK
    stream = DuplicateStream(analyzer, policy)
    await _send_with_progress(stream, articles)
    report = duplicates.service_report(stream)
    judged = judgments.evaluate(verdicts, stream.stored) if args.judged else None
    shown = judgments.sample(report.dropped_pairs, args.show, args.seed) if args.show else []
    others = [duplicates.shingling_report(stream, setting) for setting in compared]
    others += [duplicates.published_report(stream, setting) for setting in published]
    edits = await edit_recall.evaluate(stream, args.edits, args.seed) if args.edits else []
    if args.json:
        result: dict[str, Any] = report.as_json()
        if args.compare:
            result["compared"] = [other.as_json() for other in others]
        if args.edits:
            result["edits"] = [row.as_json() for row in edits]
        if judged:
            result["judged"] = judged.as_json()
        print(json.dumps(result, ensure_ascii=False))
    else:
        tables = [*map(duplicates.format_table, [report, *others])]
        tables += [edit_recall.format_table(edits)] if args.edits else []
        tables += [judgments.format_table(judged)] if judged else []
        if args.show:
            marked = judgments.sample(report.not_articles, args.show, args.seed)
            tables += [duplicates.format_pairs(shown), "\n".join(map(duplicates.format_article, marked))]
        if report.pairs and not (args.page or judged):
            tables.append("`--page judge.html` writes a page on which to judge a sample of these by hand.")
        print("\n\n".join(tables), flush=True)
    if args.page:
        _write_page(args, report)
    return EXIT_OK


def _compared_settings(args: argparse.Namespace) -> tuple[list[ShinglingSettings], list[PublishedSettings]]:
    """The settings of our reading and of the published rule; an option without its rule is refused."""
    options = (("--overlap", args.overlap, "shingling"), ("--collisions", args.collisions, "published"))
    for option, given, rule in options:
        if given is not None and args.compare != rule:
            raise InvalidInput(f"{option} belongs to --compare {rule}; add that or leave it out.")
    if args.compare == "shingling":
        return settings_grid([3], [1], [64], [1], [1.0], args.overlap or DEFAULT_OVERLAPS), []
    if args.compare == "published":
        return [], _published_settings(args.collisions or DEFAULT_COLLISIONS)
    return [], []


def _published_settings(collisions: Iterable[int]) -> list[PublishedSettings]:
    most = COMPARED_SETTING.k * COMPARED_SETTING.p
    if not all(0 <= t < most for t in collisions):
        raise InvalidInput(f"--collisions: expected numbers from 0 to {most - 1}.")
    return [replace(COMPARED_SETTING, t=t) for t in collisions]


async def _send_with_progress(stream: DuplicateStream, articles: list[Article]) -> None:
    shown = len(articles) > SENT_AT_ONCE
    with open_bar(shown, desc="articles", total=len(articles), unit=" articles") as bar:
        for start in range(0, len(articles), SENT_AT_ONCE):
            part = articles[start : start + SENT_AT_ONCE]
            await stream.send(part)
            bar.update(len(part))


def _write_page(args: argparse.Namespace, report: duplicates.DuplicatesReport) -> None:
    if not report.pairs:
        raise InvalidInput("page: no duplicate was found that could be judged.")
    chosen = judgments.sample(report.pairs, args.pairs, args.seed)
    Path(args.page).write_text(
        judgments.render_page(chosen, len(report.pairs), report.method), encoding="utf-8", errors="replace"
    )
    print(f"{len(chosen)} of {len(report.pairs)} pairs to judge in a browser: {args.page}", file=sys.stderr)
