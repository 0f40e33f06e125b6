"""Stemmers, and what a process loads for them."""

from __future__ import annotations

import subprocess
import sys

from aggregator.analysis.text.stemming import SNOWBALL_LANGUAGES, stemmer

LOADED = """
import sys
from aggregator.analysis.text.stemming import HIDDEN_IMPORTS, stemmer
{before}
assert stemmer("en")("swimming") == "swim"
print(*(name for name in HIDDEN_IMPORTS if name in sys.modules))
import scipy.stats, sklearn.base
"""


def loaded(before: str = "") -> list[str]:
    """What a fresh process has loaded of scipy and sklearn once it has stemmed a word; both can be loaded later."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(before=before)], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_stemmer_loads_nothing_that_it_does_not_need() -> None:
    """A second and a hundred megabytes for each process, otherwise."""
    assert loaded() == []


def test_what_was_loaded_before_stays() -> None:
    """A fit has scikit-learn in use when the first word is stemmed."""
    assert loaded("import sklearn.base") == ["scipy", "sklearn"]


def test_every_language_listed_has_its_stemmer() -> None:
    """And others none."""
    assert all(stemmer(lang) is not None for lang in SNOWBALL_LANGUAGES)
    assert stemmer("zh") is None
