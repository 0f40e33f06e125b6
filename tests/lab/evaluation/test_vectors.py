"""Vectors of texts: words of each language, nearest pairs, paragraph vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from aggregator.domain import Article
from aggregator_lab.evaluation import vectors
from aggregator_lab.evaluation.pair_scorers import METHODS
from tests.support.factories import story

CHINESE = [
    "中国国家主席周一在北京会见了来访的外国代表团，双方讨论了贸易和气候问题，并签署了三项合作协议。",
    "中国国家主席周一在北京会见来访的外国代表团，双方讨论了贸易和气候问题，签署了三项合作协议。",
    "南方多个省份本周遭遇暴雨，数千名居民被转移到安全地点，铁路交通暂时中断，救援人员正在抢修道路。",
]


def unit_rows(count: int, dimensions: int = 32) -> vectors.Vectors:
    """Random vectors of length 1, each second one near the one before."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(count, dimensions)).astype(np.float32)
    rows[1::2] = rows[::2] + 0.1 * rows[1::2]
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@pytest.mark.parametrize("sparse", [False, True])
def test_the_search_in_batches_gives_the_same_pairs(monkeypatch: pytest.MonkeyPatch, sparse: bool) -> None:
    """As one search."""
    pytest.importorskip("faiss")
    rows = unit_rows(100)
    searched = csr_matrix(rows) if sparse else rows
    once = vectors.nearest_pairs(searched, 10)
    monkeypatch.setattr(vectors, "_ROWS_PER_SEARCH", 7)
    monkeypatch.setattr(vectors, "_ROWS_PER_BATCH", 7)
    batched = vectors.nearest_pairs(searched, 10)

    assert [part.tolist() for part in once[:2]] == [part.tolist() for part in batched[:2]]


@pytest.mark.integration
def test_paragraph_vectors_are_in_the_order_of_the_texts_and_equal_in_each_run() -> None:
    """Each text has an equal one three rows later, next to which no other is nearer on average."""
    pytest.importorskip("gensim")
    texts = ["", *(story(at % 3, 200) for at in range(6))]
    rows = vectors.doc2vec(texts, ["en"] * 7)

    assert rows.shape == (7, 256)
    assert (rows[1:4] @ rows[4:].T).argmax(axis=1).tolist() == [0, 1, 2]
    assert np.array_equal(rows, vectors.doc2vec(texts, ["en"] * 7))


@pytest.mark.parametrize("texts", [[], ["one two", "three"]])
def test_texts_without_a_common_word_give_zeros(texts: list[str]) -> None:
    """There is nothing to train."""
    pytest.importorskip("gensim")
    assert np.array_equal(vectors.doc2vec(texts, ["en"] * len(texts)), np.zeros((len(texts), 256)))


def test_tfidf_segments_each_text_in_its_language() -> None:
    """Chinese words, not character bigrams: the copies are near, another article is not."""
    rows = vectors.tfidf(CHINESE, ["zh"] * 3)
    products = (rows @ rows.T).toarray()

    assert products[0, 1] > 0.8
    assert products[0, 2] < 0.1
    assert rows.shape[1] < vectors.tfidf(CHINESE, ["en"] * 3).shape[1]


@pytest.mark.parametrize("method", ["n-gram overlap 3", "LSH 10 hashes", "tfidf", "combined", "simhash"])
def test_methods_compare_chinese_words(method: str) -> None:
    """An edited Chinese copy is nearer than another article with every method that needs no training."""
    articles = [Article(id=str(at), text=text, lang="zh") for at, text in enumerate(CHINESE)]
    scored = METHODS[method](articles)
    by_pair = dict(zip(zip(scored.a.tolist(), scored.b.tolist(), strict=True), scored.score, strict=True))

    assert by_pair[0, 1] > 0.3
    assert by_pair.get((0, 2), 0.0) < by_pair[0, 1]
