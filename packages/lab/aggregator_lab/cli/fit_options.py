"""Options of ``aggregator fit``."""

from __future__ import annotations

from typing import Any

from aggregator.cli.common_options import LOG_SETTINGS, add_command, add_progress_option, add_settings_options
from aggregator.extensions import TFIDF_PCA, feature_names
from aggregator_archive.cli.options import ARTICLE_COLUMNS, add_column_option, add_files


def add_fit_command(commands: Any) -> None:
    """Add ``aggregator fit``."""
    command = add_command(
        commands, "fit", "fit a feature model to your own articles", "aggregator_lab.cli.fit:run",
        example="archive.jsonl.gz --group en --out models/en.model",
    )  # fmt: skip
    add = command.add_argument
    add_files(command, ".jsonl, .jsonl.gz, .csv, .tsv or .parquet")
    add_column_option(command, ARTICLE_COLUMNS)
    add("--group", required=True, metavar="NAME", help="language group: en, zh, ...")
    add("--out", required=True, metavar="FILE", help="model file to write, e.g. en.model")
    add(
        "--features", choices=feature_names(), default=TFIDF_PCA,
        help=f"feature extractor (default {TFIDF_PCA}, that of the shipped models)",
    )  # fmt: skip
    add("--card", metavar="FILE", help="Markdown file for the model card")
    add("--replace", action="store_true", help="replace a model and a card that exist")
    add("--corpus", metavar="TEXT", help="description of the articles, for the model card")
    add("--licence", metavar="TEXT", help="license of the articles, for the model card")
    add("--components", metavar="N", type=int, help="number of principal components")
    add("--terms", metavar="N", type=int, help="maximum size of the vocabulary")
    add(
        "--hyperplanes", choices=("hashed", "orthogonal", "learned"),
        help="hashed: as in the paper; learned: more duplicates by fingerprint, and more false positives "
        "(default orthogonal)",
    )  # fmt: skip
    add_progress_option(command)
    add_settings_options(command, LOG_SETTINGS)
