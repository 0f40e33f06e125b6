"""Named subject: news is about somebody or something with a name; a list of results is not.

What the items of a story have in common is a name in news (a person, place, company or body), and a plain
word in the routine of many companies, each with its own name. Writing shows which words are names, in
languages and headlines that capitalize names only::

    headlines                                    held by most items                          verdict
    Northwater May same-store sales rise 2 pct   sales, store                                routine
    Quayside same-store sales fall in May
    At least 12 dead in Thornby market fire      fire; Thornby, capitalized inside a line    news
    Rescuers search ruins of Thornby market

The first word of a headline is ignored, and so is a headline that capitalizes most of its words or none. A
word that occurs in no other headline of the window is taken for a name. So the rule has no effect on Chinese
or Arabic and on a stream of headlines In Title Case, and hardly any on German.

Each report on an earthquake may name another town. A word that is rare in news in general, "quake", is a
subject too.

In one year, 17 of the 18 events that a person called news had one name in 44 % or more of their items when
they fired, and 7 of the 28 routine ones; see docs/benchmarks/events.md.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from aggregator.analysis.term_rates import TermRates
from aggregator.events.detection.calendar_terms import CALENDAR_TERMS
from aggregator.events.detection.clustering import Story, WindowItem, latest_counted_items
from aggregator.events.detection.name_variants import terms_of_word
from aggregator.events.detection.subject import count_terms, dependent_share

# Share of the items that hold the name, if all are of one source; less is required of several sources.
NAME_SHARE = 0.45
# Share of the items that hold a word which is rare in news in general: 0.2 % of the articles of the English
# model hold one of this rate. It is a subject too.
RARE_WORD_SHARE = 0.8
RARE_WORD_RATE = 1e-5
# Latest items of the window that are searched for a word about which the story itself shows nothing.
MAX_WINDOW_ITEMS = 2_000
# Share of the occurrences of a name that are capitalized.
CAPITALIZED_SHARE = 0.7
# Share of the words of a headline that begin with a small letter, whose capital letters show names.
MIN_LOWER_CASE_SHARE = 0.3
# Abbreviations of statistics and of figures of companies are written like names.
_FIGURES = frozenset(
    ["bip", "cpi", "ebit", "ebitda", "ep", "eps", "gdp", "gnp", "ipo", "ism", "nav", "pib", "pmi", "ppi"]
)
_WORD = re.compile(r"[^\W_]+")
_PREFIX_CHARS = 3


def has_named_subject(story: Story, window: deque[WindowItem], rates: TermRates | None) -> bool:
    """Whether enough items hold one name, or one rare word; True if no headline shows what is a name.

    ``window``: all items of the window, oldest first; they show what is a name among words that the
    story writes In Title Case only. ``rates``: without them no word is rare.
    """
    members = latest_counted_items(story)
    required = NAME_SHARE * dependent_share(members) * len(members)
    if not required:
        return True
    counts = count_terms(members)
    common = [term for term, count in counts.items() if count >= required and _may_be_name(term)]
    return any(_is_name(term, members, window) for term in common) or (
        rates is not None
        and any(
            counts[term] >= RARE_WORD_SHARE * len(members) and _is_rare(term, members, rates)
            for term in common
        )
    )


def _is_rare(term: str, members: Sequence[WindowItem], rates: TermRates) -> bool:
    """Whether a word of sentences, not only of titles, is rare in news in general."""
    known_rate = rates.rate(members[-1].lang, term)
    return 0 < known_rate < RARE_WORD_RATE and any(True for _ in _words_inside(term, members))


def _may_be_name(term: str) -> bool:
    return not (term in CALENDAR_TERMS or term in _FIGURES or any(char.isdigit() for char in term))


def _is_name(term: str, members: Iterable[WindowItem], window: deque[WindowItem]) -> bool:
    capitalized = [word[0].isupper() for word in _words_inside(term, members)]
    if not capitalized:
        latest = islice(reversed(window), MAX_WINDOW_ITEMS)
        capitalized = [word[0].isupper() for word in _words_inside(term, latest)]
    return sum(capitalized) >= CAPITALIZED_SHARE * len(capitalized)


def _words_inside(term: str, items: Iterable[WindowItem]) -> Iterator[str]:
    """Yield the occurrences of ``term`` inside headlines whose capital letters show names."""
    for item in items:
        if term not in item.terms:
            continue
        words = _WORD.findall(item.title)
        if not _shows_names(words):
            continue
        for word in words[1:]:
            # Comparing the prefixes first avoids most calls of the tokenizer.
            same_prefix = word[:_PREFIX_CHARS].casefold() == term[:_PREFIX_CHARS]
            if same_prefix and term in terms_of_word(word, item.lang):
                yield word


def _shows_names(words: Sequence[str]) -> bool:
    if not words or words[0][0].islower():
        return False
    small = sum(word[0].islower() for word in words)
    return small >= MIN_LOWER_CASE_SHARE * sum(word[0].isalpha() for word in words) and small > 0
