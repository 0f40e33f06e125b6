"""The online protocol, and the development data under it."""

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.offline.evaluation.near_duplicates import LabeledArticle, evaluate, format_table
from tests.support.factories import edited, story

ANALYSER = Analyzer({"xx": HashedModel()})


def gold(copies: int) -> list[LabeledArticle]:
    """Ten stories, each with so many edited copies."""
    return [
        LabeledArticle(
            Article(id=f"{s}-{c}", text=edited(story(s), c, changes=c + 1), lang="en"), f"story {s}"
        )
        for s in range(10)
        for c in range(copies)
    ]


async def test_perfect_set() -> None:
    """Light edits are all found, nothing else is called a copy."""
    rows = await evaluate(gold(4), ANALYSER, orders=3)
    verified = next(r for r in rows if r.policy == "verified")

    assert [s.f1 for s in verified.scores] == [1.0, 1.0, 1.0]
    assert verified.scores[0].b_cubed_f1 == 1.0
    assert "verified" in format_table(rows)


async def test_wrong_labels_count_as_false() -> None:
    """A copy under another label is a false positive, and its label's other article is missed."""
    swapped = [LabeledArticle(g.article, "odd" if g.article.id.endswith("-3") else g.label) for g in gold(4)]
    rows = await evaluate(swapped, ANALYSER)
    score = next(r for r in rows if r.policy == "verified").scores[0]

    assert score.false_positive > 0
    assert score.precision < 1.0


async def test_two_runs_agree() -> None:
    """Orders are seeded."""
    one, other = await evaluate(gold(3), ANALYSER, orders=2), await evaluate(gold(3), ANALYSER, orders=2)

    assert [r.as_json() for r in one] == [r.as_json() for r in other]


async def test_unlabelled_file() -> None:
    """A file without two equal labels cannot be scored, and the sentence says what is missing."""
    with pytest.raises(InvalidInput, match="cluster"):
        await evaluate(gold(1), ANALYSER)
