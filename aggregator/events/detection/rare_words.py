"""Rare words: a word that is rare in news in general is a subject without being a name.

Each report on an earthquake may name another town; what they share is "quake". Nor is it an everyday
topic: one earthquake in two days of history does not make another one usual.
"""

from __future__ import annotations

from collections.abc import Sequence

from aggregator.analysis.term_frequencies import TermRates
from aggregator.events.detection.calendar_terms import CALENDAR_TERMS
from aggregator.events.detection.clustering import WindowItem
from aggregator.events.detection.headline_case import CAPITALIZED_SHARE, occurrences_inside

# 0.2 % of the articles of the English model hold a word of this rate.
RARE_WORD_RATE = 1e-5
# Abbreviations of statistics and of figures of companies, and Roman numerals, are written like names. Units
# are rare in texts, not in headlines.
_FIGURES = frozenset(
    [
        *(
            "bip",
            "cpi",
            "ebit",
            "ebitda",
            "ep",
            "eps",
            "gdp",
            "gnp",
            "ipo",
            "ism",
            "nav",
            "pib",
            "pmi",
            "ppi",
        ),
        *("ii", "iii", "iv", "vi", "vii", "viii", "ix"),
        *("bln", "bn", "bps", "mio", "mln", "mn", "mrd", "pct", "tln", "trln"),
    ]
)


def may_be_subject(term: str) -> bool:
    """Whether a term is outside the calendar, statistics and figures."""
    return not (term in CALENDAR_TERMS or term in _FIGURES or any(char.isdigit() for char in term))


def is_rare_word(term: str, members: Sequence[WindowItem], rates: TermRates) -> bool:
    """Whether a word, or a name, of sentences, not only of titles, is rare in news in general."""
    known_rate = rates.rate(members[-1].lang, term)
    return 0 < known_rate < RARE_WORD_RATE and any(True for _ in occurrences_inside(term, members))


def is_rare_plain_word(term: str, members: Sequence[WindowItem], rates: TermRates) -> bool:
    """Whether a word is rare in news in general and not a name."""
    if not may_be_subject(term) or not is_rare_word(term, members, rates):
        return False
    capitalized = [word[0].isupper() for word in occurrences_inside(term, members)]
    return sum(capitalized) < CAPITALIZED_SHARE * len(capitalized)
