"""Subject of a cluster: news is about one topic with a name, notices fill one template with many names.

**One subject** (``fills_template``). The words beyond what most headlines share, the *core*, recur in news or
are known from news in general; in a list of notices they are another name in each::

    Nimmo takes gold in record time     Crowd welcomes Nimmo home     nimmo + gold, record, time, crowd
    Orbex PLC - Holding(s) in Company   Tarnow PLC - Holding(s) ...   plc, holding, company + orbex, tarnow

**Named subject** (``has_named_subject``). What most items have in common is a name, by its writing, or a word
rare in news in general ("quake"), not a plain word of many companies ("sales"). In one year, 17 of 18 events
had one name in 44 % or more of their items, and 7 of 28 routine ones (docs/benchmarks/events.md).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from itertools import islice
from math import ceil

from aggregator.analysis.term_frequencies import TermRates
from aggregator.events.detection.clustering import Cluster, WindowItem, latest_counted_items
from aggregator.events.detection.routine import (
    CAPITALIZED_SHARE,
    MAX_WINDOW_ITEMS,
    occurrences_inside,
    shows_names,
)

# Share of the items that hold a term of the core.
CORE_SHARE = 0.5
# A term of general news has at least this rate: 1 % of the articles of the English model hold it.
KNOWN_RATE = 5e-5
# A term recurs if it is held by this share of the items, and at least by MIN_RECURRING_ITEMS.
RECURRING_ITEMS_SHARE = 0.18
MIN_RECURRING_ITEMS = 3
# Share of the terms outside the core that recur or are known, which a cluster needs: in any case, and if more
# than MANY_USUAL_ITEMS of its items are usual, as for company results.
MIN_KNOWN_SHARE = 0.5
MIN_KNOWN_SHARE_OF_USUAL = 0.75
MANY_USUAL_ITEMS = 2.5
# What is rare in news in general ("quake") is usual here if so many items held it on so many days before:
# one earthquake in a short history does not make another one usual.
BUSY_DAY_ITEMS = 3
EVERYDAY_BUSY_DAYS = 3
# 0.2 % of the articles of the English model hold a word of this rate.
RARE_WORD_RATE = 1e-5
# Abbreviations of statistics and of figures of companies, and Roman numerals, are written like names. Units
# are rare in texts, not in headlines.
_FIGURE_WORDS = """
    bip cpi ebit ebitda ep eps gdp gnp ipo ism nav pib pmi ppi ii iii iv vi vii viii ix
    bln bn bps mio mln mn mrd pct tln trln
"""
_FIGURES = frozenset(_FIGURE_WORDS.split())
# Share of the items that hold the name, if all are of one source; less is required of several sources.
NAME_SHARE = 0.45
# Share of the items that hold a word which is rare in news in general.
RARE_WORD_SHARE = 0.8
# A known word that is nowhere inside a headline of the cluster is not a name if fewer than MIN_OCCURRENCES of
# so many headlines that show names have it inside.
MIN_OCCURRENCES = 3
MIN_NAMING_HEADLINES = 100


def fills_template(
    cluster: Cluster, expected: float, rates: TermRates | None, busy_days: Callable[[str], int] = lambda _: 0
) -> bool:
    """Whether it is one text filled in with names; ``expected``: usual items; ``busy_days``: of a term."""
    if rates is None:
        return False
    members = latest_counted_items(cluster)
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
    """The share of the terms outside the ``core`` that recur or are known, 0..1; 1.0 without any."""
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


def may_be_subject(term: str) -> bool:
    """Whether a term is outside statistics and figures."""
    return not (term in _FIGURES or any(char.isdigit() for char in term))


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


def has_named_subject(cluster: Cluster, window: deque[WindowItem], rates: TermRates | None) -> bool:
    """Whether enough items hold one name, or one rare word; True if no headline shows what is a name."""
    members = latest_counted_items(cluster)
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
