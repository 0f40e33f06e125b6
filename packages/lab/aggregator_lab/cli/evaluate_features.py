"""``aggregator evaluate features``: feature extractors fitted and measured on the same data."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from aggregator import jsonl
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.text.language import language_group
from aggregator.domain import Analysis, Article
from aggregator.errors import InvalidInput
from aggregator.extensions import feature_names
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.settings import Settings
from aggregator_archive.rows import read_rows
from aggregator_lab.evaluation import features as protocol
from aggregator_lab.evaluation.article_files import read_articles
from aggregator_lab.evaluation.pairs import parse_pairs
from aggregator_lab.labeled import SPOTSIGS_LABEL_MERGES, first_per_label, load_labeled


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Fit each extractor to every second article of the corpus and measure it on the rest of the data."""
    jsonl.check_readable([*args.files, *args.corpus, *args.pairs, *args.events])
    data = _load(args, Analyzer(load_models(Path(settings.models_dir) if settings.models_dir else None)))
    rows = protocol.evaluate(data, list(dict.fromkeys(args.features or feature_names())), args.group)
    print(json.dumps([r.as_json() for r in rows]) if args.json else protocol.format_table(rows, data))
    return EXIT_OK


def _load(args: argparse.Namespace, analyzer: Analyzer) -> protocol.FeatureData:
    def analyses(articles: Sequence[Article]) -> list[Analysis | None]:
        """Of each article; None for those of other language groups, and for those without words."""
        results = analyzer.analyze_many(articles)
        return [
            r if isinstance(r, Analysis) and language_group(r.lang) == args.group else None for r in results
        ]

    def labeled(files: Sequence[str]) -> list[tuple[Analysis, str]]:
        gold = first_per_label(load_labeled(files) if files else [], args.per_label)
        found = analyses([item.article for item in gold])
        labels = (SPOTSIGS_LABEL_MERGES.get(item.label, item.label) for item in gold)
        return [(item, label) for item, label in zip(found, labels, strict=True) if item]

    articles = read_articles(args.corpus).articles
    sampled = articles[:: max(1, len(articles) // args.max)][: args.max]
    corpus = [item for item in analyses(sampled) if item]
    copies = labeled(args.files)
    if not copies or len(corpus) < 2:
        raise InvalidInput(
            f"No articles of group {args.group!r} in these files; give others or another --group."
        )
    judged = parse_pairs(read_rows(args.pairs)) if args.pairs else []
    firsts, seconds = analyses([pair.first for pair in judged]), analyses([pair.second for pair in judged])
    return protocol.FeatureData(
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
