"""``aggregator evaluate methods``: archive methods of the literature, on clean and on noisy text."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.text.language import language_group
from aggregator.domain import Analysis, Article
from aggregator.errors import EXIT_OK, ConfigurationError, InvalidInput
from aggregator.extensions import feature_names
from aggregator.settings import Settings
from aggregator_lab.cli.evaluate import check_files, load_analyzer
from aggregator_lab.evaluation import features, methods
from aggregator_lab.evaluation.article_files import read_articles
from aggregator_lab.evaluation.methods import COMMON_NGRAM_WORDS, MethodResult
from aggregator_lab.evaluation.noise import CLEAN, NOISE_LEVELS, SINGLE_KINDS
from aggregator_lab.evaluation.pair_scorers import METHOD_NAMES, default_methods
from aggregator_lab.evaluation.pairs import load_pairs
from aggregator_lab.labeled import first_per_label, load_labeled, merged_labels


def compare_methods(args: argparse.Namespace, settings: Settings) -> int:
    """Score each method at each noise level."""
    check_files(args)
    levels = {level.name: level for level in (CLEAN, *NOISE_LEVELS, *SINGLE_KINDS)}
    _check_names("method", args.method, METHOD_NAMES)
    _check_names("level", args.level, levels)
    gold = first_per_label(load_labeled(args.files, args.column, unique_ids=False), args.per_label)
    chosen = [levels[name] for name in args.level] if args.level else [CLEAN, *NOISE_LEVELS]
    results = methods.evaluate(
        gold, methods=args.method or default_methods(), levels=chosen, processes=args.processes
    )
    shares = methods.shares_without_common_ngram(gold, chosen)
    result = {"rows": as_json(results), "without_common_10gram": shares}
    print(json.dumps(result) if args.json else format_table(results, shares))
    return EXIT_OK


def _check_names(option: str, given: Iterable[str] | None, known: Iterable[str]) -> None:
    names = list(known)
    for name in given or ():
        if name not in names:
            raise ConfigurationError(f"{option}: unknown value {name!r}; allowed: {'; '.join(names)}.")


def as_json(rows: Sequence[MethodResult]) -> list[dict[str, Any]]:
    """One object per row, numbers rounded to 4 decimals."""
    return [{k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(row).items()} for row in rows]


def format_table(rows: Sequence[MethodResult], shares_without_ngram: Mapping[str, float]) -> str:
    """Table for a terminal.

    ``shares_without_ngram``: result of ``methods.shares_without_common_ngram``.
    """
    heads = ("B3 F1", "ARI", "ARI lab.", "pair P", "pair R", "pair F1", "group", "whole", "CPU s", "MB")
    lines = [f"{'level':8} {'method':23} {'clustering':11}" + "".join(f"{head:>9}" for head in heads)]
    for row in rows:
        measures = (
            row.b_cubed_f1, row.adjusted_rand, row.adjusted_rand_as_labelled, row.pair_precision,
            row.pair_recall, row.pair_f1,
        )  # fmt: skip
        lines.append(
            f"{row.level:8} {row.method:23} {row.clustering:11}"
            + "".join(f"{measure:9.3f}" for measure in measures)
            + f"{row.mean_group:9.1f}{row.whole_b_cubed_f1:9.3f}{row.seconds:9.1f}{row.memory_mb:9.0f}"
        )
    lines += [*methods_not_run(rows), *ngram_lines(shares_without_ngram)]
    return "\n".join(lines)


def ngram_lines(shares_without_ngram: Mapping[str, float]) -> list[str]:
    """Per noise level, a line with the share of copies that n-grams cannot find."""
    return [
        f"{level:8} {share:.1%} of the pairs of copies have no common {COMMON_NGRAM_WORDS}-gram"
        for level, share in shares_without_ngram.items()
    ]


def methods_not_run(rows: Sequence[MethodResult]) -> list[str]:
    """Per evaluated noise level, a line with the methods that were not run, if any."""
    lines = []
    for level in dict.fromkeys(row.level for row in rows):
        run = {row.method for row in rows if row.level == level}
        missing = [name for name in METHOD_NAMES if name not in run]
        lines += [f"{level:8} not run: {'; '.join(missing)}"] if missing else []
    return lines


def compare_features(args: argparse.Namespace, settings: Settings) -> int:
    """Fit each extractor to every second article of the corpus and measure it on the rest of the data."""
    check_files(args, *args.corpus, *args.pairs, *args.events)
    data = _load(args, load_analyzer(settings))
    rows = features.evaluate(data, list(dict.fromkeys(args.features or feature_names())), args.group)
    print(json.dumps([r.as_json() for r in rows]) if args.json else features.format_table(rows, data))
    return EXIT_OK


def _load(args: argparse.Namespace, analyzer: Analyzer) -> features.FeatureData:
    def analyses(articles: Sequence[Article]) -> list[Analysis | None]:
        """Of each article; None for those of other language groups, and for those without words."""
        results = analyzer.analyze_many(articles)
        return [
            r if isinstance(r, Analysis) and language_group(r.lang) == args.group else None for r in results
        ]

    def labeled(files: Sequence[str]) -> list[tuple[Analysis, str]]:
        gold = first_per_label(load_labeled(files, args.column) if files else [], args.per_label)
        found = analyses([item.article for item in gold])
        return [(item, label) for item, label in zip(found, merged_labels(gold), strict=True) if item]

    articles = read_articles(args.corpus, columns=args.column)
    sampled = articles[:: max(1, len(articles) // args.max)][: args.max]
    corpus = [item for item in analyses(sampled) if item]
    copies = labeled(args.files)
    if not copies or len(corpus) < 2:
        raise InvalidInput(
            f"No articles of group {args.group!r} in these files; give others or another --group."
        )
    judged = load_pairs(args.pairs, args.column) if args.pairs else []
    firsts, seconds = analyses([pair.first for pair in judged]), analyses([pair.second for pair in judged])
    return features.FeatureData(
        corpus[::2],
        corpus[1::2],
        copies,
        [
            (first, second, pair.same)
            for pair, first, second in zip(judged, firsts, seconds, strict=True)
            if first and second
        ],
        labeled(args.events),
    )
