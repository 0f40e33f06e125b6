"""Paragraph vectors of an archive (Le and Mikolov 2014; Zhang 2023), trained from a file of words.

The file is read again in each pass, so the memory does not depend on the length of the texts: 1 kB per vector
and 2 kB per word of the vocabulary. gensim can read such a file outside of the interpreter's lock too
(``corpus_file``), in half of the time for headlines, but with worse vectors: equal texts of SpotSigs have a
mean cosine of 0.66 instead of 0.81 after 5 passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.analysis.text import tokenizer
from aggregator_archive.optional_imports import import_optional

GENSIM = ("gensim.models.doc2vec", "newsdedup-archive[neural]", "Doc2Vec")  # arguments of import_optional

# The settings of Zhang (2023) where gensim has them.
PARAMETERS: dict[str, Any] = {
    "vector_size": 256,
    "window": 8,
    "max_final_vocab": 1_500_000,
    "min_count": 2,
}
# Passes over the texts; Zhang's number is not on record here. gensim trains 0.2 (headlines) to 0.6 million
# words per CPU second, so large archives get fewer passes: as many as train at most ``TRAINED_WORDS``, but at
# least ``MIN_PASSES``.
MAX_PASSES, MIN_PASSES = 20, 5
TRAINED_WORDS = 200_000_000
_RANDOM_SEED = 1


def write_words(texts: Iterable[tuple[str, str]], file: Path) -> int:
    """Write a line of words per text (text, ISO 639-1 language), and return the number of words.

    Chinese texts are segmented by jieba.
    """
    total = 0
    with file.open("w", encoding="utf-8") as lines:
        for text, lang in texts:
            # A word may contain other white space, at which the line would be split when it is read.
            words = " ".join(tokenizer.shingle_units(text, lang)).split()
            lines.write(" ".join(words) + "\n")
            total += len(words)
    return total


def passes(words: int, trained_words: int = TRAINED_WORDS) -> int:
    """Return the number of passes over an archive of this many words."""
    return min(MAX_PASSES, max(MIN_PASSES, trained_words // max(1, words)))


def train(file: Path, epochs: int, workers: int = 1) -> npt.NDArray[np.float32]:
    """Return (n, 256), one vector per line of a file of ``write_words``; zeros if no two texts share a word.

    Vectors are of any length. Only one worker gives the same vectors in every run.
    """
    gensim = import_optional(*GENSIM)
    documents = _Documents(file)
    model = gensim.Doc2Vec(workers=workers, seed=_RANDOM_SEED, epochs=epochs, **PARAMETERS)
    model.build_vocab(documents)
    if not len(model.wv):
        return np.zeros((model.corpus_count, model.vector_size), np.float32)
    model.train(documents, total_examples=model.corpus_count, epochs=epochs)
    rows: npt.NDArray[np.float32] = model.dv.vectors
    return rows


class _Documents:
    """The lines of a file as gensim's documents, tagged by their numbers; read again in each iteration."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._document = import_optional(*GENSIM).TaggedDocument

    def __iter__(self) -> Iterator[Any]:
        with self._file.open(encoding="utf-8") as lines:
            for row, line in enumerate(lines):
                yield self._document(line.split(), [row])
