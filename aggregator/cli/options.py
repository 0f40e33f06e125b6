"""Every command and option; those that set a setting are generated from ``settings.Settings``."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from aggregator import __version__
from aggregator.settings import Settings

FIELDS = {option.name: option for option in dataclasses.fields(Settings)}
RULES = (
    "policy",
    "duplicate_bits",
    "related_bits",
    "min_related",
    "preset",
    "min_containment",
    "min_shared",
    "min_similarity",
    "sure_containment",
    "keep_updates",
    "models_dir",
    "block_plan",
)
CHANGE = ("next_models_dir", "next_block_plan", "serve_next")
STORE = (
    "data_dir",
    "appendfsync",
    "retention_days",
    "segment_articles",
    "fingerprints_only",
    "keep_texts",
    *CHANGE,
)
BURSTS = ("burst_items", "burst_window_hours", "min_sources", "sensitivity")
STORE_META = "URL"
# Options of a process can be read by everybody on the machine; these are variables only.
VARIABLES_ONLY = ("key", "bootstrap_key")
SPANS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}

EPILOG = """\
exit codes: 0 all well; 1 some lines were bad or an id is unknown; 2 usage, settings, files or models that
cannot work; 3 store or server unavailable; 130 interrupted.

Every setting is also a variable: --data-dir is AGGREGATOR_DATA_DIR. `aggregator serve --help` lists all.
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="aggregator",
        description="Tells for each news article whether it is new, related or a duplicate, and what is breaking.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"aggregator {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _serve(commands)
    _ingest(commands, "ingest", "check article files and store them, one verdict line per line")
    _ingest(commands, "check", "the same as ingest, but nothing is stored")
    _work(commands)
    _explain(commands)
    _reindex(commands)
    _replay(commands)
    _fit(commands)
    _dedupe(commands)
    _evaluate(commands)
    _keys(commands)
    _doctor(commands)
    return top


def overrides(args: argparse.Namespace) -> dict[str, Any]:
    """The settings given as options; those not given are None."""
    given = {name: getattr(args, name, None) for name in FIELDS}
    store = getattr(args, "store", None)
    if store is not None:
        given["store_url"] = "" if store == "embedded" else store
    return given


def _command(commands: Any, name: str, help: str, target: str, **more: Any) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False, **more
    )
    command.set_defaults(command=name, command_path=target)
    return command


def _settings(command: argparse.ArgumentParser, names: Iterable[str], title: str = "settings") -> None:
    """One option per setting; values are checked by ``settings.load``, so all problems show together."""
    group = command.add_argument_group(title)
    for name in names:
        if name in VARIABLES_ONLY:
            continue
        option = FIELDS[name]
        flag = "--" + name.replace("_", "-")
        shown = "" if option.default in ("", False) else f" (default {option.default})"
        help = (option.metadata["doc"].rstrip(".") + shown).replace("%", "%%")
        if isinstance(option.default, bool):
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=help)
        else:
            metavar = {int: "N", float: "X", str: "TEXT"}[type(option.default)]
            group.add_argument(flag, metavar=metavar, help=help)


def _serve(commands: Any) -> None:
    command = _command(commands, "serve", "run the HTTP service", "aggregator.cli.serve:run")
    _settings(command, FIELDS)


def _where(command: argparse.ArgumentParser, *, server: bool = True) -> None:
    """Which store or server a command works on."""
    group = command.add_argument_group("where")
    if server:
        group.add_argument("--server", metavar=STORE_META, help="a running service (default: the local one)")
    group.add_argument(
        "--store", dest="store", metavar=STORE_META,
        help="open the store in this process: memory, embedded (in --data-dir) or a redis:// URL",
    )  # fmt: skip


def _ingest(commands: Any, name: str, help: str) -> None:
    command = _command(commands, name, help, "aggregator.cli.ingest:run")
    command.add_argument(
        "files", nargs="*", default=["-"], metavar="FILE",
        help=".jsonl, .jsonl.gz or - for standard input (the default)",
    )  # fmt: skip
    command.add_argument(
        "--out", metavar="FILE", help="write the verdict lines here (default: standard output)"
    )
    command.add_argument("--no-progress", action="store_true", help="no progress bar on a terminal")
    _where(command)
    _settings(command, (*RULES, *STORE, "max_body_bytes", "log_level", "log_format"))


