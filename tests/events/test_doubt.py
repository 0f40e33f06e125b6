"""Which articles share next to nothing with the others, and whether all of them are one story."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.doubt import is_one_story, strange_articles

STORM = {"storm", "coast", "ferry"}
WORDS = st.sets(st.sampled_from(sorted(STORM | {"choir", "tower", "otter", "river"})))


def test_an_article_that_is_like_no_other_is_strange() -> None:
    """One shared word does not make two articles alike."""
    told = {"a": STORM, "b": STORM, "c": {"storm", "coast"}, "d": {"ferry", "museum", "ticket"}}

    assert strange_articles(told) == {"d"}
    assert is_one_story(told)


def test_one_shared_word_makes_no_story() -> None:
    """Whatever its number of articles; a single article is a story."""
    returns = {str(n): {"return", f"thing{n}"} for n in range(9)}

    assert not is_one_story(returns)
    assert strange_articles(returns) == returns.keys()
    assert is_one_story({"a": {"return"}}) and strange_articles({"a": {"return"}}) == set()


@given(st.dictionaries(st.text(max_size=3), WORDS, min_size=2, max_size=12))
def test_the_order_of_articles_does_not_matter(told: dict[str, set[str]]) -> None:
    """Articles that are all strange are not one story."""
    backwards = dict(reversed(told.items()))

    assert (strange_articles(told), is_one_story(told)) == (
        strange_articles(backwards),
        is_one_story(backwards),
    )
    assert not (is_one_story(told) and strange_articles(told) == told.keys())
