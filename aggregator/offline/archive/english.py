"""Fast test for plain English, which saves language detection for most articles of an English archive.

In running English every fifth word is one of a few function words that no other language uses that often.
Any other text goes to ``analysis.text.language.detect_language``; a test compares the two.
"""

from __future__ import annotations

import re

_WORDS = re.compile(r"[a-z]+")
_FUNCTION_WORDS = "the of and to that is was for with as at by this had are but from have they which his"
_COMMON_WORDS = frozenset(_FUNCTION_WORDS.split())
_MIN_WORDS = 20
_MIN_COMMON_SHARE = 0.2
_MIN_DISTINCT_COMMON = 4
_MAX_EXTRA_BYTES_SHARE = 0.1  # a typographic quotation mark or dash is three bytes in UTF-8


def is_plain_english(text: str) -> bool:
    """True for running English text of at least 20 words; False means unknown."""
    if len(text.encode("utf-8", "surrogatepass")) > (1 + _MAX_EXTRA_BYTES_SHARE) * len(text):
        return False
    words = _WORDS.findall(text.lower())
    common = [word for word in words if word in _COMMON_WORDS]
    return (
        len(words) >= _MIN_WORDS
        and len(common) >= _MIN_COMMON_SHARE * len(words)
        and len(set(common)) >= _MIN_DISTINCT_COMMON
    )
