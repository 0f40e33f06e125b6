"""Choice of a headline among candidates."""

from __future__ import annotations

import pytest

from aggregator.events.detection.headline_choice import Candidate, choose_headline, news_value


def choose(*titles: str, minutes: int = 0) -> int:
    """The choice among headlines whose terms are their words, one every ``minutes``."""
    return choose_headline(
        [
            Candidate(title, number * minutes * 60_000, dict.fromkeys(title.lower().split(), 1.0))
            for number, title in enumerate(titles)
        ]
    )


def test_the_headline_with_most_in_common_is_chosen() -> None:
    """The older one on a tie; a single one needs no terms."""
    assert (
        choose("Harbour market closed on Friday", "Harbour bridge collapses in Wenlow", "Bridge in Wenlow")
        == 1
    )
    assert choose("Bridge closed in Wenlow", "Bridge closed in Wenlow") == 0
    assert choose_headline([Candidate("", 0, {})]) == 0


def test_a_specific_headline_is_preferred_to_a_bare_one() -> None:
    """A cosine would prefer the words that all have, and nothing else."""
    assert (
        choose("Bridge collapses", "Wenlow bridge collapses in storm", "Old bridge collapses in storm") != 0
    )


def test_of_similar_headlines_the_latest_is_chosen() -> None:
    """Its figures are the newest."""
    assert choose("Storm kills 3 in Wenlow harbour", "Storm kills 8 in Wenlow harbour", minutes=30) == 1


@pytest.mark.parametrize(
    "less",
    [
        "FACTBOX-Bridges that collapsed in storms",
        "Analysis: what the bridge collapse means",
        "GLOBAL MARKETS-Wenlow bridge collapse hits builders",
        "Did a storm bring down the Wenlow bridge?",
        "Premier expresses shock at Wenlow bridge collapse",
        "Builders' shares slide after Wenlow bridge collapse",
        "Premier says Wenlow bridge will be rebuilt",
        "Wenlow bridge will be rebuilt soon: Miller",
        "Wenlow bridge",
        "Video shows Wenlow bridge collapse",
    ],
)
def test_reactions_and_background_have_less_news_value(less: str) -> None:
    """Than a plain statement, with or without a mark of an update; a toll has more."""
    plain = news_value("Wenlow bridge collapses in storm")

    assert plain == news_value("UPDATE 2-Wenlow bridge collapses in storm") == 1.0
    assert news_value(less) < plain < news_value("At least 8 dead as Wenlow bridge collapses")


def test_who_reports_what_happened_does_not_make_it_a_statement() -> None:
    """Police, officials, witnesses and media; nor does a statement about oneself."""
    assert news_value("Wenlow bridge collapses in storm: police source") == 1.0
    assert news_value("Wenlow bridge collapses in storm -official") == 1.0
    assert news_value("Builder says has closed the Wenlow bridge") == 1.0


def test_other_scripts_have_no_word_lists() -> None:
    """Only a question mark counts; a headline without spaces is not short."""
    assert news_value("\u6865\u6881\u5728\u66b4\u98ce\u96e8\u4e2d\u5012\u584c") == 1.0
    assert news_value("\u6865\u6881\u5012\u584c\u4e86\uff1f") == 0.5
