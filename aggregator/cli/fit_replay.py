"""Commands that need no store and no server: ``fit``, ``replay`` and ``evaluate``."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from aggregator.cli.progress import ItemProgress
from aggregator.errors import InvalidInput
from aggregator.offline import jsonl
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.settings import Settings

if TYPE_CHECKING:
    from aggregator.events.detection import BurstRule


def fit(args: argparse.Namespace, settings: Settings) -> int:
    """Fit a feature model and save it."""
    from aggregator.offline.fitting import FitSettings, fit_file

    names = ("terms", "components", "hyperplanes", "counts", "whiten")
    chosen = {name: getattr(args, name) for name in names}
    rules = FitSettings(**{name: value for name, value in chosen.items() if value is not None})
    described = {"corpus": args.corpus, "licence": args.licence}
    metadata = {name: value for name, value in described.items() if value is not None}
    with ItemProgress("articles", shown=not args.no_progress) as progress:
        fitted = fit_file(
            args.files, args.group, args.out, rules, metadata=metadata, progress=progress.set_count
        )
    model = fitted.model
    size = Path(args.out).stat().st_size
    print(
        f"{args.out}: model {model.group}.{model.id}, {len(model.vocabulary)} terms, "
        f"{fitted.settings.components} components, {size / 1e6:.1f} MB. "
        "Put it into a directory and give that as --models-dir.",
        file=sys.stderr,
    )
    return EXIT_OK


def replay(args: argparse.Namespace, settings: Settings) -> int:
    """Dated articles through the burst rule under their own clock; one line per event that fired."""
    from aggregator.offline.replay import replay as run_through

    jsonl.check_readable(args.files)
    if args.preview is not None:
        return _preview(args, settings)
    events = 0
    with (
        ItemProgress("articles", shown=not args.no_progress) as progress,
        jsonl.open_output(args.out) as write,
    ):
        rows = _require_dates(progress.track(jsonl.read_rows(args.files)))
        for event in run_through(rows, _burst_rule(args, settings)):
            write(msgspec.json.encode(event))
            events += 1
    print(f"{progress.count} articles, {events} event{'s' * (events != 1)}", file=sys.stderr)
    return EXIT_OK


def _preview(args: argparse.Namespace, settings: Settings) -> int:
    """How many alerts would these settings have made, and how many a stricter or a laxer one?"""
    from aggregator.offline.replay import preview, rfc3339

    with (
        ItemProgress("articles", shown=not args.no_progress) as progress,
        jsonl.open_output(args.out) as write,
    ):
        rows = _require_dates(progress.track(jsonl.read_rows(args.files)))
        found = preview(rows, _burst_rule(args, settings), args.preview)
        chosen = found[1]
        write(f"alerts from {rfc3339(chosen.since_ms)} to {rfc3339(chosen.until_ms)}".encode())
        for one in found:
            mark = "  <- as set" if one is chosen else ""
            write(f"sensitivity {one.sensitivity:<6g}{len(one.alerts):>6}{mark}".encode())
        for event in chosen.alerts:
            write(f"{rfc3339(event.detected_at_ms)}  {event.size:>5} items  {event.title}".encode())
    return EXIT_OK


def _require_dates(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same rows; raises BadInput at their end when none had a time, since nothing was replayed then."""
    from aggregator.offline.replay import parse_time_ms

    empty, dated = True, False
    for row in rows:
        empty, dated = False, dated or parse_time_ms(row.get("published_at")) is not None
        yield row
    if not (empty or dated):
        raise InvalidInput(
            "No article has a usable `published_at` (RFC 3339), so there is nothing to replay."
        )


def _burst_rule(args: argparse.Namespace, settings: Settings) -> BurstRule:
    from aggregator.background.wiring import build_burst_rule

    return dataclasses.replace(build_burst_rule(settings), mode=args.mode)


def events(args: argparse.Namespace, settings: Settings) -> int:
    """Score the burst rule on known events."""
    from aggregator.background.wiring import build_burst_rule
    from aggregator.offline.evaluation import event_metrics
    from aggregator.offline.evaluation import events as protocol

    windows = Path(args.windows) if args.windows else Path(args.file).parent
    rule = build_burst_rule(settings)
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(ProcessPoolExecutor(args.processes)) if args.processes > 1 else None
        reports = [
            protocol.evaluate(
                windows, Path(args.file), dataclasses.replace(rule, mode=mode), executor=executor
            )
            for mode in (("stories", "neighbours") if args.mode == "both" else (args.mode,))
        ]
    if args.plot:
        from aggregator.offline.evaluation import plot_window

        for report in reports:
            plot_window.draw_windows(report, Path(args.plot))
    figures = [report.as_json() for report in reports]
    print(
        json.dumps(figures if args.mode == "both" else figures[0])
        if args.json
        else event_metrics.format_table(reports)
    )
    return EXIT_OK


def read_rows(files: Iterable[str]) -> Iterable[dict[str, Any]]:
    """Every row of every file."""
    return jsonl.read_rows(list(files))


def parse_article(row: dict[str, Any]) -> Any:
    """One row of an article file. Raises BadInput."""
    from aggregator.contract.decoding import decode, to_article
    from aggregator.contract.requests import ArticleIn

    names = {field.encode_name for field in msgspec.structs.fields(ArticleIn)}
    given = msgspec.json.encode({k: v for k, v in row.items() if k in names})
    try:
        return to_article(decode(given, msgspec.json.Decoder(ArticleIn).decode))
    except InvalidInput as error:
        raise InvalidInput(f"Article {row.get('id')!r}: {error}", field=error.field) from None


def parse_label(row: dict[str, Any], position: int) -> str:
    """What a row is a copy of, or about. Raises BadInput."""
    given = row.get("cluster")
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    if not isinstance(given, str) or not given:
        raise InvalidInput(f"Article {position} has no `cluster`; give every article one, equal for copies.")
    return given
