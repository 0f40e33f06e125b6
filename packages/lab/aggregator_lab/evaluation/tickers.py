"""Companies of newswire articles, by the ticker symbols in their texts (``<IBM>``)."""

from __future__ import annotations

import re

from aggregator.domain import Article

_TICKER = re.compile(r"<[A-Z0-9.-]+>")


def tickers(article: Article) -> frozenset[str]:
    """Ticker symbols in headline and text, with their angle brackets."""
    return frozenset(_TICKER.findall(f"{article.title}\n{article.text}"))


def names_other_companies(article: Article, match: Article) -> bool:
    """Whether both name companies, and none in common: a duplicate verdict is then very likely wrong."""
    ours, others = tickers(article), tickers(match)
    return bool(ours) and bool(others) and not ours & others
