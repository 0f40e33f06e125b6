"""The options of `aggregator evaluate`, protocol by protocol."""

from __future__ import annotations

import argparse
from typing import Any

from aggregator.cli import common_options


def evaluate(commands: Any) -> None:
    command = commands.add_parser(
        "evaluate",
        help="score the service on labelled articles or events",
        description="Score the service by a published protocol.",
        allow_abbrev=False,
    )
    protocols = command.add_subparsers(title="protocols", metavar="PROTOCOL", required=True)
    _near_duplicates(protocols)
    _clusters(protocols)
    _pairs(protocols)
    _related(protocols)
    _events(protocols)
    _methods(protocols)


def _near_duplicates(protocols: Any) -> None:
    command = common_options.command(
        protocols, "near-duplicates", "articles with a `cluster` each, shown one after another",
        "aggregator.cli.evaluate:near_duplicates",
    )  # fmt: skip
    _shown(command)
    _background(command, "articles stored before; repeatable")
    _pages(command)
    _calibrate(command)
    command.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    command.add_argument(
        "--grid",
        action="store_true",
        help="the published shingling system over its settings, instead of ours",
    )
    group = command.add_argument_group("values of the grid; letters as published")
    for flag, kind, values, help in (
        ("--shingle", common_options.positive, [2, 3, 5], "n, words per shingle"),
        ("--sample", common_options.positive, [1, 8], "k, one shingle in so many is kept"),
        ("--sketch", common_options.positive, [8, 64], "p, smallest shingles that are looked up"),
        ("--collisions", common_options.positive, [1, 2], "t, of sketches, that make a candidate"),
        ("--leading", float, [1.0], "f, share of the text from its beginning"),
        ("--overlap", float, [0.1, 0.2, 0.4], "r, overlap coefficient of a copy"),
    ):
        shown = ",".join(map(str, values))
        group.add_argument(
            flag,
            metavar="X,...",
            type=common_options.listed(kind),
            default=values,
            help=f"{help} (default {shown})",
        )
    common_options.settings(command, (*common_options.RULES, "log_level", "log_format"))


def _clusters(protocols: Any) -> None:
    command = common_options.command(
        protocols, "clusters", "the groups of copies against labelled ones (ARI, V-measure, B-cubed)",
        "aggregator.cli.evaluate:clusters",
    )  # fmt: skip
    _shown(command)
    _background(command)
    _pages(command)
    _calibrate(command)
    command.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    common_options.settings(command, (*common_options.RULES, "log_level", "log_format"))


def _pairs(protocols: Any) -> None:
    command = common_options.command(
        protocols, "pairs", "pairs that people judged, and which thresholds tell them apart",
        "aggregator.cli.evaluate:pairs",
    )  # fmt: skip
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="text1, text2 and `same` or `overall` in each row"
    )
    command.add_argument("--plot", metavar="FILE", help="draw the curves into this .png or .svg (matplotlib)")
    command.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    common_options.settings(command, ("models_dir", "log_level", "log_format"))


def _related(protocols: Any) -> None:
    command = common_options.command(
        protocols, "related", "related articles of labelled events, beside brute force (recall, nDCG)",
        "aggregator.cli.evaluate:related",
    )  # fmt: skip
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="articles with a `cluster`, the event, each"
    )
    _background(command)
    command.add_argument(
        "--limit", metavar="K", type=common_options.positive, default=10, help="asked for (default 10)"
    )
    _calibrate(command)
    command.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    common_options.settings(command, (*common_options.RULES, "log_level", "log_format"))


def _shown(command: argparse.ArgumentParser) -> None:
    command.add_argument("files", nargs="+", metavar="FILE", help="articles with a `cluster` each")
    command.add_argument(
        "--orders", metavar="N", type=common_options.positive, default=1, help="random orders (default 1)"
    )


def _pages(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--html", metavar="PATH", default="",
        help="a directory or tar archive with the page of each id: through the extraction, instead of the texts",
    )  # fmt: skip


def _calibrate(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--calibrate", action="store_true", help="which thresholds these labels speak for, score by score"
    )
    command.add_argument(
        "--plot", metavar="FILE",
        help="draw precision and recall against each score into this .png or .svg (matplotlib); calibrates too",
    )  # fmt: skip


def _methods(protocols: Any) -> None:
    command = common_options.command(
        protocols, "methods", "the literature's methods for whole archives side by side, clean and scanned",
        "aggregator.cli.compare_methods:methods",
    )  # fmt: skip
    command.add_argument("files", nargs="+", metavar="FILE", help="articles with a `cluster` each")
    command.add_argument("--method", metavar="NAME", action="append", help="only these; repeatable")
    command.add_argument(
        "--level", metavar="NAME", action="append", help="clean, light, medium, heavy; repeatable"
    )
    command.add_argument("--out", metavar="FILE", help="write an HTML page with the table and a plot")
    command.add_argument(
        "--processes", metavar="N", type=common_options.positive, default=1, help="methods at a time"
    )
    command.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    common_options.settings(command, ("log_level", "log_format"))


def _background(command: argparse.ArgumentParser, help: str = "unlabelled articles; repeatable") -> None:
    command.add_argument("--background", metavar="FILE", action="append", default=[], help=help)


def _events(protocols: Any) -> None:
    command = common_options.command(
        protocols,
        "events",
        "known events in recorded streams of headlines",
        "aggregator.cli.fit_replay:events",
    )
    command.add_argument(
        "windows", metavar="WINDOWS", nargs="?", help="directory of the windows, else FILE's"
    )
    command.add_argument("file", metavar="FILE", help="list of known events, each with its window file")
    command.add_argument(
        "--processes", metavar="N", type=common_options.positive, default=1, help="windows at a time"
    )
    command.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    command.add_argument("--plot", metavar="DIR", help="draw the timeline of each window there (matplotlib)")
    common_options.mode(command, "both")
    common_options.settings(command, (*common_options.BURSTS, "log_level", "log_format"))
