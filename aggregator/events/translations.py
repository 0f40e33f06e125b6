"""Events reported in two languages: the same names and places at the same time. Pure.

Terms of two languages are compared in Latin script (``anyascii``). They agree if they are equal, or have a
common start of at least five letters and at most three more ("turkei" and "turkish" do not agree, "bundestag"
and "bundesrat" do; "erdogan" and its Cyrillic form are equal). One name is not an event, so three terms must
agree, and the cosine of the profiles over them must reach ``MIN_COSINE``.

Names that are written by sound in Chinese do not agree with their Latin form, and figures are not part of
profiles: such events stay separate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from anyascii import anyascii

MIN_COSINE = 0.25
MIN_COMMON_NAMES = 3
MIN_PREFIX = 5
MAX_ENDING = 3
MIN_LETTERS = 3


def report_the_same(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    """Whether two profiles of different languages describe one event."""
    cosine, common = latin_agreement(a, b)
    return common >= MIN_COMMON_NAMES and cosine >= MIN_COSINE


def latin_agreement(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[float, int]:
    """Return the cosine of two profiles over terms that agree in Latin script, and the number of those.

    >>> latin_agreement({"orban": 0.6, "viktor": 0.8}, {"orban": 0.6, "victor": 0.8})
    (0.36, 1)
    """
    latin_a, latin_b = _latin_profile(a), _latin_profile(b)
    dot, common = 0.0, 0
    for term, weight in latin_a.items():
        partner = term if term in latin_b else next((t for t in latin_b if _agree(term, t)), None)
        if partner is not None:
            dot += weight * latin_b[partner]
            common += 1
    return round(dot, 6), common


def _latin_profile(profile: Mapping[str, float]) -> dict[str, float]:
    """The profile by Latin term, of norm 1."""
    latin: dict[str, float] = {}
    for term, weight in profile.items():
        key = to_latin(term)
        if len(key) >= MIN_LETTERS:
            latin[key] = max(weight, latin.get(key, 0.0))
    norm = math.sqrt(sum(weight * weight for weight in latin.values())) or 1.0
    return {key: weight / norm for key, weight in latin.items()}


@lru_cache(maxsize=4096)
def to_latin(term: str) -> str:
    r"""Return the letters and digits of a term in ASCII, lower case.

    >>> to_latin("\u044d\u0440\u0434\u043e\u0433\u0430\u043d"), to_latin("M\u00fcnchen")
    ('erdogan', 'munchen')
    """
    return "".join(character for character in anyascii(term).lower() if character.isalnum())


def _agree(a: str, b: str) -> bool:
    common = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return common >= MIN_PREFIX and max(len(a), len(b)) - common <= MAX_ENDING
