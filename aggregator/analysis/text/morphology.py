"""Morphology, by libraries that are loaded when first needed: Snowball stems, Chinese words and characters.

Chinese is segmented by rjieba (jieba in Rust), or jieba, the reference, where it is not installed: both in
accurate mode, on runs of the characters that jieba's dictionary covers; a test pins that they give the same
words. OpenCC converts traditional characters, so that texts in the two scripts match.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import warnings
from collections.abc import Callable
from functools import cache, lru_cache, partial
from pathlib import Path
from types import ModuleType

from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.normalization import restore_umlauts

SNOWBALL_LANGUAGES = table("stemmer", "")

# Words of all languages, at most about 10 MB. A miss costs 10-30 us, a hit 0.1 us.
STEM_CACHE_SIZE = 50_000

# Packages of nltk whose ``__init__`` imports all of nltk (0.5 s of CPU per process), and scipy and
# scikit-learn where they are installed (0.9 s, 96 MB).
_NOT_RUN = ("nltk", "nltk.stem", "nltk.corpus")

DICTIONARY_RANGE = "\u4e00-\u9fd5"  # of jieba

Converter = Callable[[str], str]  # of a word or a text
Segmenter = Callable[[str], list[str]]


@lru_cache(maxsize=256)
def stemmer(lang: str) -> Converter | None:
    """The cached Snowball stemmer of an ISO 639-1 language, None if there is none. A stem is never empty."""
    return partial(_stem, lang) if lang in SNOWBALL_LANGUAGES else None


@lru_cache(maxsize=STEM_CACHE_SIZE)
def _stem(lang: str, word: str) -> str:
    # A new instance per word (0.3 us): nltk's Arabic stemmer keeps state from one word to the next.
    stemmer_class = getattr(_import_snowball(), SNOWBALL_LANGUAGES[lang] + "Stemmer")
    return stemmer_class().stem(restore_umlauts(word) if lang == "de" else word) or word


@cache
def _import_snowball() -> ModuleType:
    """Nltk's stemmers: empty packages replace those in ``_NOT_RUN`` during the import, unless nltk is loaded.

    PyStemmer gives other stems (docs/decisions/0008-tokenizers.md).
    """
    if "nltk" in sys.modules:
        return importlib.import_module("nltk.stem.snowball")
    found = importlib.util.find_spec("nltk")
    assert found is not None and found.submodule_search_locations is not None
    for name in _NOT_RUN:
        package = ModuleType(name)
        package.__path__ = [str(Path(d, *name.split(".")[1:])) for d in found.submodule_search_locations]
        sys.modules[name] = package
    sys.modules["nltk.corpus"].stopwords = None  # type: ignore[attr-defined]  # imported, and used on request
    try:
        return importlib.import_module("nltk.stem.snowball")
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "nltk"]:
            del sys.modules[name]


@cache
def segmenter() -> Segmenter:
    """The segmenter of this process: rjieba, which releases the interpreter lock, otherwise jieba."""
    try:
        cut: Segmenter = importlib.import_module("rjieba").cut
    except ImportError:
        return jieba_segmenter()
    return cut


@cache
def jieba_segmenter() -> Segmenter:
    """The segmenter of jieba with its own dictionary, which takes about 1 s to load.

    Read from the package: jieba would cache a copy in the shared temporary directory, open to all users.
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
def simplifier() -> Converter:
    """OpenCC's conversion of traditional to simplified characters, which removes lone surrogates."""
    convert: Converter = importlib.import_module("opencc").OpenCC("t2s").convert
    return convert
