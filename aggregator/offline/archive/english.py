"""Is this plainly English? A quick look that spares most of an English archive the slow one.

Every fifth word of running English is one of a few that no other language writes so often. Whatever is not
plain goes to ``text.language.detect``; the two are compared in a test.
"""

from __future__ import annotations

import re

_WORDS = re.compile(r"[a-z]+")
_COMMON_WORDS = frozenset(
    [
        "the",
        "of",
        "and",
        "to",
        "that",
        "is",
        "was",
        "for",
        "with",
        "as",
        "at",
        "by",
        "this",
        "had",
        "are",
        "but",
        "from",
        "have",
        "they",
        "which",
        "his",
    ]
)
_MIN_WORDS = 20
_MIN_COMMON_SHARE = 0.2
_MIN_DISTINCT_COMMON = 4
_MAX_EXTRA_BYTES_SHARE = 0.1  # bytes: quotation marks and dashes take two more each


def is_plain_english(text: str) -> bool:
    """True for running English text of at least 20 words; False says nothing."""
    if len(text.encode("utf-8", "surrogatepass")) > (1 + _MAX_EXTRA_BYTES_SHARE) * len(text):
        return False
    words = _WORDS.findall(text.lower())
    common = [word for word in words if word in _COMMON_WORDS]
    return (
        len(words) >= _MIN_WORDS
        and len(common) >= _MIN_COMMON_SHARE * len(words)
        and len(set(common)) >= _MIN_DISTINCT_COMMON
    )
