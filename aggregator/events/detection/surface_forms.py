"""How is a term written? Terms are stems ("thornbi"); editors read words ("Thornby")."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from aggregator.analysis.text import tokenizer
from aggregator.events.detection.clustering import WindowItem

# So many headlines show how a word is written.
MAX_HEADLINES = 30
_WORD = re.compile(r"[^\W_]+")


def surface_forms(terms: Sequence[str], members: Iterable[WindowItem]) -> dict[str, str]:
    """Term -> the word for it that most headlines of ``members`` have; "" if none has any.

    The first word of a headline has a capital letter in any case, so it counts for less. Where a script has no
    spaces, a run of it holds many terms: each is a word as it is.
    """
    wanted = set(terms)
    found: dict[str, Counter[str]] = {term: Counter() for term in terms}
    for member in [m for _, m in zip(range(MAX_HEADLINES), members, strict=False)]:
        for place, word in enumerate(_WORD.findall(member.title)):
            held = tokenizer.tokenize(word, member.lang)
            for term in wanted.intersection(held):
                found[term][word if len(held) == 1 else term] += 1 if place == 0 else 1 + MAX_HEADLINES
    return {term: _most_common(found[term]) for term in terms}


def _most_common(counts: Counter[str]) -> str:
    return max(counts, key=lambda word: (counts[word], word), default="")
