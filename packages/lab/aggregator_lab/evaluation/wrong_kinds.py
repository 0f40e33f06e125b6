"""Duplicates whose headlines differ, by kind: texts that look like copies and are none.

    not the article  the shared wording stands under three or more unlike headlines of one source
    bare headline    one of the two has no text
    part             the shorter text stands in a longer one that begins with something else
    passage          the shorter text has most of its wording for itself
    other            wrong by the counter (``judge_pair``), and of no kind above

A kind is a suspicion: pairs of a kind are to be read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aggregator.analysis.text.tokenizer import words
from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import (
    MIN_CONTAINMENT,
    MIN_HEADLINE_SIMILARITY,
    MIN_OPENING_SHARE,
    DuplicatePair,
    Shingles,
    StreamArticle,
    headline_similarity,
    opening_share,
    text_shingles,
)

STOCK_HEADLINES = 3
MIN_STOCK_SHARE = 0.8  # of the shared wording
MIN_LENGTH_RATIO = 2.0  # of a collection and a part of it
MAX_PASSAGE_SHARE = 0.5  # of the shorter text
KINDS = ("not the article", "bare headline", "part", "passage", "other")


def wrong_kinds(
    pairs: Sequence[DuplicatePair], stored: Mapping[str, StreamArticle]
) -> dict[str, list[DuplicatePair]]:
    """The suspicious pairs of each kind, in order."""
    unlike = [pair for pair in pairs if pair.evidence.headline_similarity < MIN_HEADLINE_SIMILARITY]
    shared = [
        _tokens_and_shingles(pair.article, pair.lang)[1] & _tokens_and_shingles(pair.match, pair.lang)[1]
        for pair in unlike
    ]
    stock = _stock_wording(frozenset().union(*shared), stored.values())
    found: dict[str, list[DuplicatePair]] = {kind: [] for kind in KINDS}
    for pair, wording in zip(unlike, shared, strict=True):
        kind = _kind(pair, wording, stock)
        if kind is not None:
            found[kind].append(pair)
    return found


def _kind(pair: DuplicatePair, shared: Shingles, stock: Shingles) -> str | None:
    if bool(pair.article.text) != bool(pair.match.text):
        return "bare headline"
    if pair.article.text and shared:
        if len(shared & stock) >= MIN_STOCK_SHARE * len(shared):
            return "not the article"
        both = sorted(
            (_tokens_and_shingles(article, pair.lang) for article in (pair.article, pair.match)),
            key=lambda item: len(item[1]),
        )
        (_, short), (tokens, long) = both
        inside = len(shared) >= MIN_CONTAINMENT * len(short)
        if inside and len(long) >= MIN_LENGTH_RATIO * len(short):
            if opening_share(tokens, short) < MIN_OPENING_SHARE:
                return "part"
        elif len(shared) < MAX_PASSAGE_SHARE * len(short):
            return "passage"
    return "other" if pair.evidence.wrong else None


def _stock_wording(shingles: Shingles, stored: Iterable[StreamArticle]) -> Shingles:
    """Those of the shingles that stand under three or more unlike headlines of one source."""
    headlines: dict[tuple[tuple[str, ...], str], list[str]] = defaultdict(list)
    found: set[tuple[str, ...]] = set()
    for item in stored:
        article = item.article
        if not article.title:
            continue
        for shingle in _tokens_and_shingles(article, item.lang)[1] & shingles - found:
            known = headlines[shingle, article.source]
            if all(headline_similarity(article.title, other) < MIN_HEADLINE_SIMILARITY for other in known):
                known.append(article.title)
                if len(known) == STOCK_HEADLINES:
                    found.add(shingle)
    return frozenset(found)


def _tokens_and_shingles(article: Article, lang: str) -> tuple[list[str], Shingles]:
    tokens = words(article.text or article.title, lang)
    return tokens, text_shingles(tokens, lang)


def as_json(found: Mapping[str, Sequence[DuplicatePair]]) -> dict[str, Any]:
    """Pairs of each kind, and how many of them a crawler drops."""
    return {
        kind: {"pairs": len(pairs), "dropped": Counter(pair.kept for pair in pairs)[False]}
        for kind, pairs in found.items()
    }
