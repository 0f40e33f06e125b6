"""Candidates by vectors: the 64 nearest articles of each whose cosine reaches a threshold (Zhang 2023).

Unlike the joins this needs all texts and all vectors in memory at once: for comparing methods on up to some
100,000 articles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from aggregator.domain import Article
from aggregator.offline.archive import rows, vectors
from aggregator.offline.archive.arrays import Array, Rows
from aggregator.offline.archive.checkpoint import load_or_compute
from aggregator.offline.archive.columns import DistinctTexts
from aggregator.offline.archive.encode import usable_rows
from aggregator.offline.archive.job import Job
from aggregator.offline.archive.pairs import Pairs, merge_pairs, pack_pairs

DEFAULT_LANG = "en"  # of articles without a language, unless the job has one
VECTOR_ENCODERS: Mapping[str, Callable[[Sequence[str], Sequence[str]], vectors.Vectors]] = {
    "tfidf": vectors.tfidf,
    "doc2vec": vectors.doc2vec,
    "embedding": vectors.embedding,
}


def vector_candidates(job: Job, chunks: Sequence[Path], distinct_texts: DistinctTexts) -> Pairs:
    """Ascending pairs of rows of distinct texts; checkpointed in a file."""

    def compute() -> dict[str, Array]:
        articles = read_articles(job, chunks, distinct_texts.rows)
        texts = [comparable_text(article) for article in articles]
        langs = [article.lang or job.encoding.lang or DEFAULT_LANG for article in articles]
        encoder = VECTOR_ENCODERS[job.method.encode]
        if job.method.encode == "doc2vec":
            encoder = partial(vectors.doc2vec, workers=job.method.vector_workers)
        a, b, cosine = vectors.nearest_pairs(encoder(texts, langs), index=job.method.vector_index)
        near = cosine >= job.method.cosine
        return {
            "pairs": merge_pairs([pack_pairs(distinct_texts.rows[a[near]], distinct_texts.rows[b[near]])])
        }

    return load_or_compute(job.work_dir / "candidates" / "vectors.npz", compute)["pairs"]


def read_articles(job: Job, chunks: Sequence[Path], selected_rows: Rows) -> list[Article]:
    """The articles of these rows (ascending), by reading the input again."""
    columns = dict(job.encoding.columns)
    wanted = set(selected_rows.tolist())
    usable = enumerate(usable_rows(job.inputs, chunks))
    return [rows.parse_article(row, columns) for at, row in usable if at in wanted]


def comparable_text(article: Article) -> str:
    """The text of an article; without one its title, else its HTML."""
    return article.text or article.title or article.html
