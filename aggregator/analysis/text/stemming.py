"""Snowball stemmers of nltk with a bounded cache per language. Nothing is downloaded."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType

from aggregator.analysis.text.orthography import restore_umlauts

SNOWBALL_LANGUAGES = {
    "ar": "Arabic", "da": "Danish", "de": "German", "en": "English", "es": "Spanish", "fi": "Finnish",
    "fr": "French", "hu": "Hungarian", "it": "Italian", "nl": "Dutch", "no": "Norwegian",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sv": "Swedish",
}  # fmt: skip

# Words per language, at most about 10 MB. A miss costs 10-30 us, a hit 0.1 us.
STEM_CACHE_SIZE = 50_000

# Optional dependencies of nltk that its stemmers do not use. Where they are installed, ``import nltk``
# loads them: 0.9 s of CPU and 96 MB per process.
HIDDEN_IMPORTS = ("scipy", "sklearn")

Stemmer = Callable[[str], str]


@lru_cache(maxsize=256)
def stemmer(lang: str) -> Stemmer | None:
    """Return the cached Snowball stemmer of an ISO 639-1 language, None if there is none.

    A stem is never empty: a word that the rules would remove completely is returned unchanged.
    """
    if lang not in SNOWBALL_LANGUAGES:
        return None
    stemmer_class = getattr(_import_snowball(), SNOWBALL_LANGUAGES[lang] + "Stemmer")
    prepare = restore_umlauts if lang == "de" else str

    @lru_cache(maxsize=STEM_CACHE_SIZE)
    def stem(word: str) -> str:
        # A new instance per word (0.3 us): nltk's Arabic stemmer keeps state from one word to the next.
        return stemmer_class().stem(prepare(word)) or word

    return stem


@lru_cache(maxsize=1)
def _import_snowball() -> ModuleType:
    """Import nltk's stemmers when first needed, without its optional dependencies.

    ``nltk/__init__.py`` imports all of nltk; ``nltk.classify`` and others import scipy and scikit-learn in
    ``try ... except ImportError``. nltk has no option to skip this, and PyStemmer gives other stems
    (docs/decisions/0008-tokenizers.md). So these imports are made to fail during the import of nltk:
    Python raises ImportError for a name whose entry in ``sys.modules`` is None (import system reference,
    "The module cache"). The entries are removed afterwards, so the packages can still be imported later.
    Packages that are already imported are not hidden.
    """
    hidden = [name for name in HIDDEN_IMPORTS if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None is allowed, see above
    try:
        return importlib.import_module("nltk.stem.snowball")
    finally:
        for name in hidden:
            del sys.modules[name]