def _work(commands: Any) -> None:
    command = _command(
        commands, "work", "take articles from one Redis stream and put verdicts into another",
        "aggregator.cli.work:run",
    )  # fmt: skip
    command.add_argument(
        "--redis", metavar=STORE_META, default="redis://127.0.0.1:6379", help="where the streams are"
    )
    command.add_argument("--server", metavar=STORE_META, help="a running service (default: the local one)")
    command.add_argument(
        "--source", default="articles", metavar="STREAM", help="entries with a field 'article'"
    )
    command.add_argument("--verdicts", default="verdicts", metavar="STREAM", help="where the verdicts go")
    command.add_argument("--group", default="aggregator", metavar="NAME", help="the consumer group")
    command.add_argument(
        "--consumer", metavar="NAME", help="this worker's name, its own and lasting (default: the host's)"
    )
    command.add_argument("--until-empty", action="store_true", help="end when nothing is left to do")
    _settings(command, ("log_level", "log_format"))


def _explain(commands: Any) -> None:
    command = _command(
        commands, "explain", "show why two articles are or are not copies", "aggregator.cli.explain:run"
    )
    command.add_argument("first", metavar="A", help="id of a stored article, or a file with its text (or - )")
    command.add_argument("second", metavar="B", help="the same for the other article")
    command.add_argument("--json", action="store_true", help="one JSON object instead of sentences")
    _where(command)
    _settings(command, (*RULES, *STORE, "log_level", "log_format"))


def _reindex(commands: Any) -> None:
    command = _command(
        commands, "reindex", "fill the space of another model or block plan while the present one serves",
        "aggregator.cli.reindex:run",
    )  # fmt: skip
    command.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="the articles, .jsonl or .jsonl.gz (default: their kept texts)",
    )
    command.add_argument("--no-progress", action="store_true", help="no progress bar on a terminal")
    _where(command, server=False)
    _settings(command, (*RULES, *STORE, "max_body_bytes", "log_level", "log_format"))


def _replay(commands: Any) -> None:
    command = _command(
        commands, "replay", "run dated articles through the burst rule under their own clock",
        "aggregator.cli.offline:replay",
    )  # fmt: skip
    command.add_argument("files", nargs="+", metavar="FILE", help=".jsonl, .jsonl.gz or - for standard input")
    command.add_argument(
        "--out", metavar="FILE", help="write the event lines here (default: standard output)"
    )
    command.add_argument(
        "--preview", metavar="SPAN", type=_span_ms,
        help="instead of the events: how many alerts these settings, a stricter and a laxer sensitivity "
        "would have made in the last SPAN (24h, 7d) of the stream",
    )  # fmt: skip
    _mode(command)
    command.add_argument("--no-progress", action="store_true", help="no progress bar on a terminal")
    _settings(command, (*BURSTS, "log_level", "log_format"))


def _fit(commands: Any) -> None:
    command = _command(
        commands, "fit", "fit a feature model to your own articles", "aggregator.cli.offline:fit"
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
        "--counts", choices=("log", "raw"), help="what occurrences of a term weigh (default log)"
    )
    command.add_argument("--corpus", metavar="TEXT", help="what the articles are, for the model's card")
    command.add_argument("--licence", metavar="TEXT", help="their licence, for the model's card")
    command.add_argument("--no-progress", action="store_true", help="no progress bar on a terminal")
    _settings(command, ("log_level", "log_format"))


def _dedupe(commands: Any) -> None:
    command = _command(
        commands, "dedupe", "find the groups of copies in an archive and write it without them",
        "aggregator.cli.dedupe:dedupe",
    )  # fmt: skip
    command.add_argument("files", nargs="+", metavar="FILE", help=".jsonl, .jsonl.gz, .csv, .tsv or .parquet")
    command.add_argument("--out", required=True, metavar="DIR", help="where the results go")
    command.add_argument("--fresh", action="store_true", help="discard unfinished work in DIR")
    command.add_argument("--keep-work", action="store_true", help="leave the working files in DIR")
    command.add_argument("--no-progress", action="store_true", help="no progress bar on a terminal")
    _reading_options(command.add_argument_group("input and output"))
    _method_options(command.add_argument_group("method"))
    _running_options(command.add_argument_group("where it runs"))
    command.add_argument(
        "--load",
        action="store_true",
        help="then put the deduplicated copy into an index, by --server or --store",
    )
    _where(command)
    _settings(command, (*RULES, *STORE, "max_body_bytes", "log_level", "log_format"))


