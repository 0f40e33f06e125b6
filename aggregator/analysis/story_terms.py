"""Story terms: what events are detected from, the headline of an article and the names in its opening.

The headline's terms have weight 1. Of the opening, the first ``OPENING_UNITS`` words of the text, only those
terms are used that are among the article's heaviest (``Analysis.terms``), with weight ``OPENING_WEIGHT``:
names and places, not the words that every text holds. They are stored as a bit mask over those terms
(``Analysis.opening_mask``), so that headline and mask give the same terms to the service and to
``aggregator replay``.
"""

from __future__ import annotations

from collections.abc import Iterable

from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.headline import strip_desk_prefix
from aggregator.domain import WeightedTerms

# Two sentences, the lead of a news article.
OPENING_UNITS = 40
OPENING_WEIGHT = 0.5


def opening_mask(terms: WeightedTerms, text: tokenizer.SplitText, lang: str) -> int:
    """Return an integer whose bit i says whether ``terms[i]`` occurs in the opening of the text."""
    if not text.units:
        return 0
    if text.terms is None:
        opening = set(tokenizer.terms_of_words(text.units[:OPENING_UNITS], lang))
    else:
        opening = set(text.terms[:OPENING_UNITS])
    return sum(1 << i for i, (term, _) in enumerate(terms) if term in opening)


def story_terms(title: str, lang: str, terms: WeightedTerms, mask: int) -> tuple[tuple[str, float], ...]:
    """Return the story terms of an article and their weights, those of the headline first.

    ``terms`` and ``mask``: ``Analysis.terms`` and ``Analysis.opening_mask``. Numbers are left out. An article
    with neither a headline nor an opening has its heaviest terms.
    """
    weights = dict.fromkeys(_without_numbers(tokenizer.tokenize(strip_desk_prefix(title), lang)), 1.0)
    for i, (term, _) in enumerate(terms):
        if mask >> i & 1 and not term.isdecimal():
            weights.setdefault(term, OPENING_WEIGHT)
    return tuple(weights.items()) or tuple(terms)


def _without_numbers(terms: Iterable[str]) -> list[str]:
    return [term for term in terms if not term.isdecimal()]
