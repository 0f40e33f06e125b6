"""Paragraph vectors (Le & Mikolov, ICML 2014) by gensim; extra ``doc2vec``.

PV-DBOW: the vector of a text predicts its words. Vectors of new texts are inferred against the fitted output
weights, from a start that depends on the text alone, so equal texts have equal vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from aggregator.analysis.model_file import pack_strings, unpack_strings
from aggregator.analysis.text.tokenizer import words
from aggregator_archive.optional_imports import import_optional
from aggregator_lab.extractors.fitting import FittedByFile
from aggregator_lab.extractors.model import Arrays, Features

DIMENSIONS = 128
EPOCHS = 20
MAX_WORDS = 30_000
_MIN_COUNT = 2
_SEED = 1
# Arguments of import_optional.
GENSIM = ("gensim.models.doc2vec", "newsdedup-lab[doc2vec]", "The feature extractor doc2vec")


class Doc2VecExtractor(FittedByFile):
    """The fitted extractor. Not thread-safe: the inference uses a random generator of the model.

    vocabulary  V words
    counts      (V,) uint32, occurrences in the corpus
    weights     (V, d) float32, output weights of the negative sampling
    """

    name: ClassVar[str] = "doc2vec"
    summary: ClassVar[str] = "paragraph vectors (PV-DBOW, gensim; extra doc2vec)"
    limits: ClassVar[str] = (
        "Needs some thousands of articles. Vectors are inferred by gradient descent in the floating point "
        "arithmetic of the machine: bits may differ between machines for sums near 0."
    )

    def __init__(
        self,
        vocabulary: Sequence[str],
        counts: npt.NDArray[np.uint32],
        weights: npt.NDArray[np.float32],
        epochs: int = EPOCHS,
    ) -> None:
        if not len(vocabulary) == len(counts) == len(weights) or weights.ndim != 2:
            raise ValueError("vocabulary, counts and weights differ in length")
        self._vocabulary, self._counts, self._weights = tuple(vocabulary), counts, weights
        self._epochs = epochs
        self._model = _new_model(weights.shape[1], epochs)
        self._model.build_vocab_from_freq(dict(zip(self._vocabulary, counts.tolist(), strict=True)))
        if self._model.wv.key_to_index.keys() != set(self._vocabulary):
            raise ValueError("the vocabulary repeats a word or has one that is too rare")
        # gensim orders words by frequency, those of equal frequency arbitrarily.
        row_of = {word: row for row, word in enumerate(self._vocabulary)}
        self._model.syn1neg = weights[[row_of[word] for word in self._model.wv.index_to_key]]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._vocabulary, self._counts, self._weights, self._epochs)

    @property
    def dimensions(self) -> int:
        """Return d."""
        return int(self._weights.shape[1])

    @classmethod
    def check_installed(cls) -> None:
        """Raise ConfigurationError without gensim."""
        import_optional(*GENSIM)

    @classmethod
    def fit(cls, texts: Sequence[str], languages: Sequence[str]) -> Self:
        """Train on the texts in one thread, so that runs are reproducible."""
        gensim = import_optional(*GENSIM)
        documents = [
            gensim.TaggedDocument(words(text, lang), [number])
            for number, (text, lang) in enumerate(zip(texts, languages, strict=True))
        ]
        model = _new_model(DIMENSIONS, EPOCHS)
        model.build_vocab(documents)
        model.train(documents, total_examples=len(documents), epochs=EPOCHS)
        vocabulary = list(model.wv.index_to_key)
        counts = np.array([model.wv.get_vecattr(word, "count") for word in vocabulary], "<u4")
        return cls(vocabulary, counts, np.array(model.syn1neg, "<f4"))

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Arrays) -> Self:
        """Return the extractor with these values."""
        vocabulary = unpack_strings(arrays["vocabulary"])
        return cls(vocabulary, arrays["counts"], arrays["weights"], int(parameters["epochs"]))

    def parameters(self) -> dict[str, Any]:
        """Return the number of passes of the inference."""
        return {"epochs": self._epochs}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return vocabulary, counts and weights."""
        vocabulary = pack_strings(self._vocabulary)
        return {"vocabulary": vocabulary, "counts": self._counts, "weights": self._weights}

    def transform(self, texts: Sequence[str], languages: Sequence[str]) -> Features:
        """Return (n, d) float32; texts without a known word give zeros."""
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, (text, lang) in enumerate(zip(texts, languages, strict=True)):
            known = [word for word in words(text, lang) if word in self._model.wv.key_to_index]
            if known:
                self._model.random.seed(_SEED)  # the negative samples must not depend on earlier texts
                rows[row] = self._model.infer_vector(known)
        return rows


def _new_model(dimensions: int, epochs: int) -> Any:
    gensim = import_optional(*GENSIM)
    return gensim.Doc2Vec(
        dm=0,
        vector_size=dimensions,
        epochs=epochs,
        min_count=_MIN_COUNT,
        max_final_vocab=MAX_WORDS,
        negative=5,
        workers=1,
        seed=_SEED,
    )
