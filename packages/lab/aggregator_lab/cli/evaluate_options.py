"""Options of ``aggregator evaluate``, one subcommand per protocol."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from aggregator.cli.common_options import (
    DEDUP_SETTINGS,
    DETECTION_SETTINGS,
    LOG_SETTINGS,
    MODEL_SETTINGS,
    add_command,
    add_settings_options,
    positive_int,
)
from aggregator.extensions import feature_names
from aggregator_archive.cli.options import ARTICLE_COLUMNS, add_column_option, add_files, input_file

COLUMNS = (
    *ARTICLE_COLUMNS, "cluster", "original",
    *(name + side for side in "12" for name in ("title", "text", "lang", "source", "published_at")),
    "same", "overall",
)  # fmt: skip
POLICY_SETTINGS = (*DEDUP_SETTINGS, *MODEL_SETTINGS, *LOG_SETTINGS)


def add_evaluate_command(commands: Any) -> None:
    """Add ``aggregator evaluate`` with its protocols."""
    command = commands.add_parser(
        "evaluate",
        help="measure quality on labeled articles or events",
        description="Measure quality by a published protocol.",
        allow_abbrev=False,
    )
    protocols = command.add_subparsers(title="protocols", metavar="PROTOCOL", required=True)
    _add_own(protocols)
    _add_near_duplicates(protocols)
    _add_duplicates(protocols)
    _add_clusters(protocols)
    _add_pairs(protocols)
    _add_related(protocols)
    _add_relatedness(protocols)
    _add_events(protocols)
    _add_desk(protocols)
    _add_methods(protocols)
    _add_features(protocols)
    _add_open_benchmark(protocols)
    for protocol in protocols.choices.values():
        protocol.siblings = protocols.choices


def _add_own(protocols: Any) -> None:
    command = add_command(
        protocols, "own", "your own files: the protocol that fits their columns, and its table",
        "aggregator_lab.cli.evaluate:own", example="judged.csv",
    )  # fmt: skip
    add_files(command, "articles in order, or with a `cluster` each in a random one, or pairs (text1, text2)")
    _add_common_options(command)
    _add_errors_option(command)
    command.set_defaults(protocols=protocols.choices)


def _add_near_duplicates(protocols: Any) -> None:
    command = add_command(
        protocols, "near-duplicates", "precision, recall and F1 on articles with a `cluster` each",
        "aggregator_lab.cli.evaluate:near_duplicates", example="labeled.jsonl",
    )  # fmt: skip
    _add_input_options(command)
    command.add_argument(
        "--plant", metavar="N", type=positive_int,
        help="for files without labels: plant copies of N articles per language and store the others first",
    )  # fmt: skip
    _add_errors_option(command)
    _add_common_options(command)
    command.add_argument(
        "--grid", nargs="?", const="ours", choices=("ours", "published"),
        help="evaluate shingling (Rodier & Carter 2020) over a grid of settings: our reading of it, or the "
        "published rule with ours for comparison",
    )  # fmt: skip
    group = command.add_argument_group("values of --grid, with the letters of the publication")
    for flag, kind, help in (
        ("--shingle", positive_int, "n: words per shingle"),
        ("--sample", positive_int, "k: one shingle in k is kept; published: samples of each"),
        ("--sketch", positive_int, "p: shingles that are looked up; published: permutations"),
        ("--collisions", int, "t: minimum shared sketch shingles of a candidate; published: more than t"),
        ("--leading", float, "f: share of the text that is used, from its beginning"),
        ("--overlap", float, "r: minimum overlap coefficient of a duplicate; not in the published rule"),
    ):  # fmt: skip
        group.add_argument(flag, metavar="X,...", type=comma_separated(kind), help=help)


def _add_duplicates(protocols: Any) -> None:
    command = add_command(
        protocols, "duplicates", "duplicates and wrong ones among articles without labels, per source",
        "aggregator_lab.cli.evaluate_duplicates:run", example="articles.jsonl --page judge.html",
    )  # fmt: skip
    add_files(command, "articles as .jsonl, .jsonl.gz, .csv or .parquet, in order")
    command.add_argument("--max", metavar="N", type=positive_int, help="use only the first N articles")
    command.add_argument(
        "--compare", choices=("shingling", "published"),
        help="also count the duplicates of shingling among the same articles: our reading of Rodier & Carter "
        "2020, or the published rule",
    )  # fmt: skip
    command.add_argument(
        "--overlap", metavar="X,...", type=comma_separated(float),
        help="minimum overlap coefficients of a duplicate for --compare shingling (default 0.2)",
    )  # fmt: skip
    command.add_argument(
        "--collisions", metavar="T,...", type=comma_separated(int),
        help="collisions that a duplicate exceeds for --compare published (default 3)",
    )  # fmt: skip
    command.add_argument(
        "--edits", metavar="N", type=positive_int,
        help="also edit N articles per language in six ways and report the share found as duplicates",
    )  # fmt: skip
    command.add_argument(
        "--built", metavar="N", nargs="?", type=positive_int, const=300,
        help="instead build streams of N judged articles per kind (collections, quotations, live pages, "
        "notices, parts and wholes) and count articles lost and copies kept (default 300)",
    )  # fmt: skip
    command.add_argument(
        "--kinds", metavar="WORD,...", type=comma_separated(str),
        help="only the kinds of --built with such a word in their name; orders: five versions in 120 orders",
    )  # fmt: skip
    group = command.add_argument_group("judgment by hand")
    group.add_argument(
        "--page", metavar="FILE.html", help="write a page on which to judge random duplicates side by side"
    )
    group.add_argument(
        "--pairs", metavar="N", type=positive_int, default=50,
        help="number of duplicates on the page (default 50)",
    )  # fmt: skip
    group.add_argument(
        "--seed", metavar="N", type=int, default=0, help="of the random sample, and of --edits (default 0)"
    )
    group.add_argument(
        "--judged", metavar="PATH",
        help="report the share of wrong pairs among those judged, and whether the service agrees: a file "
        "saved by the page, or a directory with such a file NAME.json per input NAME.jsonl.gz",
    )  # fmt: skip
    group.add_argument(
        "--show", metavar="N", type=positive_int,
        help="print N random duplicates with keep false below their matches, and N texts that are said not "
        "to be the article",
    )  # fmt: skip
    _add_common_options(command)


def _add_clusters(protocols: Any) -> None:
    command = add_command(
        protocols, "clusters", "agreement of duplicate groups with labeled ones (ARI, V-measure, B-cubed)",
        "aggregator_lab.cli.evaluate:clusters", example="labeled.jsonl",
    )  # fmt: skip
    _add_input_options(command)
    _add_common_options(command)


def _add_pairs(protocols: Any) -> None:
    command = add_command(
        protocols, "pairs", "ROC AUC on human-judged pairs", "aggregator_lab.cli.evaluate:pairs",
        example="judged.jsonl --column same=is_duplicate",
    )  # fmt: skip
    add_files(command, "rows with text1, text2, and `same` or `overall`")
    _add_errors_option(command)
    _add_common_options(command, "models_dir", *LOG_SETTINGS)


def _add_related(protocols: Any) -> None:
    command = add_command(
        protocols, "related", "lists of related articles per file, compared with brute force",
        "aggregator_lab.cli.evaluate:related", example="articles.jsonl",
    )  # fmt: skip
    add_files(command, "articles; `cluster`, if any, is equal for an event")
    _add_files_option(command, "--background", "unlabeled articles")
    for flag, metavar, default, help in (
        ("--limit", "K", 10, "number of related articles requested"),
        ("--lists", "N", 600, "number of random articles whose related ones are requested"),
        ("--show", "N", None, "print N questions with their first answers, to be read"),
    ):
        note = f" (default {default})" if default else ""
        command.add_argument(flag, metavar=metavar, type=positive_int, default=default, help=help + note)
    command.add_argument(
        "--compare", metavar="NAME,...", nargs="?", const=["tf-idf"], type=comma_separated(str),
        help="also at any score (--related-min-score 0), and all articles by tf-idf (default), bm25 (extra)",
    )  # fmt: skip
    command.add_argument(
        "--judged", metavar="PATH",
        help="count the wrong ones of the judged first answers: as for `evaluate duplicates`",
    )  # fmt: skip
    _add_common_options(command)


def _add_relatedness(protocols: Any) -> None:
    command = add_command(
        protocols, "relatedness", "probability of one subject, fitted to judged pairs",
        "aggregator_lab.cli.evaluate:relatedness", example="articles.jsonl --judged verdicts",
    )  # fmt: skip
    add_files(command, "articles (default: the development data NAME.jsonl.gz of each DIR/NAME.json)", "*")
    command.add_argument("--judged", metavar="DIR", required=True, help="verdicts, as for `related`")
    _add_files_option(command, "--pairs", "pairs, as for `pairs`")
    _add_common_options(command, "models_dir", *LOG_SETTINGS)


def _add_events(protocols: Any) -> None:
    command = add_command(
        protocols, "events", "known events found in recorded headlines, delay, alerts per day",
        "aggregator_lab.cli.evaluate:events", example="headlines events.json",
    )  # fmt: skip
    add_files(command, "lists of known events; first the directory of their recordings, if it is another")
    _add_processes_option(command, "recordings")
    _add_json_option(command)
    command.add_argument(
        "--mode", choices=("stories", "literal", "both"), default="stories",
        help="event rule to score: that of the service (default), that of Hu & You (2017), or both",
    )  # fmt: skip
    add_settings_options(command, (*DETECTION_SETTINGS, "models_dir", *LOG_SETTINGS))


def _add_desk(protocols: Any) -> None:
    command = add_command(
        protocols, "desk", "alerts of several streams at one desk: found, delay, alerts per day, order",
        "aggregator_lab.cli.evaluate:desk", example="headlines.jsonl",
    )  # fmt: skip
    add_files(command, "dated articles, one stream each")
    _add_files_option(command, "--events", "known events in these files")
    _add_files_option(command, "--marks", "marks of readers, `file`, `id` of an article and `mark` each")
    _add_files_option(command, "--peaks", "later peaks of known events, as lists/later_peaks.json")
    for flag, metavar, help in (
        ("--align", "TIME,...", "one moment per FILE, which then coincide (default: by whole weeks)"),
        ("--cache", "DIR", "keep the analyses of the files in DIR"),
        ("--alerts", "FILE", "write all alerts as JSON, to be judged by hand"),
        ("--page", "FILE", "the same as an HTML page"),
    ):
        command.add_argument(flag, metavar=metavar, help=help)
    command.add_argument(
        "--more", nargs=2, metavar=("FILE", "N"), help="N more headlines an hour, drawn from FILE"
    )
    command.add_argument(
        "--more-hours", metavar="N", type=positive_int,
        help="only from N hours before the first moment of --align to N hours after it",
    )  # fmt: skip
    _add_json_option(command)
    add_settings_options(command, (*DETECTION_SETTINGS, *LOG_SETTINGS))


def _add_methods(protocols: Any) -> None:
    command = add_command(
        protocols, "methods",
        "archive methods of the literature, on clean and on noisy text; takes minutes even for 100 articles: "
        "begin with --level clean --per-label 5",
        "aggregator_lab.cli.comparisons:compare_methods", example="labeled.jsonl",
    )  # fmt: skip
    add_files(command, "articles with a `cluster` each")
    command.add_argument("--method", metavar="NAME", action="append", help="only this method; repeatable")
    command.add_argument(
        "--level", metavar="NAME", action="append",
        help="only this level of noise: clean, light, medium or heavy, or one kind of it: ocr, abridged, "
        "joined or columns; repeatable",
    )  # fmt: skip
    _add_per_label_option(command)
    _add_processes_option(command, "methods")
    _add_common_options(command, *LOG_SETTINGS)


def _add_features(protocols: Any) -> None:
    command = add_command(
        protocols, "features", "feature extractors, fitted to the same articles and measured on others",
        "aggregator_lab.cli.comparisons:compare_features", example="labeled.jsonl",
    )  # fmt: skip
    add_files(command, "copies: articles with a `cluster` each")
    corpus = "unlabeled articles: every second one is fitted to, the others are the background"
    _add_files_option(command, "--corpus", corpus, required=True)
    _add_files_option(command, "--pairs", "human-judged pairs")
    _add_files_option(command, "--events", "articles with an event in `cluster` each, for related articles")
    command.add_argument(
        "--features", metavar="NAME", action="append", choices=feature_names(),
        help=f"only this extractor ({', '.join(feature_names())}); repeatable",
    )  # fmt: skip
    command.add_argument("--group", metavar="NAME", default="en", help="language group (default en)")
    command.add_argument(
        "--max", metavar="N", type=positive_int, default=4_000,
        help="use N articles of the corpus, evenly spaced (default 4000)",
    )  # fmt: skip
    _add_per_label_option(command)
    _add_common_options(command, "models_dir", *LOG_SETTINGS)


def _add_open_benchmark(protocols: Any) -> None:
    command = add_command(
        protocols, "open-benchmark", "write a benchmark in ten languages, usable without the service",
        "aggregator_lab.cli.evaluate:open_benchmark", example="benchmark",
    )  # fmt: skip
    command.add_argument("out", metavar="DIR", help="directory for articles, data card and scoring script")
    command.add_argument(
        "--stories", metavar="N", type=positive_int, default=200,
        help="number of stories, about 7 articles each (default 200)",
    )  # fmt: skip
    command.add_argument("--seed", metavar="N", type=int, default=1, help="of the stories (default 1)")
    add_settings_options(command, LOG_SETTINGS)


def _add_common_options(command: argparse.ArgumentParser, *settings: str) -> None:
    """Add columns, JSON and these settings; without any, those of the duplicate rule, with its profiles."""
    add_column_option(command, COLUMNS)
    _add_json_option(command)
    add_settings_options(command, settings or POLICY_SETTINGS, profiles=not settings)


def _add_errors_option(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--errors", metavar="FILE", help="list the missed and the wrong pairs of the service's rule as .jsonl"
    )


def _add_input_options(command: argparse.ArgumentParser) -> None:
    add_files(command, "articles with a `cluster` each")
    _add_files_option(command, "--background", "unlabeled articles that are stored first")
    command.add_argument(
        "--orders", metavar="N", type=positive_int, default=1,
        help="number of random orders (default 1)",
    )  # fmt: skip
    command.add_argument(
        "--html", metavar="PATH", type=input_file,
        help="directory or tar archive with the page of each id; texts are extracted from the pages",
    )  # fmt: skip
    command.add_argument(
        "--calibrate", action="store_true", help="report the thresholds that these labels support, per score"
    )
    command.add_argument(
        "--plot", metavar="FILE",
        help="--calibrate, and draw precision and recall per threshold as .png or .svg (needs matplotlib)",
    )  # fmt: skip


def _add_per_label_option(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--per-label", metavar="N", type=positive_int,
        help="use only the first N articles of each label, to save time",
    )  # fmt: skip


def _add_json_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON instead of a table")


def _add_processes_option(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument(
        "--processes", metavar="N", type=positive_int, default=1,
        help=f"number of {what} evaluated in parallel (default 1)",
    )  # fmt: skip


def _add_files_option(command: argparse.ArgumentParser, flag: str, help: str, required: bool = False) -> None:
    command.add_argument(
        flag, metavar="FILE", type=input_file, action="append", default=[], required=required,
        help=f"{help}; repeatable",
    )  # fmt: skip


def comma_separated(parse_item: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """A parser of values separated by commas."""

    def values(text: str) -> list[Any]:
        try:
            return [parse_item(part) for part in text.split(",")]
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers such as 1,2,3") from None

    return values
