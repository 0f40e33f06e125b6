"""Duplicate verdicts in the online protocol."""

from dataclasses import replace

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.near_duplicates import evaluate, format_table
from aggregator_lab.labeled import MERGED, LabeledArticle
from tests.support.factories import edited, story

ANALYZER = Analyzer({"xx": HashedModel()})


def gold(copies: int) -> list[LabeledArticle]:
    """Ten stories with ``copies`` edited versions each."""
    return [
        LabeledArticle(
            Article(id=f"{s}-{c}", text=edited(story(s), c, changes=c + 1), lang="en"), f"story {s}"
        )
        for s in range(10)
        for c in range(copies)
    ]


async def test_light_edits_are_all_found() -> None:
    """No copy is missed and no other article is called a copy."""
    rows = await evaluate(gold(4), ANALYZER, orders=3)
    verified = next(r for r in rows if r.policy == "verified")

    assert [s.f1 for s in verified.scores] == [1.0, 1.0, 1.0]
    assert verified.scores[0].b_cubed_f1 == 1.0
    assert "verified" in format_table(rows)


async def test_a_copy_with_another_label_is_a_false_positive() -> None:
    """Every fourth copy has the label ``odd``."""
    swapped = [LabeledArticle(g.article, "odd" if g.article.id.endswith("-3") else g.label) for g in gold(4)]
    rows = await evaluate(swapped, ANALYZER)
    score = next(r for r in rows if r.policy == "verified").scores[0]

    assert score.false_positive > 0
    assert score.precision < 1.0


async def test_what_is_dropped_has_a_row_of_its_own() -> None:
    """A copy with a new passage is a duplicate that is kept."""
    first, second = (Article(id=f"a{n}", text=story(1), lang="en") for n in range(2))
    longer = Article(id="a2", text=story(1) + " " + story(2), lang="en")
    articles = [LabeledArticle(article, "story") for article in (first, second, longer)]
    rows = await evaluate(articles, ANALYZER, order=lambda gold, seed: list(gold))

    found = {row.policy: row.scores[0].true_positive for row in rows}
    assert (found["verified"], found["dropped"]) == (2, 1)
    assert "dropped" in format_table(rows)


async def test_merged_labels_are_explained_below_their_rows() -> None:
    """Not below a table of other data."""
    rows = await evaluate(gold(2), ANALYZER)

    assert "`labels merged`" not in format_table(rows)
    assert "`labels merged` counts labels of" in format_table([replace(rows[0], labels=MERGED)])


async def test_two_runs_give_equal_results() -> None:
    """Orders are seeded."""
    first = await evaluate(gold(3), ANALYZER, orders=2)
    second = await evaluate(gold(3), ANALYZER, orders=2)

    assert [r.as_json() for r in first] == [r.as_json() for r in second]


async def test_a_file_without_equal_labels_is_refused() -> None:
    """The error names the missing field."""
    with pytest.raises(InvalidInput, match="cluster"):
        await evaluate(gold(1), ANALYZER)