def _reading_options(group: Any) -> None:
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


def _method_options(group: Any) -> None:
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
    group.add_argument("--verify", choices=("containment", "none"), default="containment")
    group.add_argument("--cluster", choices=("average", "union-find", "leiden", "louvain"), default="average")
    group.add_argument("--threshold", metavar="X", type=float, help="of the clustering")
    group.add_argument(
        "--cap", metavar="N", type=_positive, default=1000, help="distinct texts in a group (default 1000)"
    )
    group.add_argument(
        "--within", metavar="SPAN", type=_span_ms,
        help="link only articles whose dates differ by less, e.g. 7d; undated ones link freely",
    )  # fmt: skip


def _running_options(group: Any) -> None:
    group.add_argument(
        "--processes", metavar="N", type=_positive, default=0, help="worker processes (default: one per core)"
    )
    group.add_argument(
        "--dask", metavar="ADDRESS", help="a Dask scheduler instead; its workers must see the same files"
    )


def _evaluate(commands: Any) -> None:
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
    command = _command(
        protocols, "near-duplicates", "articles with a `cluster` each, shown one after another",
        "aggregator.cli.evaluation:near_duplicates",
    )  # fmt: skip
    command.add_argument("files", nargs="+", metavar="FILE", help="articles with a `cluster` each")
    command.add_argument("--orders", metavar="N", type=_positive, default=1, help="random orders (default 1)")
    command.add_argument(
        "--background", metavar="FILE", action="append", default=[], help="articles stored before; repeatable"
    )
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
        ("--shingle", _positive, [2, 3, 5], "n, words per shingle"),
        ("--sample", _positive, [1, 8], "k, one shingle in so many is kept"),
        ("--sketch", _positive, [8, 64], "p, smallest shingles that are looked up"),
        ("--collisions", _positive, [1, 2], "t, of sketches, that make a candidate"),
        ("--leading", float, [1.0], "f, share of the text from its beginning"),
        ("--overlap", float, [0.1, 0.2, 0.4], "r, overlap coefficient of a copy"),
    ):
        shown = ",".join(map(str, values))
        group.add_argument(
            flag, metavar="X,...", type=_listed(kind), default=values, help=f"{help} (default {shown})"
        )
    _settings(command, (*RULES, "log_level", "log_format"))


def _clusters(protocols: Any) -> None:
    command = _command(
        protocols, "clusters", "the groups of copies against labelled ones (ARI, V-measure, B-cubed)",
        "aggregator.cli.evaluation:clusters",
    )  # fmt: skip
    command.add_argument("files", nargs="+", metavar="FILE", help="articles with a `cluster` each")
    command.add_argument("--orders", metavar="N", type=_positive, default=1, help="random orders (default 1)")
    _background(command)
    _pages(command)
    _calibrate(command)
    command.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    _settings(command, (*RULES, "log_level", "log_format"))


def _pairs(protocols: Any) -> None:
    command = _command(
        protocols, "pairs", "pairs that people judged, and which thresholds tell them apart",
        "aggregator.cli.evaluation:pairs",
    )  # fmt: skip
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="text1, text2 and `same` or `overall` in each row"
    )
    command.add_argument("--plot", metavar="FILE", help="draw the curves into this .png or .svg (matplotlib)")
    command.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    _settings(command, ("models_dir", "log_level", "log_format"))


