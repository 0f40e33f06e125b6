"""Surface forms of terms: editors read words ("Thornby"), not stems ("thornbi")."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from aggregator.events.detection.clustering import WindowItem
from aggregator.events.detection.name_variants import terms_of_word

# Headlines examined per event, in order of joining.
MAX_HEADLINES = 30
_WORD = re.compile(r"[^\W_]+")


def surface_forms(terms: Sequence[str], members: Iterable[WindowItem]) -> dict[str, str]:
    """Return term -> its most frequent word in the headlines of ``members``; "" if none contains it.

    The first word of a headline is always capitalized, so any other position outweighs all first ones. In a
    script without spaces a run of characters holds several terms; each is shown as it is.
    """
    counts: dict[str, Counter[str]] = {term: Counter() for term in terms}
    for member in islice(members, MAX_HEADLINES):
        for position, word in enumerate(_WORD.findall(member.title)):
            word_terms = terms_of_word(word, member.lang)
            for term in counts.keys() & word_terms:
                form = word if len(word_terms) == 1 else term
                counts[term][form] += 1 if position == 0 else 1 + MAX_HEADLINES
    return {term: _most_common(counts[term]) for term in terms}


def _most_common(counts: Counter[str]) -> str:
    return max(counts, key=lambda word: (counts[word], word), default="")
