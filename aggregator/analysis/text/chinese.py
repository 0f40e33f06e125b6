"""Chinese: word segmentation, and conversion of traditional to simplified characters.

Segmentation uses rjieba (jieba in Rust), or jieba, the reference, where it is not installed: both in accurate
mode, on runs of the characters that jieba's dictionary covers; a test pins that they give the same words.
OpenCC, if installed (the extra ``chinese``), converts traditional characters; without it texts in the two
scripts do not match. ``conversion_id`` is part of the fingerprint space.
"""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Callable
from functools import cache

DICTIONARY_RANGE = "\u4e00-\u9fd5"

Segmenter = Callable[[str], list[str]]
Converter = Callable[[str], str]


@cache
def segmenter() -> Segmenter:
    """Return the segmenter of this process: rjieba if it can be imported, otherwise jieba."""
    try:
        return rjieba_segmenter()
    except ImportError:
        return jieba_segmenter()


@cache
def rjieba_segmenter() -> Segmenter:
    """Return the segmenter of rjieba; it releases the interpreter lock. Raises ImportError."""
    cut: Segmenter = importlib.import_module("rjieba").cut
    return cut


@cache
def jieba_segmenter() -> Segmenter:
    """Return the segmenter of jieba with its own dictionary, which takes about 1 s to load.

    Read from the package: jieba would cache a copy in the shared temporary directory, where any user could
    replace it.
    """
    with warnings.catch_warnings():
        # The import warns about regular expressions and pkg_resources, differently in each Python version.
        warnings.simplefilter("ignore")
        jieba = importlib.import_module("jieba")
        jieba.setLogLevel(logging.WARNING)
        tokenizer = jieba.Tokenizer()
        tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    cut: Segmenter = tokenizer.lcut
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
    """``text``, without lone surrogates, in simplified characters; unchanged without OpenCC."""
    convert = simplifier()
    return convert(text) if convert else text


def conversion_id() -> str:
    """Return the conversion of traditional characters in this process: "t2s", or "" for none."""
    return "t2s" if simplifier() else ""
