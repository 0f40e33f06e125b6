"""Candidates by vectors: the 64 nearest articles of each whose cosine reaches a threshold (Zhang 2023).

Unlike the joins this needs all vectors in memory at once, and tfidf and embedding all texts too. doc2vec
reads the words of the texts from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from aggregator.domain import Article
from aggregator_archive import paragraph_vectors, rows, vectors
from aggregator_archive.arrays import Array, Rows
from aggregator_archive.checkpoint import atomic_write, load_or_compute
from aggregator_archive.columns import DistinctTexts
from aggregator_archive.encode import usable_rows
from aggregator_archive.job import Job
from aggregator_archive.pairs import Pairs, merge_pairs, pack_pairs

DEFAULT_LANG = "en"  # of articles without a language, unless the job has one
DOC2VEC = "doc2vec"
TRAINED_VECTORS = "paragraph-vectors.npy"  # the checkpoint between training and search
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

    directory = job.work_dir / "candidates"
    pairs = load_or_compute(directory / "vectors.npz", compute)["pairs"]
    (directory / TRAINED_VECTORS).unlink(missing_ok=True)
    return pairs


def _paragraph_vectors(job: Job, texts: Iterator[tuple[str, str]]) -> vectors.Vectors:
    """(n, 256), mapped from a checkpoint: training takes minutes, and the search can be interrupted too."""
    directory = job.work_dir / "candidates"
    words_file, checkpoint = directory / "words.txt", directory / TRAINED_VECTORS
    if not checkpoint.exists():
        words = paragraph_vectors.write_words(texts, words_file)
        passes = paragraph_vectors.passes(words, job.method.trained_words)
        trained = paragraph_vectors.train(words_file, passes, job.method.vector_workers)
        with atomic_write(checkpoint) as out:
            np.save(out, vectors.normalize_rows(trained))
        words_file.unlink()
    return np.load(checkpoint, mmap_mode="r")


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
