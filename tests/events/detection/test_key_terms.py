"""Key terms of a story, and the item whose headline describes it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.detection import BurstRule, key_terms
from aggregator.events.detection.baseline import Baseline
from aggregator.events.detection.clustering import Story
from aggregator.events.detection.cold_start import ColdStart
from aggregator.events.detection.key_terms import KEY_TERMS_PER_STORY, KeyTermCache
from aggregator.events.detection.term_weights import TermWeights
from aggregator.time_units import HOUR_MS
from tests.events.detection.window_items import story_of, window_item

term_sums = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 4), max_size=30)


@given(term_sums)
def test_the_fast_top_term_is_the_first_of_all(sums: dict[str, int]) -> None:
    """Also on ties, which the term decides; a story without terms has none."""
    story = Story(1, "s1", term_sums=sums)

    terms = key_terms.top_terms(story, lambda term: float(len(term)))

    assert len(terms) == min(KEY_TERMS_PER_STORY, len(sums))
    assert terms == sorted(sums, key=lambda term: (-sums[term] * len(term), term))[:KEY_TERMS_PER_STORY]
    assert key_terms.top_term(story, lambda term: float(len(term))) == (terms[0] if terms else "")


@given(term_sums, st.lists(st.sampled_from(["a", "b", "ab", "ba", "c"]), max_size=40))
def test_the_top_bursting_term_is_the_first_that_bursts(sums: dict[str, int], in_window: list[str]) -> None:
    """It is the top term if that bursts; "" if no term does. Repeated calls agree."""
    baseline = Baseline(4 * HOUR_MS)
    weights = TermWeights(BurstRule(), baseline, ColdStart(None, baseline))
    for words in in_window:
        weights.add(window_item(1, words))
    cache, story = KeyTermCache(weights), Story(1, "s1", term_sums=sums)

    ordered = sorted(sums, key=lambda term: (-sums[term] * weights.weigh(term), term))

    assert cache.top_bursting_term(story) == next(filter(weights.is_bursting, ordered), "")
    assert cache.top_bursting_term(story) == cache.top_bursting_term(story)


def test_the_headline_has_the_common_terms() -> None:
    """As it was sent: a desk's background article is not the one that describes the story."""
    plain = window_item(1, "storm hits pier and ferry")
    background = window_item(2, "storm hits pier and ferry", at_ms=60_000)
    background.desk_prefix = "FACTBOX-"
    story = story_of(background, plain, window_item(3, "market closes early on friday"))

    assert key_terms.typical_headline(story, lambda _: 1.0) is plain


def test_of_equal_items_the_older_gives_the_headline() -> None:
    """By number at one time; an item without terms is chosen only if it is alone."""
    first, second, empty = (
        window_item(number, words, at_ms=40)
        for number, words in ((1, "storm pier"), (2, "storm pier"), (3, ""))
    )

    assert key_terms.typical_headline(story_of(first, second), lambda _: 1.0) is first
    assert key_terms.typical_headline(story_of(empty, second), lambda _: 1.0) is second
    assert key_terms.typical_headline(story_of(empty), lambda _: 1.0) is empty


def test_an_invalidated_story_gets_new_terms() -> None:
    """Until then the cached ones are returned, for this story only."""
    baseline = Baseline(4 * HOUR_MS)
    weights = TermWeights(BurstRule(), baseline, ColdStart(None, baseline))
    cache, story = KeyTermCache(weights), story_of(window_item(1, "storm"))
    assert (cache.top_terms(story), cache.top_term(story)) == (["storm"], "storm")
    assert cache.top_bursting_term(story) == ""

    story.term_sums["aground"] = 900
    assert (cache.top_terms(story), cache.top_term(story)) == (["storm"], "storm")
    cache.invalidate(story)

    assert (cache.top_terms(story), cache.top_term(story)) == (["aground", "storm"], "aground")
    assert cache.top_term(story_of(window_item(2, "ferry"), key=2)) == "ferry"


def test_stories_agree_with_half_of_their_key_terms_in_common() -> None:
    """Four of eight; the other four differ."""
    baseline = Baseline(4 * HOUR_MS)
    cache = KeyTermCache(TermWeights(BurstRule(), baseline, ColdStart(None, baseline)))
    one, four, three = (
        story_of(window_item(number, words), key=number)
        for number, words in enumerate(("a b c d e f g h", "a b c d i j k l", "a b c m n o p q"))
    )

    assert cache.agree(one, four)
    assert not cache.agree(one, three)
