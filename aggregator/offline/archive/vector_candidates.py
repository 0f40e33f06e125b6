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
from aggregator.offline.archive.checkpoint import save_arrays
from aggregator.offline.archive.columns import DistinctTexts
from aggregator.offline.archive.encode import usable_rows
from aggregator.offline.archive.job import Job
from aggregator.offline.archive.pairs import Pairs, Rows, merge_pairs, pack_pairs

VECTOR_ENCODERS: Mapping[str, Callable[[Sequence[str]], vectors.Vectors]] = {
    "tfidf": vectors.tfidf,
    "doc2vec": vectors.doc2vec,
    "embedding": vectors.embedding,
}


def vector_candidates(job: Job, chunks: Sequence[Path], distinct_texts: DistinctTexts) -> Pairs:
    """Ascending pairs of distinct rows; kept in a file for a run that is taken up again."""
    file = job.work_dir / "candidates" / "vectors.npz"
    if not file.exists():
        texts = [comparable_text(one) for one in read_articles(job, chunks, distinct_texts.rows)]
        a, b, cosine = vectors.nearest_pairs(VECTOR_ENCODERS[job.method.encode](texts))
        near = cosine >= job.method.cosine
        save_arrays(
            file, pairs=merge_pairs([pack_pairs(distinct_texts.rows[a[near]], distinct_texts.rows[b[near]])])
        )
    with np.load(file) as arrays:
        found: Pairs = arrays["pairs"]
    return found


def read_articles(job: Job, chunks: Sequence[Path], selected_rows: Rows) -> list[Article]:
    """The articles of these rows (ascending), by reading the input again."""
    columns = dict(job.encoding.columns)
    wanted = iter(selected_rows.tolist())
    found, next_one = [], next(wanted, None)
    for at, row in enumerate(usable_rows(job.inputs, chunks)):
        if at == next_one:
            found.append(rows.parse_article(row, columns))
            next_one = next(wanted, None)
    return found


def comparable_text(article: Article) -> str:
    """What there is of it."""
    return article.text or article.title or article.html
