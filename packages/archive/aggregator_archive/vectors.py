"""Vector encodings of the literature, and the 64 nearest neighbors of each article.

tfidf      term weights                                (scikit-learn)
doc2vec    paragraph vectors                           (gensim; ``paragraph_vectors.py``)
embedding  static sentence vectors; the weights are part of the package, nothing is downloaded

All vectors have length 1, so their inner product is the cosine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.analysis.text import tokenizer
from aggregator_archive import paragraph_vectors
from aggregator_archive.arrays import Floats, Rows, batches
from aggregator_archive.optional_imports import import_optional
from aggregator_archive.pairs import order_pairs

# Arguments of import_optional.
STATIC_MODEL = ("static_model", "newsdedup-archive[neural]", "Sentence embedding")
FAISS = ("faiss", "newsdedup-archive[neural]", "Search by vectors")

NEAREST_COUNT = 64
EMBEDDING_MAX_CHARS = 2_000
# Of the approximate graph: links per row, and candidates while building and searching (faiss' terms: M,
# efConstruction, efSearch).
HNSW_LINKS, HNSW_BUILD_DEPTH, HNSW_SEARCH_DEPTH = 32, 80, 128
# Of the inverted file, from faiss' guidelines: lists per square root of the vectors, lists searched, and
# vectors per list that the k-means of the lists needs.
IVF_LISTS_PER_ROOT, IVF_PROBES, IVF_MIN_LIST = 4, 16, 39
INDEXES = ("exact", "hnsw", "ivf")
_ROWS_PER_BATCH = 512  # of sparse vectors, each compared with all
_ROWS_PER_SEARCH = 1 << 14  # of dense vectors: 65 pairs each

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


def textbook_tfidf(texts: Sequence[str], langs: Sequence[str]) -> Vectors:
    """(n, V) sparse, as ``tfidf``: tf * ln(n / df), with tf the count of a term; ``df`` texts have it.

    The share of a term among those of its text gives the same cosines. A term of all texts weighs nothing.
    """
    from scipy.sparse import csr_matrix, diags
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    terms = [tokenizer.tokenize(text, lang) for text, lang in zip(texts, langs, strict=True)]
    if not any(terms):
        return csr_matrix((len(texts), 1), dtype=np.float32)
    counts = CountVectorizer(analyzer=list).fit_transform(terms).astype(np.float32)
    idf = np.log(len(texts) / np.bincount(counts.indices, minlength=counts.shape[1]))
    return normalize((counts @ diags(idf)).tocsr().astype(np.float32))


def doc2vec(texts: Sequence[str], langs: Sequence[str]) -> Vectors:
    """(n, 256) paragraph vectors; the same in every run."""
    with TemporaryDirectory() as directory:
        file = Path(directory) / "words.txt"
        words = paragraph_vectors.write_words(zip(texts, langs, strict=True), file)
        return normalize_rows(paragraph_vectors.train(file, paragraph_vectors.passes(words)))


def embedding(texts: Sequence[str], langs: Sequence[str]) -> Vectors:
    """(n, 64) vectors of a distilled sentence model, of the first ``EMBEDDING_MAX_CHARS`` characters.

    ``langs`` do not count: the model has one vocabulary.
    """
    model = import_optional(*STATIC_MODEL)
    openings = [text[:EMBEDDING_MAX_CHARS] for text in texts]
    return normalize_rows(np.array(model.get_embeddings(openings), np.float32))


def nearest_pairs(
    vectors: Vectors, neighbor_count: int = NEAREST_COUNT, index: str = "exact", min_cosine: float = -1.0
) -> tuple[Rows, Rows, Floats]:
    """Distinct pairs a < b of each row with its ``neighbor_count`` nearest rows; cosines from 0 to 1.

    ``index``: exact, or an approximate one for dense vectors, hnsw or ivf; sparse ones are compared exactly.
    Pairs below ``min_cosine`` are left out at once: a million rows have 65 million pairs.
    """
    none = np.empty(0, np.int64)
    count = vectors.shape[0]
    if count < 2:
        return none, none, np.empty(0)
    if hasattr(vectors, "tocsr"):
        searched = _search_sparse(vectors, neighbor_count)
    else:
        searched = _search_dense(vectors, neighbor_count, index)
    pairs, cosines = [], []
    for start, found, others in searched:
        rows = np.repeat(np.arange(start, start + len(others)), others.shape[1])
        near = others.ravel().astype(np.int64)
        keep = (rows != near) & (near >= 0) & (found.ravel() >= min_cosine)
        low, high = order_pairs(rows[keep], near[keep])
        pairs.append(low * count + high)
        cosines.append(found.ravel()[keep])
    distinct, first = np.unique(np.concatenate(pairs), return_index=True)
    cosine = np.concatenate(cosines)[first].astype(np.float64)
    return distinct // count, distinct % count, np.clip(cosine, 0.0, 1.0)


# Of a search: the first row of a batch, and (rows, neighbors) cosines and rows, -1 for none.
Searched = Iterator[tuple[int, npt.NDArray[np.float32], npt.NDArray[np.int64]]]


def _search_dense(vectors: Vectors, neighbor_count: int, index: str) -> Searched:
    """Search by inner product (faiss): exact, in a small world graph, or in the lists of near centers.

    hnsw: Malkov & Yashunin 2018. ivf: 4 sqrt(n) lists by k-means (Jégou et al. 2011), seeded by faiss.
    """
    faiss = import_optional(*FAISS)
    dimensions = vectors.shape[1]
    if index == "hnsw":
        searched = faiss.IndexHNSWFlat(dimensions, HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
        searched.hnsw.efConstruction, searched.hnsw.efSearch = HNSW_BUILD_DEPTH, HNSW_SEARCH_DEPTH
    elif index == "ivf":
        lists = max(1, min(IVF_LISTS_PER_ROOT * math.isqrt(len(vectors)), len(vectors) // IVF_MIN_LIST))
        centers = faiss.IndexFlatIP(dimensions)
        searched = faiss.IndexIVFFlat(centers, dimensions, lists, faiss.METRIC_INNER_PRODUCT)
        searched.nprobe = IVF_PROBES
        searched.train(vectors)
    else:
        searched = faiss.IndexFlatIP(dimensions)
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
