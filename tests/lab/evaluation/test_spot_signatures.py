"""Spot signatures: extraction behind antecedents, multiset Jaccard."""

from __future__ import annotations

import pytest

from aggregator.domain import Article
from aggregator_lab.evaluation.spot_signatures import spot_signatures, spotsigs

STORY = (
    "The bridge at Larkmouth is closed, the harbour office said. The bearing was cracked and will be "
    "replaced before the ferries return. Drivers should take the upper crossing, which has narrow lanes."
)
NAVIGATION = "Home News Weather Sport Contact Imprint Newsletter"
OTHER = (
    "A gardener has grown a pumpkin. The scales were borrowed from the market, and the crowd was guessing "
    "the weight. It is heavier than the piano in the school hall."
)


def articles(*texts: str) -> list[Article]:
    """Articles with these texts."""
    return [Article(id=str(at), text=text) for at, text in enumerate(texts)]


def test_the_next_content_word_behind_an_antecedent() -> None:
    """Stop words between antecedent and chain are skipped; repetitions stay."""
    assert spot_signatures("The old bridge is in the old harbour. The old bridge was closed.") == [
        "bridge",
        "harbour",
        "harbour",
        "bridge",
        "closed",
    ]


def test_navigation_has_no_signatures() -> None:
    """Without antecedents, or with fewer than four signatures, a text has none; its pairs are absent."""
    assert spot_signatures(NAVIGATION) == []
    assert spot_signatures("The bridge is closed.") == []
    assert len(spotsigs(articles(NAVIGATION, NAVIGATION)).a) == 0


def test_navigation_does_not_lower_the_score() -> None:
    """A page around a story leaves its signatures; another story shares hardly any."""
    scored = spotsigs(articles(STORY, f"{NAVIGATION} {STORY} {NAVIGATION}", OTHER))
    by_pair = dict(zip(zip(scored.a.tolist(), scored.b.tolist(), strict=True), scored.score, strict=True))

    assert by_pair[0, 1] > 0.8
    assert by_pair.get((0, 2), 0.0) < 0.1


def test_multiset_jaccard() -> None:
    """Counts matter: 4 of 4 against 8 signatures are one half."""
    scored = spotsigs(articles(STORY, f"{STORY} {STORY}"))

    assert scored.score.tolist() == pytest.approx([0.5], abs=0.05)
