"""Vector encodings of the literature, and the 64 nearest neighbors of each article.

tfidf      term weights                                (scikit-learn)
doc2vec    Zhang's (2023) settings where gensim has them: window 8, 256 dimensions, vocabulary up to 1,500,000
embedding  static sentence vectors; the weights are part of the package, nothing is downloaded

All vectors have length 1, so their inner product is the cosine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.analysis.text import tokenizer
from aggregator.offline.archive.arrays import Floats, Rows, batches
from aggregator.offline.archive.pairs import order_pairs
from aggregator.optional_imports import import_optional

# Arguments of import_optional.
GENSIM = ("gensim.models.doc2vec", "neural", "Doc2Vec")
STATIC_MODEL = ("static_model", "neural", "Sentence embedding")
FAISS = ("faiss", "neural", "Search by vectors")

NEAREST_COUNT = 64
DOC2VEC_PARAMETERS = {
    "vector_size": 256,
    "window": 8,
    "max_final_vocab": 1_500_000,
    "min_count": 2,
    "epochs": 20,
}
EMBEDDING_MAX_CHARS = 2_000
# Of the approximate graph: links per row, and candidates while building and searching (faiss' terms: M,
# efConstruction, efSearch).
HNSW_LINKS, HNSW_BUILD_DEPTH, HNSW_SEARCH_DEPTH = 32, 80, 128
# Of the inverted file: lists searched, and vectors per list that faiss wants for the k-means of the lists.
IVF_PROBES, IVF_MIN_LIST = 16, 39
INDEXES = ("exact", "hnsw", "ivf")
_RANDOM_SEED = 1
_ROWS_PER_BATCH = 512

Vectors = Any  # (n, d) float32, or a scipy sparse matrix of that shape


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


def doc2vec(texts: Sequence[str], langs: Sequence[str], workers: int = 1) -> Vectors:
    """(n, 256) paragraph vectors (Le and Mikolov 2014) of words, in Chinese those of jieba (Zhang 2023).

    Only one worker gives the same vectors in every run.
    """
    gensim = import_optional(*GENSIM)
    documents = [
        gensim.TaggedDocument(tokenizer.shingle_units(text, lang), [at])
        for at, (text, lang) in enumerate(zip(texts, langs, strict=True))
    ]
    model = gensim.Doc2Vec(documents, workers=workers, seed=_RANDOM_SEED, **DOC2VEC_PARAMETERS)
    return _normalize_rows(np.array([model.dv[at] for at in range(len(texts))], np.float32))


def embedding(texts: Sequence[str], langs: Sequence[str]) -> Vectors:
    """(n, 64) vectors of a distilled sentence model, of the first ``EMBEDDING_MAX_CHARS`` characters.

    ``langs`` do not count: the model has one vocabulary.
    """
    model = import_optional(*STATIC_MODEL)
    openings = [text[:EMBEDDING_MAX_CHARS] for text in texts]
    return _normalize_rows(np.array(model.get_embeddings(openings), np.float32))


def nearest_pairs(
    vectors: Vectors, neighbor_count: int = NEAREST_COUNT, index: str = "exact"
) -> tuple[Rows, Rows, Floats]:
    """Distinct pairs a < b of each row with its ``neighbor_count`` nearest rows; cosines from 0 to 1.

    ``index``: exact, or an approximate one for dense vectors, hnsw or ivf; sparse ones are compared exactly.
    """
    count = vectors.shape[0]
    if count < 2:
        none = np.empty(0, np.int64)
        return none, none, np.empty(0)
    if hasattr(vectors, "tocsr"):
        rows, others, cosine = _search_sparse(vectors, neighbor_count)
    else:
        rows, others, cosine = _search_dense(vectors, neighbor_count, index)
    keep = (rows != others) & (others >= 0)
    low, high = order_pairs(rows[keep], others[keep])
    _, first = np.unique(low * count + high, return_index=True)
    return low[first], high[first], np.clip(cosine[keep][first].astype(np.float64), 0.0, 1.0)


def _search_dense(
    vectors: Vectors, neighbor_count: int, index: str
) -> tuple[Rows, Rows, npt.NDArray[np.float32]]:
    """Search by inner product (faiss): exact, in a small world graph, or in the lists of near centers.

    hnsw: Malkov & Yashunin 2018. ivf: sqrt(n) lists by k-means (Jégou et al. 2011), seeded by faiss.
    """
    faiss = import_optional(*FAISS)
    dimensions = vectors.shape[1]
    if index == "hnsw":
        searched = faiss.IndexHNSWFlat(dimensions, HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
        searched.hnsw.efConstruction, searched.hnsw.efSearch = HNSW_BUILD_DEPTH, HNSW_SEARCH_DEPTH
    elif index == "ivf":
        lists = max(1, min(math.isqrt(len(vectors)), len(vectors) // IVF_MIN_LIST))
        centers = faiss.IndexFlatIP(dimensions)
        searched = faiss.IndexIVFFlat(centers, dimensions, lists, faiss.METRIC_INNER_PRODUCT)
        searched.nprobe = IVF_PROBES
        searched.train(vectors)
    else:
        searched = faiss.IndexFlatIP(dimensions)
    searched.add(vectors)
    cosine, others = searched.search(vectors, min(neighbor_count + 1, len(vectors)))
    rows = np.repeat(np.arange(len(vectors)), others.shape[1])
    return rows, others.ravel().astype(np.int64), cosine.ravel()


def _search_sparse(vectors: Vectors, neighbor_count: int) -> tuple[Rows, Rows, npt.NDArray[np.float32]]:
    """Exact search by sparse products, in batches of rows."""
    rows, others, cosines = [], [], []
    for batch in batches(vectors.shape[0], _ROWS_PER_BATCH):
        block = (vectors[batch] @ vectors.T).toarray()
        count = min(neighbor_count + 1, block.shape[1])
        best = np.argpartition(-block, count - 1, axis=1)[:, :count]
        rows.append(np.repeat(np.arange(batch.start, batch.start + len(block)), count))
        others.append(best.ravel())
        cosines.append(np.take_along_axis(block, best, 1).ravel())
    return np.concatenate(rows), np.concatenate(others).astype(np.int64), np.concatenate(cosines)


def _normalize_rows(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.maximum(norms, 1e-12))
