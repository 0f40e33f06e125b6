"""All stored articles ranked by one score of the literature, without an index."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aggregator.analysis.text import tokenizer
from aggregator.domain import Article
from aggregator_archive.optional_imports import import_optional
from aggregator_lab.evaluation.vectors import tfidf

# Position of an article -> its score with each article (n,), higher for more similar.
Scorer = Callable[[int], Any]
BM25 = ("bm25s", "newsdedup-lab[bm25]", "BM25")  # arguments of import_optional
RANKINGS = ("tf-idf", "bm25")


def build_scorer(name: str, articles: Sequence[Article], langs: Sequence[str]) -> Scorer:
    """The scorer of a name of ``RANKINGS`` over headlines and texts; ``langs``: ISO 639-1 per article.

    ``tf-idf``: cosine; ``bm25``: Lucene's variant. Raises ConfigurationError without the library.
    """
    texts = [f"{article.title}\n{article.text}" for article in articles]
    if name == "bm25":
        terms = [tokenizer.tokenize(text, lang) for text, lang in zip(texts, langs, strict=True)]
        model = import_optional(*BM25).BM25()
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        model.index(terms, show_progress=False)
        none = np.zeros(len(terms))  # bm25s scores no query without terms
        return lambda at: model.get_scores(list(dict.fromkeys(terms[at]))) if terms[at] else none
    matrix = tfidf(texts, langs)
    return lambda position: matrix @ matrix[position].toarray()[0]


def nearest(scores: Any, own: int, count: int) -> list[int]:
    """Positions of the ``count`` highest scores above 0, highest first, without ``own``."""
    best = np.argsort(-scores, kind="stable")[: count + 1]
    return [int(position) for position in best if position != own and scores[position] > 0][:count]
