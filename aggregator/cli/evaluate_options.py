"""The options of `aggregator evaluate`, protocol by protocol."""

from __future__ import annotations

import argparse
from typing import Any

from aggregator.cli import common_options


def add_evaluate_command(commands: Any) -> None:
    command = commands.add_parser(
        "evaluate",
        help="score the service on labelled articles or events",
        description="Score the service by a published protocol.",
        allow_abbrev=False,
    )
    protocols = command.add_subparsers(title="protocols", metavar="PROTOCOL", required=True)
    _add_near_duplicates(protocols)
    _add_clusters(protocols)
    _add_pairs(protocols)
    _add_related(protocols)
    _add_events(protocols)
    _add_methods(protocols)


def _add_near_duplicates(protocols: Any) -> None:
    command = common_options.add_command(
        protocols, "near-duplicates", "articles with a `cluster` each, shown one after another",
        "aggregator.cli.evaluate:near_duplicates",
    )  # fmt: skip
    _add_input_options(command)
    _add_background_option(command, "articles stored before; repeatable")
    _add_html_option(command)
    _add_calibration_options(command)
    command.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    command.add_argument(
        "--grid",
        action="store_true",
        help="the published shingling system over its settings, instead of ours",
    )
    group = command.add_argument_group("values of the grid; letters as published")
    for flag, kind, values, help in (
        ("--shingle", common_options.positive_int, [2, 3, 5], "n, words per shingle"),
        ("--sample", common_options.positive_int, [1, 8], "k, one shingle in so many is kept"),
        ("--sketch", common_options.positive_int, [8, 64], "p, smallest shingles that are looked up"),
        ("--collisions", common_options.positive_int, [1, 2], "t, of sketches, that make a candidate"),
        ("--leading", float, [1.0], "f, share of the text from its beginning"),
        ("--overlap", float, [0.1, 0.2, 0.4], "r, overlap coefficient of a copy"),
    ):
        shown = ",".join(map(str, values))
        group.add_argument(
            flag,
            metavar="X,...",
            type=common_options.comma_separated(kind),
            default=values,
            help=f"{help} (default {shown})",
        )
    common_options.add_settings_options(command, (*common_options.DEDUP_SETTINGS, "log_level", "log_format"))


def _add_clusters(protocols: Any) -> None:
    command = common_options.add_command(
        protocols, "clusters", "the groups of copies against labelled ones (ARI, V-measure, B-cubed)",
        "aggregator.cli.evaluate:clusters",
    )  # fmt: skip
    _add_input_options(command)
    _add_background_option(command)
    _add_html_option(command)
    _add_calibration_options(command)
    command.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    common_options.add_settings_options(command, (*common_options.DEDUP_SETTINGS, "log_level", "log_format"))


def _add_pairs(protocols: Any) -> None:
    command = common_options.add_command(
        protocols, "pairs", "pairs that people judged, and which thresholds tell them apart",
        "aggregator.cli.evaluate:pairs",
    )  # fmt: skip
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="text1, text2 and `same` or `overall` in each row"
    )
    command.add_argument("--plot", metavar="FILE", help="draw the curves into this .png or .svg (matplotlib)")
    command.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    common_options.add_settings_options(command, ("models_dir", "log_level", "log_format"))


def _add_related(protocols: Any) -> None:
    command = common_options.add_command(
        protocols, "related", "related articles of labelled events, beside brute force (recall, nDCG)",
        "aggregator.cli.evaluate:related",
    )  # fmt: skip
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="articles with a `cluster`, the event, each"
    )
    _add_background_option(command)
    command.add_argument(
        "--limit", metavar="K", type=common_options.positive_int, default=10, help="asked for (default 10)"
    )
    _add_calibration_options(command)
    command.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    common_options.add_settings_options(command, (*common_options.DEDUP_SETTINGS, "log_level", "log_format"))


def _add_input_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("files", nargs="+", metavar="FILE", help="articles with a `cluster` each")
    command.add_argument(
        "--orders", metavar="N", type=common_options.positive_int, default=1, help="random orders (default 1)"
    )


def _add_html_option(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--html", metavar="PATH", default="",
        help="a directory or tar archive with the page of each id: through the extraction, instead of the texts",
    )  # fmt: skip


def _add_calibration_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--calibrate", action="store_true", help="which thresholds these labels speak for, score by score"
    )
    command.add_argument(
        "--plot", metavar="FILE",
        help="draw precision and recall against each score into this .png or .svg (matplotlib); calibrates too",
    )  # fmt: skip


def _add_methods(protocols: Any) -> None:
    command = common_options.add_command(
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
        "--processes", metavar="N", type=common_options.positive_int, default=1, help="methods at a time"
    )
    command.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    common_options.add_settings_options(command, ("log_level", "log_format"))


def _add_background_option(
    command: argparse.ArgumentParser, help: str = "unlabelled articles; repeatable"
) -> None:
    command.add_argument("--background", metavar="FILE", action="append", default=[], help=help)


def _add_events(protocols: Any) -> None:
    command = common_options.add_command(
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
        "--processes", metavar="N", type=common_options.positive_int, default=1, help="windows at a time"
    )
    command.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    command.add_argument("--plot", metavar="DIR", help="draw the timeline of each window there (matplotlib)")
    common_options.add_mode_option(command, "both")
    common_options.add_settings_options(
        command, (*common_options.DETECTION_SETTINGS, "log_level", "log_format")
    )
