"""Other news over shared wording: pairs that share enough for copies and are about different things. Pure.

A copy is an article whose wording is for the most part that of *one* other article, under a headline that
does not say that it is other news. Where much wording is shared, the pairs of docs/design/duplicate-rules.md
are no copies: a bare headline, a column, a page without its text, an item of a collection, a quotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from aggregator.analysis.analyzer import HEADLINE_COUNTS_BELOW_WORDS, shingle_width
from aggregator.analysis.shingles import OverlapEstimate, estimate_overlap
from aggregator.analysis.text.decisive import decisive_difference
from aggregator.dedup.copy_rule import EQUAL_HEADLINES, SAME_LENGTH_RATIO, Comparable, Evidence
from aggregator.dedup.headlines import title_similarity, title_terms
from aggregator.dedup.wording import MOST_OF_BEGINNING, SharedWording, count_of_headline, shared_wording

Reason = Literal["", "figures", "names", "headline", "column", "own news", "page", "part", "passage"]

# Headlines that have so much in common, or of whose terms the other article has so much, agree.
AGREEING = 0.34
FEW_WORDS, BARE_WORDS = 40, 10
MOST = 0.6  # a text of which so much is shared is contained in the other
PART_RATIO, PART_AGREEING = 0.55, 0.75  # a text that is shorter than the other by this factor is a part of it
MAX_PASSAGE_WORDS, SHORT_ARTICLE_WORDS, MAX_PART_WORDS = 250, 200, 150
# The shares of the two headlines that occur in the texts of a page: added, of one outlet; the smaller one.
MAX_OWN_OF_OUTLET, MAX_OWN = 0.9, 0.25
MIN_TERMS = 3  # a headline of fewer terms says less
# A text under so many unlike headlines, most of which do not occur in it, is not the article.
MIN_HEADLINES, SAME_TEXT = 3, 0.8


def other_news(later: Comparable, earlier: Comparable, evidence: Evidence, hours: float) -> Reason:
    """Why two articles that share enough wording are no copies; "" if nothing says so.

    ``hours``: after so many it is another day. "page" and "column" hold for equal texts too.
    """
    headlines = title_similarity(later.title, later.lang, earlier.title, later.lang)  # tags may be wrong
    if later.title and later.title == earlier.title:
        headlines = 1.0  # also one without terms
    few = min(later.text_words, earlier.text_words)
    is_bare = max(later.text_words, earlier.text_words) < BARE_WORDS and later.lang == earlier.lang
    if is_bare and decisive_difference(later.title, earlier.title, later.lang):
        return "headline"
    if evidence.same_outlet and 0 < few < FEW_WORDS and (evidence.hours_apart or 0) > hours:
        return "column"
    overlap = evidence.overlap
    if headlines >= EQUAL_HEADLINES:
        return "" if _share_more_than_the_headline(later, earlier, overlap) else "headline"
    if few < FEW_WORDS and overlap.size_ratio < PART_RATIO and (few == 0 or overlap.common_opening < 0.8):
        return "headline"
    pair = _Pair(later, earlier, evidence)
    if headlines >= AGREEING:  # the joined headlines of two items agree with each of them
        return pair.part(MOST) if headlines < PART_AGREEING else ""
    return pair.page() or pair.passage() or pair.own_news() or pair.part(AGREEING)


def _share_more_than_the_headline(a: Comparable, b: Comparable, overlap: OverlapEstimate) -> bool:
    """False for a column that appears under one headline again and again, with other short texts."""
    shorter, longer = sorted((a, b), key=lambda article: article.text_words)
    if not shorter.text_words or longer.text_words >= HEADLINE_COUNTS_BELOW_WORDS:
        return True  # a bare headline; or the sketch of one has no headline
    own = min(a, b, key=lambda article: article.sketch.size)
    in_headline = count_of_headline(own)
    return overlap.shared - in_headline >= AGREEING * (own.sketch.size - in_headline)


@dataclass(frozen=True)
class _Pair:
    """Two articles under unlike headlines, or without: none of these says anything of a missing headline."""

    later: Comparable
    earlier: Comparable
    evidence: Evidence

    def page(self) -> Reason:
        a, b = self.later.own_headline, self.earlier.own_headline
        many = max(self.later.text_words, self.earlier.text_words)
        # Korean headlines and texts separate words in different ways.
        is_short = many < HEADLINE_COUNTS_BELOW_WORDS and self.later.lang != "ko"
        is_of_outlet = self.evidence.same_outlet and a + b <= MAX_OWN_OF_OUTLET
        is_page = is_of_outlet or (is_short and min(a, b) <= MAX_OWN)
        return "page" if is_page and not self._is_about_other else ""

    @cached_property
    def _is_about_other(self) -> bool:
        """Whether a headline is about the other article, whose headline apart; True if one is missing."""
        a, b = self.later, self.earlier
        in_both = title_terms(a.title, a.lang) & title_terms(b.title, a.lang)  # the name of a series
        about = max(_coverage(a, b, in_both), _coverage(b, a, in_both))
        return about >= AGREEING or not (a.title and b.title)

    @cached_property
    def _in_earlier(self) -> SharedWording:
        return shared_wording(self.later.sketch, [self.earlier.sketch], shingle_width(self.later.lang))

    @cached_property
    def _in_later(self) -> SharedWording:
        return shared_wording(self.earlier.sketch, [self.later.sketch], shingle_width(self.earlier.lang))

    def passage(self) -> Reason:
        words = max(self.later.text_words, self.earlier.text_words)
        if self.evidence.overlap.containment >= MOST or words >= MAX_PASSAGE_WORDS:
            return ""
        return "" if max(self._in_earlier.beginning, self._in_later.beginning) >= AGREEING else "passage"

    def own_news(self) -> Reason:
        overlap = self.evidence.overlap
        is_whole = overlap.containment >= SAME_TEXT and overlap.size_ratio >= SAME_LENGTH_RATIO
        is_behind_kicker = is_whole and self._in_later.beginning >= MOST_OF_BEGINNING
        if self.later.text_words >= SHORT_ARTICLE_WORDS or is_behind_kicker:
            return ""
        shared = self._in_earlier
        if shared.beginning < AGREEING and not self._is_about_other:
            return "own news"
        is_own = shared.headline is not None and shared.headline <= 0.25 and self.later.own_headline >= 0.5
        return "own news" if is_own and _coverage(self.later, self.earlier) < AGREEING else ""

    def part(self, about: float) -> Reason:
        overlap = self.evidence.overlap
        few = min(self.later.text_words, self.earlier.text_words)
        shorter, longer = sorted((self.earlier, self.later), key=lambda article: article.sketch.size)
        may_be_part = overlap.size_ratio < PART_RATIO and few < MAX_PART_WORDS and longer.title
        if not may_be_part or _coverage(longer, shorter) >= about:
            return ""
        return "part" if overlap.containment >= MOST else "passage"


def stands_under_many_headlines(subject: Comparable, earlier: Sequence[Comparable]) -> bool:
    """Whether the text is not the article: ``earlier`` of its outlet print it under unlike headlines.

    Three, its own included, and most of them must not occur in the text.
    """
    if not subject.title or len(earlier) < MIN_HEADLINES - 1:
        return False
    unlike: list[Comparable] = [subject]
    for other in (each for each in earlier if each.title and each.lang == subject.lang):
        is_unlike = all(title_similarity(other.title, other.lang, k.title, k.lang) < AGREEING for k in unlike)
        if is_unlike and is_same_text(subject, other):  # in this order: few are unlike
            unlike.append(other)
    absent = sum(each.own_headline <= AGREEING for each in unlike)
    return len(unlike) >= MIN_HEADLINES and 2 * absent > len(unlike)


def is_same_text(a: Comparable, b: Comparable) -> bool:
    """Whether two texts without their headlines, which short sketches include, are nearly equal."""
    least = SAME_TEXT * (max(a.text_words, b.text_words) - 2)
    may_be = min(a.text_words, b.text_words) > 2 and min(a.sketch.size, b.sketch.size) >= least
    return may_be and estimate_overlap(a.sketch, b.sketch).shared >= least


def _coverage(headline_of: Comparable, other: Comparable, but: frozenset[str] = frozenset()) -> float:
    """Share, 0..1, of the terms of a headline, ``but`` some, among the other article's top terms."""
    wanted = title_terms(headline_of.title, other.lang)
    terms = {term for term, _ in other.terms}
    return sum(term in terms for term in wanted - but) / max(MIN_TERMS, len(wanted))
