"""Candidates by vectors: the 64 nearest articles of each whose cosine reaches a threshold (Zhang 2023).

Unlike the joins this needs all vectors in memory at once, and tfidf and embedding all texts too. doc2vec
reads the words of the texts from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from aggregator.domain import Article
from aggregator.offline.archive import paragraph_vectors, rows, vectors
from aggregator.offline.archive.arrays import Array, Rows
from aggregator.offline.archive.checkpoint import load_or_compute
from aggregator.offline.archive.columns import DistinctTexts
from aggregator.offline.archive.encode import usable_rows
from aggregator.offline.archive.job import Job
from aggregator.offline.archive.pairs import Pairs, merge_pairs, pack_pairs

DEFAULT_LANG = "en"  # of articles without a language, unless the job has one
DOC2VEC = "doc2vec"
# Encoders that take all texts and their languages.
TEXT_ENCODERS: Mapping[str, Callable[[Sequence[str], Sequence[str]], vectors.Vectors]] = {
    "tfidf": vectors.tfidf,
    "embedding": vectors.embedding,
}
VECTOR_ENCODERS = frozenset({DOC2VEC, *TEXT_ENCODERS})


def vector_candidates(job: Job, chunks: Sequence[Path], distinct_texts: DistinctTexts) -> Pairs:
    """Ascending pairs of rows of distinct texts; checkpointed in a file."""

    def compute() -> dict[str, Array]:
        texts = _texts_and_languages(job, chunks, distinct_texts.rows)
        if job.method.encode == DOC2VEC:
            rows_of_texts = _paragraph_vectors(job, texts)
        else:
            read = list(texts)
            encoder = TEXT_ENCODERS[job.method.encode]
            rows_of_texts = encoder([text for text, _ in read], [lang for _, lang in read])
        a, b, _ = vectors.nearest_pairs(
            rows_of_texts, index=job.method.vector_index, min_cosine=job.method.cosine
        )
        return {"pairs": merge_pairs([pack_pairs(distinct_texts.rows[a], distinct_texts.rows[b])])}

    return load_or_compute(job.work_dir / "candidates" / "vectors.npz", compute)["pairs"]


def _paragraph_vectors(job: Job, texts: Iterator[tuple[str, str]]) -> vectors.Vectors:
    file = job.work_dir / "candidates" / "words.txt"
    words = paragraph_vectors.write_words(texts, file)
    passes = paragraph_vectors.passes(words, job.method.trained_words)
    trained = paragraph_vectors.train(file, passes, job.method.vector_workers)
    file.unlink()
    return vectors.normalize_rows(trained)


def _texts_and_languages(job: Job, chunks: Sequence[Path], selected_rows: Rows) -> Iterator[tuple[str, str]]:
    for article in read_articles(job, chunks, selected_rows):
        yield comparable_text(article), article.lang or job.encoding.lang or DEFAULT_LANG


def read_articles(job: Job, chunks: Sequence[Path], selected_rows: Rows) -> Iterator[Article]:
    """The articles of these rows (ascending), by reading the input again."""
    columns = dict(job.encoding.columns)
    wanted = iter(selected_rows.tolist())
    following = next(wanted, None)
    for at, row in enumerate(usable_rows(job.inputs, chunks)):
        if following is None:
            return
        if at == following:
            yield rows.parse_article(row, columns)
            following = next(wanted, None)


def comparable_text(article: Article) -> str:
    """The text of an article; without one its title, else its HTML."""
    return article.text or article.title or article.html
