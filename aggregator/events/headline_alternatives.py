"""Headlines of an event that an editor may choose instead of the automatic one. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from aggregator.analysis.text.headline import strip_desk_prefix
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.domain import ArticleRecord
from aggregator.events.detection.headline_choice import Candidate, rank_headlines

MAX_ALTERNATIVES = 3
# Two headlines whose terms have a larger Jaccard similarity say the same.
MAX_RESEMBLANCE = 0.5


def headline_alternatives(records: Sequence[ArticleRecord], current_title: str) -> list[ArticleRecord]:
    """Return the articles with the best headlines that differ from ``current_title`` and from each other."""
    titled = [record for record in records if record.title]
    candidates = [Candidate(r.title, r.publication_ms, dict(r.terms)) for r in titled]
    found: list[ArticleRecord] = []
    taken = [_terms(current_title, titled[0].lang)] if titled else []
    for position in rank_headlines(candidates):
        record = titled[position]
        terms = _terms(record.title, record.lang)
        if record.title != current_title and all(_resemblance(terms, t) <= MAX_RESEMBLANCE for t in taken):
            found.append(record)
            taken.append(terms)
        if len(found) == MAX_ALTERNATIVES:
            break
    return found


def _terms(title: str, lang: str) -> frozenset[str]:
    return frozenset(tokenize(strip_desk_prefix(title), lang))


def _resemblance(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0
