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

from collections import deque
from collections.abc import Sequence
from itertools import islice

from aggregator.analysis.term_frequencies import TermRates
from aggregator.events.detection.clustering import Story, WindowItem, latest_counted_items
from aggregator.events.detection.headline_case import CAPITALIZED_SHARE, occurrences_inside, shows_names
from aggregator.events.detection.rare_words import is_rare_word, may_be_subject
from aggregator.events.detection.subject import count_terms, dependent_share, is_known

# Share of the items that hold the name, if all are of one source; less is required of several sources.
NAME_SHARE = 0.45
# Share of the items that hold a word which is rare in news in general.
RARE_WORD_SHARE = 0.8
# Latest items of the window that are searched for a word about which the story itself shows nothing.
MAX_WINDOW_ITEMS = 2_000
# A known word that is nowhere inside a headline of the story is not a name if fewer than MIN_OCCURRENCES of
# so many headlines that show names have it inside.
MIN_OCCURRENCES = 3
MIN_NAMING_HEADLINES = 100


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
    common = [term for term, count in counts.items() if count >= required and may_be_subject(term)]
    return any(is_name(term, members, window, rates) for term in common) or (
        rates is not None
        and any(
            counts[term] >= RARE_WORD_SHARE * len(members) and is_rare_word(term, members, rates)
            for term in common
        )
    )


def is_name(
    term: str, members: Sequence[WindowItem], window: deque[WindowItem], rates: TermRates | None
) -> bool:
    """Whether capital letters show that a term of these items is a name; True if nothing shows what it is."""
    capitalized = [word[0].isupper() for word in occurrences_inside(term, members)]
    if not capitalized:
        lang = members[-1].lang
        latest = [item for item in islice(reversed(window), MAX_WINDOW_ITEMS) if item.lang == lang]
        capitalized = [word[0].isupper() for word in occurrences_inside(term, latest)]
        if (
            len(capitalized) < MIN_OCCURRENCES
            and rates is not None
            and is_known(rates.rate(lang, term))
            and sum(shows_names(item.title) for item in latest) >= MIN_NAMING_HEADLINES
        ):
            return False  # a name that is as well known would be inside more headlines
    return sum(capitalized) >= CAPITALIZED_SHARE * len(capitalized)
