"""File of the pairs that a rule decides otherwise than their labels, with why, to be looked at."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import NamedTuple

from aggregator import jsonl
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.source import with_source
from aggregator.dedup.grouping import stored_evidence
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import compare_pair
from aggregator.domain import Article, build_record
from aggregator.errors import AggregatorError
from aggregator.queries.explain import MISSING_TEXTS_NOTE, ComparedArticle, explain
from aggregator.queries.related import Subject
from aggregator_archive.replay import rfc3339

FIELDS = ("id", "title", "text", "source")


class JudgedPair(NamedTuple):
    """Two articles in order; ``same``: labeled as copies, or judged alike by people."""

    first: Article
    second: Article
    same: bool


HINT = (  # below a table of policies
    "`{}` is the rule of the service, the rows `hamming` compare fingerprints alone; "
    "`--errors FILE.jsonl` lists its missed and wrong pairs."
)


def write(file: str, pairs: Sequence[JudgedPair], analyzer: Analyzer, policy: Policy) -> None:
    """Write a row per pair, readable by `aggregator evaluate pairs`, and report their numbers on stderr.

    A row has ``error`` ("missed" or "wrong"), ``same``, ``reason`` and ``explanation`` (``explain_pair``),
    ``FIELDS`` and ``published_at`` of both articles (``text1``).
    """
    with jsonl.open_output(file) as write_line:
        for pair in pairs:
            row: dict[str, object] = {"error": "missed" if pair.same else "wrong", "same": pair.same}
            row["reason"], row["explanation"] = explain_pair(pair, analyzer, policy)
            for side, article in enumerate(pair[:2], 1):
                row |= {f"{name}{side}": getattr(article, name) for name in FIELDS}
                if article.published_at_ms is not None:
                    row[f"published_at{side}"] = rfc3339(article.published_at_ms)
            write_line(json.dumps(row).encode())
    missed = sum(pair.same for pair in pairs)
    print(f"{missed} missed pairs, {len(pairs) - missed} wrong ones: {file}", file=sys.stderr)


def explain_pair(pair: JudgedPair, analyzer: Analyzer, policy: Policy) -> tuple[str, str]:
    """What decides about two articles alone, and the sentence of `aggregator explain` about them.

    A reason of docs/design/duplicate-rules.md ("part"), or "copy", "too little in common", "language" or
    "invalid".
    """
    articles = [with_source(article) for article in pair[:2]]
    analyses = analyzer.analyze_many(articles)
    records = []
    for article, analysis in zip(articles, analyses, strict=True):
        if isinstance(analysis, AggregatorError):
            return "invalid", str(analysis)
        records.append(build_record(article, analysis))
    first, second = records
    a, b = (ComparedArticle(record.id, record, None, Subject("", record)) for record in records)
    explanation = explain(a, b, policy).summary.removesuffix(MISSING_TEXTS_NOTE)
    if first.space != second.space:
        return "language", explanation
    is_copy, reason = compare_pair(second, first, stored_evidence(first, second), policy)
    return reason or ("copy" if is_copy else "too little in common"), explanation
