"""Case of headlines: where capital letters show what is a name, and where every word has one.

A newsroom writes headlines as sentences, and there a capital letter inside a line shows a name. Press
releases and regulatory notices are written In Title Case, and so are the headlines of some outlets; Chinese
or Arabic have no capital letters. Those show nothing::

    At least 12 dead in Thornby market fire       shows names: Thornby
    Quayside plans - Workers to strike in May     the first word after a dash shows nothing either
    Northwater Announces Third Quarter Results    in Title Case, shows nothing
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from aggregator.events.detection.clustering import WindowItem
from aggregator.events.detection.name_variants import terms_of_word

# Share of the words of a headline that begin with a small letter, whose capital letters show names.
MIN_LOWER_CASE_SHARE = 0.3
# Fewer words do not show a style.
MIN_WORDS = 3
# Share of the occurrences of a name that are capitalized.
CAPITALIZED_SHARE = 0.7
_PREFIX_CHARS = 3
MAX_CACHED_HEADLINES = 4_096
_WORD = re.compile(r"[^\W_]+")
_PART_BREAK = re.compile(r"[:;?!|–—]\s|\s--?\s")


def shows_names(title: str) -> bool:
    """Whether capital letters show names in this headline: it is written as a sentence."""
    words: list[str] = _WORD.findall(title)
    if not words or words[0][0].islower():
        return False
    small = sum(word[0].islower() for word in words)
    return small >= MIN_LOWER_CASE_SHARE * sum(word[0].isalpha() for word in words) and small > 0


def occurrences_inside(term: str, items: Iterable[WindowItem]) -> Iterator[str]:
    """Yield the occurrences of ``term`` in headlines that show names, where a capital letter shows a name.

    That is not at the start of a headline; at the start of a later part, only a small letter shows something.
    """
    for item in items:
        if term not in item.terms or not shows_names(item.title):
            continue
        for number, part in enumerate(_PART_BREAK.split(item.title)):
            for position, word in enumerate(_WORD.findall(part)):
                # Comparing the prefixes first avoids most calls of the tokenizer.
                if word[:_PREFIX_CHARS].casefold() != term[:_PREFIX_CHARS]:
                    continue
                if not position and (not number or not word[0].islower()):
                    continue
                if term in terms_of_word(word, item.lang):
                    yield word


def title_case_share(members: Collection[WindowItem]) -> float:
    """Return the share of the headlines that are In Title Case or in capitals, 0..1; 0.0 without items."""
    return sum(_is_title_case(member.title) for member in members) / len(members) if members else 0.0


# Each item of a story in Title Case has the latest headlines of the window examined again.
@lru_cache(maxsize=MAX_CACHED_HEADLINES)
def _is_title_case(title: str) -> bool:
    words: list[str] = [word for word in _WORD.findall(title) if word[0].isalpha()]
    capitals = sum(word[0].isupper() for word in words)
    return len(words) >= MIN_WORDS and capitals > (1.0 - MIN_LOWER_CASE_SHARE) * len(words)
