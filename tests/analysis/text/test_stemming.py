"""Stemmers, and what a process loads for them."""

from __future__ import annotations

import subprocess
import sys

from aggregator.analysis.text.stemming import SNOWBALL_LANGUAGES, stemmer

PROGRAM = """
import sys
from aggregator.analysis.text.stemming import HIDDEN_IMPORTS, stemmer
{before}
assert stemmer("en")("swimming") == "swim"
print(*(name for name in HIDDEN_IMPORTS if name in sys.modules))
import scipy.stats, sklearn.base
"""


def loaded_packages(before: str = "") -> list[str]:
    """Return which of scipy and sklearn a new process has loaded after stemming a word.

    The program also checks that both can be imported afterwards.
    """
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)], capture_output=True, text=True, check=True
    )
    return completed.stdout.split()


def test_a_stemmer_does_not_load_scipy_or_scikit_learn() -> None:
    """They would cost about 1 s and 100 MB per process."""
    assert loaded_packages() == []


def test_packages_imported_before_stay_imported() -> None:
    """A fit uses scikit-learn before the first word is stemmed."""
    assert loaded_packages("import sklearn.base") == ["scipy", "sklearn"]


def test_every_listed_language_has_a_stemmer() -> None:
    """Other languages have none."""
    assert all(stemmer(lang) is not None for lang in SNOWBALL_LANGUAGES)
    assert stemmer("zh") is None
