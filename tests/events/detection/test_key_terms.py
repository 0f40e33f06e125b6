"""Key terms and medoid of a story."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.detection import BurstRule, key_terms
from aggregator.events.detection.baseline import Baseline
from aggregator.events.detection.clustering import Story
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


def test_the_medoid_is_the_item_with_most_of_the_common_terms() -> None:
    """An item of common terms only is nearer than one with a rare term next to them."""
    story = story_of(
        window_item(1, "storm pier ferry"),
        window_item(2, "storm pier"),
        window_item(3, "storm pier fog rain"),
    )

    assert key_terms.medoid(story, lambda _: 1.0).id == "a2"


def test_of_equal_items_the_older_is_the_medoid() -> None:
    """By time first, then by number, whatever the order of joining."""
    newer, older, same_time = (
        window_item(number, "storm pier", at_ms=at_ms) for number, at_ms in ((1, 50), (2, 40), (3, 40))
    )

    assert key_terms.medoid(story_of(newer, same_time, older), lambda _: 1.0) is older


def test_an_item_without_terms_is_no_medoid_of_others() -> None:
    """Its similarity is 0; alone it is the medoid."""
    empty, storm = window_item(1, ""), window_item(2, "storm")

    assert key_terms.medoid(story_of(empty, storm), lambda _: 1.0) is storm
    assert key_terms.medoid(story_of(empty), lambda _: 1.0) is empty


def test_an_invalidated_story_gets_new_terms() -> None:
    """Until then the cached ones are returned, for this story only."""
    weights = TermWeights(BurstRule(), Baseline(4 * HOUR_MS))
    cache, story = KeyTermCache(weights), story_of(window_item(1, "storm"))
    assert (cache.top_terms(story), cache.top_term(story)) == (["storm"], "storm")

    story.term_sums["aground"] = 900
    assert (cache.top_terms(story), cache.top_term(story)) == (["storm"], "storm")
    cache.invalidate(story)

    assert (cache.top_terms(story), cache.top_term(story)) == (["aground", "storm"], "aground")
    assert cache.top_term(story_of(window_item(2, "ferry"), key=2)) == "ferry"
