"""What is known about the words of a language: Snowball stems under a bounded cache.

Only what comes with the installed packages is used: nothing is downloaded.
"""

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

# Per language, at most about 10 MB. A miss costs 10-30 us, a hit 0.1 us.
STEM_CACHE_SIZE = 50_000

# What parts of nltk that are not used here load where it is installed: .9 s of CPU and 96 MB for each process.
HIDDEN_IMPORTS = ("scipy", "sklearn")

Stemmer = Callable[[str], str]


@lru_cache(maxsize=64)
def stemmer(lang: str) -> Stemmer | None:
    """The cached Snowball stemmer of an ISO 639-1 language, None when there is none.

    A stem is never empty: a word that the rules would eat whole stays as it is.
    """
    if lang not in SNOWBALL_LANGUAGES:
        return None
    kind = getattr(_import_snowball(), SNOWBALL_LANGUAGES[lang] + "Stemmer")
    spelt = restore_umlauts if lang == "de" else str

    @lru_cache(maxsize=STEM_CACHE_SIZE)
    def stem(word: str) -> str:
        # A fresh one (0.3 us): nltk's Arabic stemmer carries state from one word into the next.
        return kind().stem(spelt(word)) or word

    return stem


@lru_cache(maxsize=1)
def _import_snowball() -> ModuleType:
    """nltk's stemmers, loaded when first needed, and without the packages that it can do without.

    They are hidden from it, as if they were not installed, for as long as it is being imported.
    """
    hidden = [name for name in HIDDEN_IMPORTS if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None is what stops an import
    try:
        return importlib.import_module("nltk.stem.snowball")
    finally:
        for name in hidden:
            del sys.modules[name]
