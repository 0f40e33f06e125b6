"""Vectors of archives: words of each language, and the approximate index compared with the exact one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from aggregator.domain import Article
from aggregator_archive import vectors
from aggregator_lab.evaluation.pair_scorers import METHODS

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


def test_the_approximate_indexes_find_nearly_all_exact_pairs() -> None:
    """Of the pairs with a cosine from 0.8, hnsw and ivf find at least 99 %."""
    pytest.importorskip("faiss")
    found = {}
    for index in vectors.INDEXES:
        a, b, cosine = vectors.nearest_pairs(unit_rows(1_000), 10, index)
        near = cosine >= 0.8
        found[index] = set(zip(a[near].tolist(), b[near].tolist(), strict=True))

    assert len(found["exact"]) >= 500
    for index in ("hnsw", "ivf"):
        assert len(found[index] & found["exact"]) >= 0.99 * len(found["exact"])


@pytest.mark.parametrize("sparse", [False, True])
def test_the_search_in_batches_leaves_out_distant_pairs(
    monkeypatch: pytest.MonkeyPatch, sparse: bool
) -> None:
    """Batches of rows and a least cosine give the same pairs as one search and a selection."""
    pytest.importorskip("faiss")
    rows = unit_rows(100)
    searched = csr_matrix(rows) if sparse else rows
    a, b, cosine = vectors.nearest_pairs(searched, 10)
    expected = [(i, j) for i, j, value in zip(a, b, cosine, strict=True) if value >= 0.6]
    monkeypatch.setattr(vectors, "_ROWS_PER_SEARCH", 7)
    monkeypatch.setattr(vectors, "_ROWS_PER_BATCH", 7)
    near = vectors.nearest_pairs(searched, 10, min_cosine=0.6)

    assert 0 < len(expected) < len(a)
    assert list(zip(near[0], near[1], strict=True)) == expected


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


def test_textbook_weights() -> None:
    """The product tf * ln(n / df), by hand: a term of all texts weighs nothing, and rows have length 1."""
    texts = ["harbour harbour bridge", "harbour bridge tunnel", "harbour museum"]
    rows = vectors.textbook_tfidf(texts, ["en"] * 3).toarray()  # columns: bridg, harbour, museum, tunnel
    bridge, tunnel = np.log(3 / 2), np.log(3)

    assert rows[0] == pytest.approx([1, 0, 0, 0])
    assert rows[1] == pytest.approx(np.array([bridge, 0, 0, tunnel]) / np.hypot(bridge, tunnel))
    assert vectors.textbook_tfidf(["", ""], ["en"] * 2).shape == (2, 1)
