"""Vector encodings of the literature, and the 64 nearest neighbors of each article.

All vectors have length 1, so their inner product is the cosine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.analysis.text import tokenizer
from aggregator.domain import Article
from aggregator_archive.arrays import Floats, Rows, batches, order_pairs
from aggregator_archive.optional_imports import import_optional


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPairs:
    """Pairs of rows ``a`` < ``b`` (n,) with their ``score`` (n,)."""

    a: Rows
    b: Rows
    score: Floats


PairScorer = Callable[[Sequence[Article]], ScoredPairs]


GENSIM = ("gensim.models.doc2vec", "newsdedup-lab[neural]", "Doc2Vec")  # arguments of import_optional
FAISS = ("faiss", "newsdedup-lab[neural]", "Search by vectors")
LIBRARIES = {"doc2vec": (GENSIM, FAISS)}  # of each method

NEAREST_COUNT = 64
# The settings of Zhang (2023) where gensim has them. One worker: more give other vectors in each run.
DOC2VEC_PARAMETERS: dict[str, Any] = {
    "vector_size": 256,
    "window": 8,
    "max_final_vocab": 1_500_000,
    "min_count": 2,
    "epochs": 20,
    "workers": 1,
    "seed": 1,
}
_ROWS_PER_BATCH = 512  # of sparse vectors, each compared with all
_ROWS_PER_SEARCH = 1 << 14  # of dense vectors: 65 pairs each

Vectors = Any  # (n, d) float32, or a scipy sparse matrix of that shape


def texts_of(articles: Sequence[Article]) -> list[str]:
    """What the methods compare: the text of each article, or its title."""
    return [article.text or article.title for article in articles]


def tfidf(texts: Sequence[str], langs: Sequence[str]) -> Vectors:
    """(n, V) sparse: (1 + ln tf) * idf of the service's index terms; (n, 1) zeros if no text has a term.

    ``langs``: ISO 639-1 per text, as for all encoders.
    """
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

    terms = [tokenizer.tokenize(text, lang) for text, lang in zip(texts, langs, strict=True)]
    if not any(terms):
        return csr_matrix((len(texts), 1), dtype=np.float32)
    return TfidfVectorizer(analyzer=list, sublinear_tf=True).fit_transform(terms).astype(np.float32)


def doc2vec(texts: Sequence[str], langs: Sequence[str]) -> Vectors:
    """(n, 256) paragraph vectors, the same in every run; zeros if no two texts share a word."""
    gensim = import_optional(*GENSIM)
    documents = [
        gensim.TaggedDocument(" ".join(tokenizer.shingle_units(text, lang)).split(), [row])
        for row, (text, lang) in enumerate(zip(texts, langs, strict=True))
    ]
    model = gensim.Doc2Vec(**DOC2VEC_PARAMETERS)
    model.build_vocab(documents)
    if not len(model.wv):
        return np.zeros((len(documents), model.vector_size), np.float32)
    model.train(documents, total_examples=len(documents), epochs=model.epochs)
    return normalize_rows(model.dv.vectors)


def nearest_pairs(vectors: Vectors, neighbor_count: int = NEAREST_COUNT) -> tuple[Rows, Rows, Floats]:
    """Distinct pairs a < b of each row with its ``neighbor_count`` nearest rows; cosines from 0 to 1."""
    none = np.empty(0, np.int64)
    count = vectors.shape[0]
    if count < 2:
        return none, none, np.empty(0)
    search = _search_sparse if hasattr(vectors, "tocsr") else _search_dense
    pairs, cosines = [], []
    for start, found, others in search(vectors, neighbor_count):
        rows = np.repeat(np.arange(start, start + len(others)), others.shape[1])
        near = others.ravel().astype(np.int64)
        keep = (rows != near) & (near >= 0)
        low, high = order_pairs(rows[keep], near[keep])
        pairs.append(low * count + high)
        cosines.append(found.ravel()[keep])
    distinct, first = np.unique(np.concatenate(pairs), return_index=True)
    cosine = np.concatenate(cosines)[first].astype(np.float64)
    return distinct // count, distinct % count, np.clip(cosine, 0.0, 1.0)


# Of a search: the first row of a batch, and (rows, neighbors) cosines and rows, -1 for none.
Searched = Iterator[tuple[int, npt.NDArray[np.float32], npt.NDArray[np.int64]]]


def _search_dense(vectors: Vectors, neighbor_count: int) -> Searched:
    """Exact search by inner product (faiss)."""
    searched = import_optional(*FAISS).IndexFlatIP(vectors.shape[1])
    searched.add(vectors)
    for batch in batches(len(vectors), _ROWS_PER_SEARCH):
        yield batch.start, *searched.search(vectors[batch], min(neighbor_count + 1, len(vectors)))


def _search_sparse(vectors: Vectors, neighbor_count: int) -> Searched:
    """Exact search by sparse products, in batches of rows."""
    for batch in batches(vectors.shape[0], _ROWS_PER_BATCH):
        block = (vectors[batch] @ vectors.T).toarray()
        count = min(neighbor_count + 1, block.shape[1])
        best = np.argpartition(-block, count - 1, axis=1)[:, :count]
        yield batch.start, np.take_along_axis(block, best, 1), best


def normalize_rows(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """(n, d) vectors of length 1; zeros remain. Changes its argument: a copy of 10^6 rows takes 1 GB."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, np.maximum(norms, 1e-12), out=vectors)
    return np.ascontiguousarray(vectors)
