"""How is a term written? Terms are stems ("thornbi"); editors read words ("Thornby")."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from aggregator.bursts.stories import Member
from aggregator.text import tokens

# So many headlines show how a word is written; a term that stands only in texts is shown as it is.
HEADLINES = 30
_WORD = re.compile(r"[^\W_]+")


def words(terms: Sequence[str], members: Iterable[Member]) -> dict[str, str]:
    """Term -> the word for it that most headlines of ``members`` have; the term itself if none has any.

    The first word of a headline has a capital letter in any case, so it counts for less.
    """
    wanted = set(terms)
    found: dict[str, Counter[str]] = {term: Counter() for term in terms}
    for member in [m for _, m in zip(range(HEADLINES), members, strict=False)]:
        for place, word in enumerate(_WORD.findall(member.title)):
            for term in tokens.tokenize(word, member.lang):
                if term in wanted:
                    found[term][word] += 1 if place == 0 else 1 + HEADLINES
    return {term: _most(found[term]) or term for term in terms}


def _most(counts: Counter[str]) -> str:
    return max(counts, key=lambda word: (counts[word], word), default="")
