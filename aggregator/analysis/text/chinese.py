"""Chinese: word segmentation, and conversion of traditional to simplified characters.

Segmentation uses rjieba (jieba's algorithm and dictionary in Rust) in accurate mode, with the hidden Markov
model for unknown words. It gets only runs of the characters that jieba's dictionary covers
(``DICTIONARY_RANGE``); a test pins that it gives the words of jieba, the reference.

OpenCC, if installed (the extra ``chinese``), converts traditional to simplified characters, so that
duplicates in both scripts share words, shingles and fingerprint. Without it texts in the two scripts do not
match. ``conversion_id`` is part of the fingerprint space, so texts analyzed with and without it are never
compared.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache

DICTIONARY_RANGE = "\u4e00-\u9fd5"

Segmenter = Callable[[str], list[str]]
Converter = Callable[[str], str]


@cache
def segmenter() -> Segmenter:
    """Return the segmenter, loaded when first needed; it releases the interpreter lock."""
    cut: Segmenter = importlib.import_module("rjieba").cut
    return cut


@cache
def simplifier() -> Converter | None:
    """Return OpenCC's conversion of traditional to simplified characters; None if it is not installed."""
    try:
        convert: Converter = importlib.import_module("opencc").OpenCC("t2s").convert
    except ImportError:
        return None
    return convert


def to_simplified(text: str) -> str:
    """Return ``text`` in simplified characters; unchanged without OpenCC.

    It must not contain lone surrogates: apply ``normalization.fold`` first.
    """
    convert = simplifier()
    return convert(text) if convert else text


def conversion_id() -> str:
    """Return the conversion of traditional characters in this process: "t2s", or "" for none."""
    return "t2s" if simplifier() else ""
