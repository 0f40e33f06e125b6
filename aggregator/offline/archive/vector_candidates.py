"""Candidates by vectors: the 64 nearest of each article whose cosine reaches a threshold (Zhang 2023).

Unlike the joins this needs all texts and all vectors in memory at once: a comparison for corpora of up to some
hundred thousand articles, not the way to seven million.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from aggregator.domain import Article
from aggregator.offline.archive import rows, vectors
from aggregator.offline.archive.checkpoint import save
from aggregator.offline.archive.columns import Distinct
from aggregator.offline.archive.encode import usable
from aggregator.offline.archive.job import Job
from aggregator.offline.archive.pairs import Pairs, Rows, merged, packed

ENCODERS: Mapping[str, Callable[[Sequence[str]], vectors.Vectors]] = {
    "tfidf": vectors.tfidf,
    "doc2vec": vectors.doc2vec,
    "embedding": vectors.embedding,
}


def nearby(job: Job, chunks: Sequence[Path], alone: Distinct) -> Pairs:
    """Ascending pairs of distinct rows; kept in a file for a run that is taken up again."""
    file = job.work / "candidates" / "vectors.npz"
    if not file.exists():
        texts = [text_of(one) for one in articles(job, chunks, alone.rows)]
        a, b, cosine = vectors.nearest(ENCODERS[job.method.encode](texts))
        near = cosine >= job.method.cosine
        save(file, pairs=merged([packed(alone.rows[a[near]], alone.rows[b[near]])]))
    with np.load(file) as arrays:
        found: Pairs = arrays["pairs"]
    return found


def articles(job: Job, chunks: Sequence[Path], chosen: Rows) -> list[Article]:
    """The articles of these rows (ascending), by reading the input again."""
    columns = dict(job.encoding.columns)
    wanted = iter(chosen.tolist())
    found, next_one = [], next(wanted, None)
    for at, row in enumerate(usable(job.inputs, chunks)):
        if at == next_one:
            found.append(rows.article(row, columns))
            next_one = next(wanted, None)
    return found


def text_of(article: Article) -> str:
    """What there is of it."""
    return article.text or article.title or article.html
