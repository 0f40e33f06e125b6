"""Paragraph vectors from a file of words: the lines of the file, the number of passes, equal texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aggregator_archive import paragraph_vectors, vectors
from tests.support.factories import story


def test_a_line_of_words_per_text(tmp_path: Path) -> None:
    """Chinese is segmented, texts without words are empty lines, and no word is split by its white space."""
    file = tmp_path / "words.txt"
    texts = [("The dam, again.", "en"), ("...", "en"), ("中国国家主席会见", "zh")]

    assert paragraph_vectors.write_words(texts, file) == 7
    assert file.read_text(encoding="utf-8").split("\n") == ["the dam again", "", "中国 国家 主席 会见", ""]


@pytest.mark.parametrize(
    ("words", "expected"), [(0, 20), (10_000_000, 20), (20_000_000, 10), (32_000_000, 6), (10**9, 5)]
)
def test_large_archives_get_fewer_passes(words: int, expected: int) -> None:
    """200 million words are trained in all, in 5 to 20 passes."""
    assert paragraph_vectors.passes(words) == expected


def test_vectors_are_in_the_order_of_the_texts_and_equal_in_each_run(tmp_path: Path) -> None:
    """Each text has an equal one three rows later, next to which no other is nearer on average."""
    pytest.importorskip("gensim")
    file = tmp_path / "words.txt"
    texts = [story(at % 3, 200) for at in range(6)]
    paragraph_vectors.write_words([(text, "en") for text in ["", *texts]], file)
    rows = vectors.normalize_rows(paragraph_vectors.train(file, 40))

    assert rows.shape == (7, 256)
    products = rows[1:4] @ rows[4:].T
    assert products.argmax(axis=1).tolist() == [0, 1, 2]
    assert np.array_equal(rows, vectors.normalize_rows(paragraph_vectors.train(file, 40)))


@pytest.mark.parametrize("texts", [[], ["one two", "three"]])
def test_texts_without_a_common_word_give_zeros(tmp_path: Path, texts: list[str]) -> None:
    """There is nothing to train."""
    pytest.importorskip("gensim")
    file = tmp_path / "words.txt"
    paragraph_vectors.write_words([(text, "en") for text in texts], file)

    assert np.array_equal(paragraph_vectors.train(file, 5), np.zeros((len(texts), 256), np.float32))
