"""Pair scorers: duplicate detection methods of the literature as functions from articles to scored pairs.

A score is in 0..1, and a threshold is applied to it. Pairs that a method does not compare are absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from aggregator.analysis.simhash import FINGERPRINT_BITS
from aggregator.analysis.text import tokenizer
from aggregator.domain import Article
from aggregator_archive.arrays import merge_pairs, unpack_pairs
from aggregator_archive.cluster import Links, components, pairs_within_components
from aggregator_archive.columns import Columns, columns_from_signatures
from aggregator_archive.confirm import estimate_overlaps
from aggregator_archive.encode import Encoder, Encoding
from aggregator_archive.join import find_candidates
from aggregator_lab.evaluation import vectors
from aggregator_lab.evaluation.shingling import shingle_hashes
from aggregator_lab.evaluation.spot_signatures import spotsigs
from aggregator_lab.evaluation.trained_encoders import TRAINED_METHODS
from aggregator_lab.evaluation.vectors import PairScorer, ScoredPairs, texts_of
from aggregator_lab.extractors import minilm
from aggregator_lab.labeled import DEFAULT_LANG

NGRAM_WIDTHS = (3, 4, 5, 10, 15)
MAX_SIMHASH_DISTANCE_BITS = 16
CANDIDATE_DISTANCE_BITS = 3
_RANDOM_SEED = 1


def simhash(articles: Sequence[Article]) -> ScoredPairs:
    """1 - Hamming distance / 64 of pairs within ``MAX_SIMHASH_DISTANCE_BITS``."""
    columns = _columns(articles)
    a, b = np.triu_indices(len(columns), 1)
    distance = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b])
    near = distance <= MAX_SIMHASH_DISTANCE_BITS
    return ScoredPairs(a[near], b[near], 1 - distance[near] / FINGERPRINT_BITS)


def sketch(articles: Sequence[Article]) -> ScoredPairs:
    """Resemblance of all pairs within connected components of pairs that share a sketch key."""
    return _resemblance_within_components(_columns(articles), bits=False)


def combined(articles: Sequence[Article], shingles: str = "letters") -> ScoredPairs:
    """As ``sketch``, with candidates within ``CANDIDATE_DISTANCE_BITS`` too: the method of ``dedupe``."""
    return _resemblance_within_components(_columns(articles, shingles), bits=True)


def tfidf(articles: Sequence[Article]) -> ScoredPairs:
    """Cosine of TF-IDF vectors, 64 nearest articles of each."""
    return ScoredPairs(*vectors.nearest_pairs(vectors.tfidf(texts_of(articles), _langs(articles))))


def doc2vec(articles: Sequence[Article]) -> ScoredPairs:
    """Cosine of paragraph vectors, 64 nearest articles of each by faiss (Zhang 2023)."""
    return ScoredPairs(*vectors.nearest_pairs(vectors.doc2vec(texts_of(articles), _langs(articles))))


def bi_encoder(articles: Sequence[Article]) -> ScoredPairs:
    """Cosine of the vectors of all-MiniLM-L6-v2 as shipped, 64 nearest articles of each (Silcock 2022)."""
    return ScoredPairs(*vectors.nearest_pairs(minilm.encode(minilm.load_transformer(), texts_of(articles))))


def ngrams(articles: Sequence[Article], width: int) -> ScoredPairs:
    """Overlap coefficient |A and B| / min(|A|, |B|) of exact sets of word n-grams, for pairs above 0."""
    from sklearn.feature_extraction.text import CountVectorizer

    grams = CountVectorizer(analyzer=partial(_word_ngrams, width=width), binary=True, dtype=np.float32)
    counted = grams.fit_transform(zip(texts_of(articles), _langs(articles), strict=True))
    common = (counted @ counted.T).tocoo()
    upper = common.row < common.col
    a, b = common.row[upper].astype(np.int64), common.col[upper].astype(np.int64)
    sizes = np.asarray(counted.sum(axis=1)).ravel()
    return ScoredPairs(a, b, (common.data[upper] / np.minimum(sizes[a], sizes[b])).astype(np.float64))


def minhash(articles: Sequence[Article], hashes: int, band_rows: int) -> ScoredPairs:
    """Share of equal MinHash values of word 3-grams, for pairs that agree in a band of ``band_rows``."""
    rng = np.random.default_rng(_RANDOM_SEED)
    odd = rng.integers(0, 2**63, hashes, np.uint64) * np.uint64(2) + np.uint64(1)
    signatures = np.zeros((len(articles), hashes), np.uint64)
    for row, (text, lang) in enumerate(zip(texts_of(articles), _langs(articles), strict=True)):
        shingles = shingle_hashes(tokenizer.shingle_units(text, lang))
        for at in range(hashes if len(shingles) else 0):
            mixed = (shingles ^ odd[at]) * odd[(at + 1) % hashes]
            signatures[row, at] = (mixed ^ mixed >> np.uint64(29)).min()
    a, b = np.triu_indices(len(articles), 1)
    equal = signatures[a] == signatures[b]
    banded = equal.reshape(len(a), -1, band_rows).all(axis=2).any(axis=1)
    return ScoredPairs(a[banded], b[banded], equal[banded].mean(axis=1))


METHODS: Mapping[str, PairScorer] = {
    "simhash": simhash,
    "sketch": sketch,
    "combined": combined,
    "combined, words": partial(combined, shingles="words"),
    "tfidf": tfidf,
    **{f"n-gram overlap {width}": partial(ngrams, width=width) for width in NGRAM_WIDTHS},
    "LSH 10 hashes": partial(minhash, hashes=10, band_rows=1),
    "LSH 15x2": partial(minhash, hashes=30, band_rows=2),
    "SpotSigs": spotsigs,
    "doc2vec": doc2vec,
    "bi-encoder": bi_encoder,
}
METHOD_NAMES = (*METHODS, *TRAINED_METHODS)
TRANSFORMER_METHODS = frozenset({"bi-encoder", *TRAINED_METHODS})


def default_methods() -> list[str]:
    """Return all methods, without those by PyTorch if it is not installed."""
    return [name for name in METHOD_NAMES if minilm.is_installed() or name not in TRANSFORMER_METHODS]


def _columns(articles: Sequence[Article], shingles: str = "words") -> Columns:
    encoder = Encoder(Encoding(shingles=shingles))
    return columns_from_signatures([encoder.encode(article) for article in articles])


def _resemblance_within_components(columns: Columns, *, bits: bool) -> ScoredPairs:
    count = len(columns)
    pairs = find_candidates(columns, np.arange(count), CANDIDATE_DISTANCE_BITS, bits=bits)
    linked = components(Links(count, *unpack_pairs(pairs), np.ones(len(pairs))))
    pairs = merge_pairs([pairs, pairs_within_components(linked, count)])
    return ScoredPairs(*unpack_pairs(pairs), estimate_overlaps(columns, pairs).resemblance)


def _langs(articles: Sequence[Article]) -> list[str]:
    return [article.lang or DEFAULT_LANG for article in articles]


def _word_ngrams(text_and_lang: tuple[str, str], width: int) -> list[str]:
    words = tokenizer.shingle_units(*text_and_lang)
    return [" ".join(words[at : at + width]) for at in range(max(1, len(words) - width + 1))]
