"""Stemmers, and what a process loads for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from aggregator.analysis.text.stemming import SNOWBALL_LANGUAGES, stemmer

pytestmark = pytest.mark.integration

NAMES = ("nltk.text", "nltk.corpus", "scipy", "sklearn")
PROGRAM = """
import sys
{before}
from aggregator.analysis.text.stemming import SNOWBALL_LANGUAGES, stemmer
assert stemmer("en")("swimming") == "swim"
print(*(name for name in {names} if name in sys.modules))
words = "running مدرسة skiløbere laufenden stories corriendo juoksemassa marchaient futottak correndo бегущий"
stems = [stemmer(lang)(word) for lang in SNOWBALL_LANGUAGES for word in words.split()]
import scipy.stats, sklearn.base, nltk.stem.snowball
from aggregator.analysis.text.normalization import restore_umlauts
for lang, name in SNOWBALL_LANGUAGES.items():
    for word in words.split():
        prepared = restore_umlauts(word) if lang == "de" else word
        whole = getattr(nltk.stem.snowball, name + "Stemmer")().stem(prepared) or word
        assert stems.pop(0) == whole, (lang, word)
"""


def loaded_packages(before: str = "") -> list[str]:
    """Return which of ``NAMES`` a new process has loaded after stemming a word.

    The program also checks that they can be imported afterwards, and that nltk as a whole gives the same
    stems.
    """
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before, names=NAMES)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.split()


def test_a_stemmer_loads_neither_the_rest_of_nltk_nor_scipy() -> None:
    """They would cost about 1.5 s and 100 MB per process."""
    assert loaded_packages() == []


def test_packages_imported_before_stay_imported() -> None:
    """A fit uses scikit-learn before the first word is stemmed; another library may use nltk."""
    assert loaded_packages("import nltk, sklearn.base") == list(NAMES)


def test_every_listed_language_has_a_stemmer() -> None:
    """Other languages have none."""
    assert all(stemmer(lang) is not None for lang in SNOWBALL_LANGUAGES)
    assert stemmer("zh") is None
