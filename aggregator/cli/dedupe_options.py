"""The options of the commands on whole archives: `fit` and `dedupe`."""

from __future__ import annotations

from typing import Any

from aggregator.cli import common_options


def add_fit_command(commands: Any) -> None:
    command = common_options.add_command(
        commands, "fit", "fit a feature model to your own articles", "aggregator.cli.fit_replay:fit"
    )
    command.add_argument("files", nargs="+", metavar="FILE", help=".jsonl, .jsonl.gz or - for standard input")
    command.add_argument("--group", required=True, metavar="NAME", help="language group: en, zh, ...")
    command.add_argument(
        "--out", required=True, metavar="FILE", help="the model file to write, e.g. en.model"
    )
    command.add_argument("--components", metavar="N", type=int, help="principal components")
    command.add_argument("--terms", metavar="N", type=int, help="largest vocabulary")
    command.add_argument(
        "--hyperplanes",
        choices=("hashed", "orthogonal", "learned"),
        help="hashed: as in the paper; learned: more copies by bits alone, and more strangers (default orthogonal)",
    )
    command.add_argument(
        "--counts", choices=("log", "power", "raw"), help="what occurrences of a term weigh (default log)"
    )
    command.add_argument(
        "--whiten",
        metavar="X",
        type=float,
        help="even out the axes (up to 1), or below 0 (to -2) sharpen them: more copies by bits, more strangers",
    )
    command.add_argument("--corpus", metavar="TEXT", help="what the articles are, for the model's card")
    command.add_argument("--licence", metavar="TEXT", help="their licence, for the model's card")
    common_options.add_progress_option(command)
    common_options.add_settings_options(command, ("log_level", "log_format"))


def add_dedupe_command(commands: Any) -> None:
    command = common_options.add_command(
        commands, "dedupe", "find the groups of copies in an archive and write it without them",
        "aggregator.cli.dedupe:dedupe",
    )  # fmt: skip
    command.add_argument("files", nargs="+", metavar="FILE", help=".jsonl, .jsonl.gz, .csv, .tsv or .parquet")
    command.add_argument("--out", required=True, metavar="DIR", help="where the results go")
    command.add_argument("--fresh", action="store_true", help="discard unfinished work in DIR")
    command.add_argument("--keep-work", action="store_true", help="leave the working files in DIR")
    common_options.add_progress_option(command)
    _add_io_options(command.add_argument_group("input and output"))
    _add_method_options(command.add_argument_group("method"))
    _add_execution_options(command.add_argument_group("where it runs"))
    command.add_argument(
        "--load",
        action="store_true",
        help="then put the deduplicated copy into an index, by --server or --store",
    )
    common_options.add_target_options(command)
    common_options.add_settings_options(
        command,
        (
            *common_options.DEDUP_SETTINGS,
            *common_options.STORE_SETTINGS,
            "max_body_bytes",
            "log_level",
            "log_format",
        ),
    )


def _add_io_options(group: Any) -> None:
    group.add_argument(
        "--column", metavar="FIELD=NAME", action="append", default=[],
        help="the column that holds id, title, text, html, url, source, published_at or lang; repeatable",
    )  # fmt: skip
    group.add_argument(
        "--lang", metavar="TAG", help="language of articles that declare none (default: detect)"
    )
    group.add_argument("--format", choices=("jsonl", "parquet"), default="jsonl", help="of the tables")
    group.add_argument("--no-copy", action="store_true", help="do not write the deduplicated copy")
    group.add_argument(
        "--representative", choices=("earliest", "longest", "medoid"), default="earliest",
        help="which article of a group stays (default earliest)",
    )  # fmt: skip


def _add_method_options(group: Any) -> None:
    group.add_argument(
        "--encode", choices=("combined", "simhash", "sketch", "tfidf", "doc2vec", "embedding"), default="combined",
        help="what proposes candidates: joins of numbers (default combined), or the 64 nearest by vectors, "
        "which needs all texts in memory",
    )  # fmt: skip
    group.add_argument(
        "--cosine",
        metavar="X",
        type=float,
        default=0.8,
        help="of candidates by vectors, at least (default 0.8)",
    )
    group.add_argument(
        "--shingles", choices=("letters", "words"), default="letters",
        help="what is compared: runs of letters, which misread characters and broken words trouble little (default), "
        "or of words, as in the service",
    )  # fmt: skip
    group.add_argument(
        "--radius", metavar="BITS", type=int, choices=range(4), default=3,
        help="fingerprints this near are candidates (default 3)",
    )  # fmt: skip
    group.add_argument(
        "--verify", choices=("containment", "titles", "classifier", "none"), default="containment",
        help="what confirms a candidate: shared wording (default); a cosine that depends on the titles, which needs "
        "the candidates' texts in memory; or a classifier trained on --labelled",
    )  # fmt: skip
    group.add_argument(
        "--labelled",
        metavar="FILE",
        help="articles with a `cluster` each, for --verify classifier to learn from",
    )
    group.add_argument(
        "--cluster", choices=("average", "union-find", "leiden", "louvain"), default="average",
        help="what makes groups of confirmed pairs: average linkage (default), every link, or communities",
    )  # fmt: skip
    group.add_argument(
        "--threshold", metavar="X", type=float,
        help="average resemblance within a group, or resolution of leiden (default 0.02)",
    )  # fmt: skip
    group.add_argument(
        "--cap",
        metavar="N",
        type=common_options.positive_int,
        default=1000,
        help="distinct texts in a group (default 1000)",
    )
    group.add_argument(
        "--within", metavar="SPAN", type=common_options.duration_ms,
        help="link only articles whose dates differ by less, e.g. 7d; undated ones link freely",
    )  # fmt: skip


def _add_execution_options(group: Any) -> None:
    group.add_argument(
        "--processes",
        metavar="N",
        type=common_options.positive_int,
        default=0,
        help="worker processes (default: one per core)",
    )
    group.add_argument(
        "--dask", metavar="ADDRESS", help="a Dask scheduler instead; its workers must see the same files"
    )
