"""Title rule for many pairs: the minimum cosine of a pair depends on the similarity of its titles.

The rule is that of ``dedup/title_rule.py``; term weights are those of this archive (``vectors.tfidf``).
Texts are read again, and those of all candidates are in memory at once: for comparing methods on up to some
100,000 articles.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from aggregator.dedup.title_rule import required_similarity, title_similarity
from aggregator_archive.arrays import Flags, Floats, Rows, batches
from aggregator_archive.checkpoint import load_or_compute
from aggregator_archive.job import Job
from aggregator_archive.pairs import Pairs, unpack_pairs
from aggregator_archive.vector_candidates import DEFAULT_LANG, comparable_text, read_articles
from aggregator_archive.vectors import Vectors, tfidf

_PAIRS_PER_BATCH = 1 << 16


def filter_by_title_rule(job: Job, chunks: Sequence[Path], pairs: Pairs) -> Pairs:
    """The candidates whose cosine reaches what their titles require; checkpointed in a file."""
    file = job.work_dir / "confirmed" / "titled" / "pairs.npz"
    return load_or_compute(
        file, lambda: {"pairs": pairs[_title_rule_mask(job, chunks, *unpack_pairs(pairs))]}
    )["pairs"]


def _title_rule_mask(job: Job, chunks: Sequence[Path], a: Rows, b: Rows) -> Flags:
    if not len(a):
        return np.zeros(0, bool)
    chosen, position = np.unique(np.concatenate([a, b]), return_inverse=True)
    a, b = position[: len(a)], position[len(a) :]
    articles = list(read_articles(job, chunks, chosen))
    langs = [article.lang or job.encoding.lang or DEFAULT_LANG for article in articles]
    cosines = pair_products(tfidf([comparable_text(article) for article in articles], langs), a, b)
    # The title of an article without a text is compared as its text already; it must not lower the
    # threshold too.
    titles = [
        (article.title, lang) if article.text else ("", DEFAULT_LANG)
        for article, lang in zip(articles, langs, strict=True)
    ]
    return cosines >= required_similarities(titles, a, b)


def pair_products(vectors: Vectors, a: Rows, b: Rows) -> Floats:
    """(n,) inner product of the sparse vectors of each pair of rows."""
    products = [np.empty(0)]
    for batch in batches(len(a), _PAIRS_PER_BATCH):
        products.append(np.asarray(vectors[a[batch]].multiply(vectors[b[batch]]).sum(axis=1)).ravel())
    return np.concatenate(products)


def required_similarities(titles: Sequence[tuple[str, str]], a: Rows, b: Rows) -> Floats:
    """(n,) minimum cosine of each pair of rows; ``titles``: title and language of each row."""
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    required = (
        required_similarity(title_similarity(*titles[first], *titles[second])) for first, second in pairs
    )
    return np.fromiter(required, np.float64, len(a))
