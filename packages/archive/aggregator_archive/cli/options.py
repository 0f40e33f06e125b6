"""Options of ``aggregator dedupe`` and ``aggregator replay``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from aggregator.cli import common_options
from aggregator.settings import DATA_VARIABLE, path_variable

ARTICLE_COLUMNS = ("id", "title", "text", "html", "url", "source", "published_at", "lang")


def add_dedupe_command(commands: Any) -> None:
    """Add ``aggregator dedupe``."""
    command = common_options.add_command(
        commands, "dedupe", "find the duplicate groups of an archive and write it without duplicates",
        "aggregator_archive.cli.dedupe:run", example="archive.jsonl.gz --out clean",
    )  # fmt: skip
    add_files(command, ".jsonl, .jsonl.gz, .csv, .tsv or .parquet")
    command.add_argument("--out", required=True, metavar="DIR", help="directory of the results")
    command.add_argument("--fresh", action="store_true", help="discard an unfinished run in DIR")
    common_options.add_progress_option(command)
    _add_io_options(command.add_argument_group("input and output"))
    _add_grouping_options(command.add_argument_group("grouping"))
    _add_execution_options(command.add_argument_group("execution"))
    command.add_argument("--load", action="store_true", help="load the kept articles (--server or --store)")
    common_options.add_target_options(command)
    settings = (*common_options.SERVICE_SETTINGS, "max_body_bytes")
    common_options.add_settings_options(command, settings, profiles=True)


def add_replay_command(commands: Any) -> None:
    """Add ``aggregator replay``."""
    command = common_options.add_command(
        commands, "replay", "replay dated articles through event detection, using their timestamps",
        "aggregator_archive.cli.replay:run", example="archive.jsonl.gz",
    )  # fmt: skip
    add_files(command, "as for dedupe, or - for standard input")
    command.add_argument("--out", metavar="FILE", help="write the events here (default: standard output)")
    command.add_argument(
        "--preview", metavar="SPAN", type=common_options.duration_ms,
        help="instead of events, print the number of alerts in the last SPAN (24h, 7d) of the input "
        "under these settings, and with half and twice the sensitivity; only headlines are read",
    )  # fmt: skip
    common_options.add_progress_option(command)
    common_options.add_settings_options(
        command, (*common_options.DETECTION_SETTINGS, *common_options.LOG_SETTINGS)
    )


def add_files(command: argparse.ArgumentParser, help: str, nargs: str = "+") -> None:
    """Add the input files (``input_file``)."""
    command.add_argument("files", nargs=nargs, metavar="FILE", type=input_file, help=help)


def input_file(name: str) -> str:
    """The path of an input; a name that is not here is looked up in the development data."""
    found = os.path.join(path_variable(DATA_VARIABLE), name)
    return found if not os.path.exists(name) and os.path.exists(found) else name


def add_column_option(group: Any, fields: Sequence[str]) -> None:
    """Add ``--column FIELD=NAME``, whose value is a list of pairs of a field and its column."""

    def pair(text: str) -> tuple[str, str]:
        field, separator, column = text.partition("=")
        if not separator or field not in fields:
            expected = f"FIELD=NAME with FIELD one of {', '.join(fields)}"
            raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
        return field, column

    group.add_argument(
        "--column", metavar="FIELD=NAME", action=_AddColumn, default=[], type=pair,
        help=f"column of a field ({', '.join(fields)}); repeatable",
    )  # fmt: skip


class _AddColumn(argparse.Action):
    def __call__(self, _: object, namespace: argparse.Namespace, pair: Any, __: str | None = None) -> None:
        given = getattr(namespace, self.dest)
        if other := dict(given).get(pair[0]):
            raise argparse.ArgumentError(self, f"{pair[0]} is mapped to {other!r} and {pair[1]!r}; name one")
        setattr(namespace, self.dest, [*given, pair])


def _add_io_options(group: Any) -> None:
    add_column_option(group, ARTICLE_COLUMNS)
    group.add_argument(
        "--lang", metavar="TAG", help="language of articles that declare none (default: detect)"
    )
    group.add_argument(
        "--format", choices=("jsonl", "parquet"), default="jsonl", help="format of the tables (default jsonl)"
    )
    group.add_argument(
        "--by-headline", action="store_true",
        help="remove duplicate rows without a text, too (default: they are kept)",
    )  # fmt: skip
    group.add_argument(
        "--representative", choices=("earliest", "longest", "medoid"), default="earliest",
        help="article of a group that is kept (default earliest)",
    )  # fmt: skip


def _add_grouping_options(group: Any) -> None:
    group.add_argument(
        "--within", metavar="SPAN", type=common_options.duration_ms,
        help="link only articles whose dates differ by less, e.g. 7d; undated articles are always linked",
    )  # fmt: skip
    group.add_argument(
        "--shingles", choices=("words", "letters"), default="words",
        help="words: as in the service (default); letters: 8-character n-grams, which tolerate OCR errors "
        "and split words",
    )  # fmt: skip
    group.add_argument(
        "--radius", metavar="BITS", type=int, choices=range(4), default=3,
        help="maximum Hamming distance of fingerprints that are compared, 0 to 3 (default 3)",
    )  # fmt: skip
    group.add_argument(
        "--threshold", metavar="X", type=float, default=0.02,
        help="minimum average resemblance within a group (default 0.02)",
    )  # fmt: skip
    group.add_argument(
        "--cap", metavar="N", type=common_options.positive_int, default=1000,
        help="maximum number of distinct texts in a group (default 1000)",
    )  # fmt: skip


def _add_execution_options(group: Any) -> None:
    group.add_argument(
        "--processes", metavar="N", type=common_options.positive_int, default=0,
        help="worker processes (default: one per core, one in all below 1 MB)",
    )  # fmt: skip
    group.add_argument(
        "--dask", metavar="ADDRESS", help="use a Dask scheduler, whose workers must see the same files"
    )
