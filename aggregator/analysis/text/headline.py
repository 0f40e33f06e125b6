"""Removal of newswire prefixes ("UPDATE 2-") from headlines: capitals, optionally a number, a dash."""

from __future__ import annotations

import re

# "UPDATE 2-", "WRAPUP 1-", "US STOCKS SNAPSHOT-": at most four words in capitals.
_DESK_PREFIX = re.compile(
    r"^\s*(?:[A-Z][A-Z&/]{1,15}\.?(?: [A-Z][A-Z&/]{1,15}\.?){0,3}(?: {0,2}\d{1,3})?\s?[-–—]\s?)+(?=\S)"
)


def split_headline(title: str) -> tuple[str, str]:
    """Return (newswire prefixes, headline without them).

    >>> split_headline("FACTBOX-Bridges closed by storms")
    ('FACTBOX-', 'Bridges closed by storms')
    """
    stripped, sent = strip_desk_prefix(title), title.strip()
    return sent[: len(sent) - len(stripped)], stripped


def strip_desk_prefix(title: str) -> str:
    """Return the headline without its newswire prefixes.

    >>> strip_desk_prefix("RPT-UPDATE 2-Bridge closed after storm")
    'Bridge closed after storm'
    >>> strip_desk_prefix("NATO-led force leaves")
    'NATO-led force leaves'
    """
    if title.isupper():
        return title.strip()
    stripped = _DESK_PREFIX.sub("", title)
    # A headline starts with a capital, a digit or a quotation mark; a small letter continues a compound word.
    return title.strip() if stripped[:1].islower() else stripped.strip()