def _related(protocols: Any) -> None:
    command = _command(
        protocols, "related", "related articles of labelled events, beside brute force (recall, nDCG)",
        "aggregator.cli.evaluation:related",
    )  # fmt: skip
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="articles with a `cluster`, the event, each"
    )
    _background(command)
    command.add_argument("--limit", metavar="K", type=_positive, default=10, help="asked for (default 10)")
    _calibrate(command)
    command.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    _settings(command, (*RULES, "log_level", "log_format"))


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
    command = _command(
        protocols, "methods", "the literature's methods for whole archives side by side, clean and scanned",
        "aggregator.cli.methods:methods",
    )  # fmt: skip
    command.add_argument("files", nargs="+", metavar="FILE", help="articles with a `cluster` each")
    command.add_argument("--method", metavar="NAME", action="append", help="only these; repeatable")
    command.add_argument(
        "--level", metavar="NAME", action="append", help="clean, light, medium, heavy; repeatable"
    )
    command.add_argument("--out", metavar="FILE", help="write an HTML page with the table and a plot")
    command.add_argument("--processes", metavar="N", type=_positive, default=1, help="methods at a time")
    command.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    _settings(command, ("log_level", "log_format"))


def _background(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--background", metavar="FILE", action="append", default=[], help="unlabelled articles; repeatable"
    )


def _events(protocols: Any) -> None:
    command = _command(
        protocols, "events", "known events in recorded streams of headlines", "aggregator.cli.offline:events"
    )
    command.add_argument(
        "windows", metavar="WINDOWS", nargs="?", help="directory of the windows, else FILE's"
    )
    command.add_argument("file", metavar="FILE", help="list of known events, each with its window file")
    command.add_argument("--processes", metavar="N", type=_positive, default=1, help="windows at a time")
    command.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    command.add_argument("--plot", metavar="DIR", help="draw the timeline of each window there (matplotlib)")
    _mode(command, "both")
    _settings(command, (*BURSTS, "log_level", "log_format"))


def _mode(command: argparse.ArgumentParser, *more: str) -> None:
    command.add_argument(
        "--mode", choices=("stories", "neighbours", *more), default="stories",
        help="similar means of one story (default), or near by bits as in the paper",
    )  # fmt: skip


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def _span_ms(text: str) -> int:
    number, unit = text[:-1], text[-1:]
    if unit not in SPANS_MS or not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a span of time such as 24h or 7d")
    return int(number) * SPANS_MS[unit]


def _listed(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Several values with commas between them."""

    def values(text: str) -> list[Any]:
        try:
            return [kind(part) for part in text.split(",")]
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not numbers with commas between them") from None

    return values


def _keys(commands: Any) -> None:
    top = commands.add_parser("keys", help="say who may use the service, and as what", allow_abbrev=False)
    changes = top.add_subparsers(title="changes", metavar="CHANGE", required=True)
    for name, help in (
        ("add", "make a key and print it, this once"),
        ("list", "all keys: id, role, how long, name"),
        ("revoke", "end a key now"),
        ("rotate", "make another key of the same name and role; the old one lives on for a while"),
    ):
        command = _command(changes, name, help, "aggregator.cli.keys:run")
        command.set_defaults(change=name)
        _key_options(command, name)
        _where(command, server=False)
        _settings(command, ("data_dir", "log_level"))


def _key_options(command: argparse.ArgumentParser, change: str) -> None:
    if change == "add":
        command.add_argument("name", metavar="NAME", help="whose key it is; changes are recorded under it")
        command.add_argument("--role", required=True, choices=("crawler", "reader", "editor", "admin"))
        command.add_argument("--expires", metavar="SPAN", type=_span_ms, help="e.g. 90d (default: never)")
        command.add_argument(
            "--source", metavar="NAME", action="append", default=[],
            help="post and delete articles of this source alone; repeatable",
        )  # fmt: skip
    elif change != "list":
        command.add_argument("id", metavar="ID", help="as `aggregator keys list` shows it")
    if change == "rotate":
        command.add_argument(
            "--overlap", metavar="SPAN", type=_span_ms, default=SPANS_MS["d"],
            help="how long the old key works beside the new one (default 1d)",
        )  # fmt: skip


def _doctor(commands: Any) -> None:
    command = _command(
        commands, "doctor", "say what is configured, reachable and loaded, and what is wrong",
        "aggregator.cli.doctor:run",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="one JSON object instead of sentences")
    command.add_argument(
        "--audit", type=_positive, metavar="N",
        help="compare N stored articles per space with all that is stored, at every radius; 1 if one is missed",
    )  # fmt: skip
    _settings(command, FIELDS)
