"""Chinese words, and one script for them: simplified.

Words: jieba is the reference, rjieba (the same algorithm and dictionary in Rust) the fast path.

Both cut in accurate mode with the hidden Markov model for unknown words. Only runs of the range that
jieba's dictionary covers are given to them (``DICTIONARY_RANGE``), so differences in how the two treat
anything else cannot show; a test pins that they give the same words.

OpenCC, when installed (the extra ``chinese``), writes traditional characters as simplified ones, so that copies
in both scripts share words, shingles and fingerprint. Without it each script keeps to itself: ``form`` is part of
the fingerprint space, so texts analysed with and without it are never compared.
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
    """The segmenter of this process: rjieba when it can be imported, otherwise jieba."""
    try:
        return rjieba_segmenter()
    except ImportError:
        return jieba_segmenter()


@cache
def rjieba_segmenter() -> Segmenter:
    """rjieba's accurate cut; it releases the interpreter lock. Raises ImportError when not installed."""
    cut: Segmenter = importlib.import_module("rjieba").cut
    return cut


@cache
def jieba_segmenter() -> Segmenter:
    """jieba's accurate cut over its own dictionary, which takes about a second to load.

    The dictionary is read from the package: jieba's own start-up would log to stderr and keep a
    marshalled copy under a fixed name in the shared temporary directory, which anyone may replace.
    """
    with warnings.catch_warnings():
        # Its regular expressions and pkg_resources warn at import, differently with each Python.
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
    """OpenCC's conversion from traditional to simplified characters; None when it is not installed."""
    try:
        convert: Converter = importlib.import_module("opencc").OpenCC("t2s").convert
    except ImportError:
        return None
    return convert


def to_simplified(text: str) -> str:
    """The text in simplified characters, as it is without OpenCC. No lone surrogates: fold it first."""
    convert = simplifier()
    return convert(text) if convert else text


def conversion_id() -> str:
    """What becomes of traditional characters in this process: "t2s", or "" when they stay."""
    return "t2s" if simplifier() else ""
