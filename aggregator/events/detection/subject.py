"""One subject: whether the headlines of a story say something about one topic, or fill a template with names.

What the headlines have in common, the *core*, does not show that: notices have as much in common as news. The
rest of their words does. In news it is words that recur in several headlines or are known from news in
general; in a list of notices it is another name in each::

    Nimmo takes gold in record time     Crowd welcomes Nimmo home     nimmo + gold, record, time, crowd
    Orbex PLC - Holding(s) in Company   Tarnow PLC - Holding(s) ...   plc, holding, company + orbex, tarnow

Only headlines show a template: the opening of each text has words that are known.

Sources that report independently are evidence too: less is required of a story of several sources, and
nothing if every item has another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil

from aggregator.analysis.term_frequencies import TermRates
from aggregator.events.detection.clustering import Story, WindowItem, latest_counted_items
from aggregator.events.detection.rare_words import is_rare_plain_word

# Share of the items that hold a term of the core.
CORE_SHARE = 0.5
# A term of general news has at least this rate: 1 % of the articles of the English model hold it.
KNOWN_RATE = 5e-5
# A term recurs if it is held by this share of the items, and at least by MIN_RECURRING_ITEMS.
RECURRING_ITEMS_SHARE = 0.18
MIN_RECURRING_ITEMS = 3
# Share of the terms outside the core that recur or are known, which a story needs: in any case, and if more
# than MANY_USUAL_ITEMS of its items are usual, as for company results.
MIN_KNOWN_SHARE = 0.5
MIN_KNOWN_SHARE_OF_USUAL = 0.75
MANY_USUAL_ITEMS = 2.5
# What is rare in news in general ("quake") is usual here if so many items held it on so many days before:
# one earthquake in a short history does not make another one usual.
BUSY_DAY_ITEMS = 3
EVERYDAY_BUSY_DAYS = 3


def fills_template(
    story: Story, expected: float, rates: TermRates | None, busy_days: Callable[[str], int] = lambda _: 0
) -> bool:
    """Whether the story is one text filled in with names; False without ``rates``.

    ``expected``: items per window that are usual for it; ``busy_days``: on how many of the last 7 days
    ``BUSY_DAY_ITEMS`` held a term.
    """
    if rates is None:
        return False
    members = latest_counted_items(story)
    counts = count_terms(members)
    core = core_terms(members, counts)
    known, dependent = known_share(members, counts, core, rates), dependent_share(members)
    if known >= MIN_KNOWN_SHARE_OF_USUAL * dependent or known < MIN_KNOWN_SHARE * dependent:
        return known < MIN_KNOWN_SHARE * dependent
    return expected > MANY_USUAL_ITEMS and not any(
        is_rare_plain_word(term, members, rates) and busy_days(term) < EVERYDAY_BUSY_DAYS for term in core
    )


def count_terms(members: Sequence[WindowItem]) -> Counter[str]:
    """Number of the items whose headlines hold each term."""
    return Counter(term for member in members for term in member.headline_terms)


def core_terms(members: Sequence[WindowItem], counts: Counter[str]) -> set[str]:
    """Return the terms that at least ``CORE_SHARE`` of the items hold."""
    return {term for term, count in counts.items() if count >= CORE_SHARE * len(members)}


def dependent_share(members: Sequence[WindowItem]) -> float:
    """Return the share of the items beyond the first of their source, 0..1."""
    return 1.0 - len({member.source for member in members}) / len(members)


def known_share(
    members: Sequence[WindowItem], counts: Counter[str], core: set[str], rates: TermRates
) -> float:
    """Return the share of the terms outside the ``core`` that recur or are known, 0..1.

    1.0 without such terms, and in languages whose terms have no rates.
    """
    needed = max(MIN_RECURRING_ITEMS, ceil(RECURRING_ITEMS_SHARE * len(members)))
    others = counts.total() - sum(counts[term] for term in core)
    known = sum([count for term, count in counts.items() if count >= needed and term not in core])
    # A rate is looked up once per term and language, not per occurrence.
    for lang in dict.fromkeys([member.lang for member in members]):
        for term, count in count_terms([member for member in members if member.lang == lang]).items():
            if counts[term] < needed and term not in core and is_known(rates.rate(lang, term)):
                known += count
    return known / others if others else 1.0


def is_known(rate: float) -> bool:
    """Whether a term of this rate is known from news in general, or belongs to a language without rates."""
    return rate >= KNOWN_RATE or not rate
