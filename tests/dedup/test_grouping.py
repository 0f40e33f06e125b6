"""Groups that are one, members that leave: without a store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.grouping import is_stored_copy, leaving, stored_evidence, unite
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import Candidate
from aggregator.domain import Article, ArticleRecord, Match, Outcome, build_record
from tests.support.factories import edited, story

ANALYZER, POLICY = Analyzer({"xx": HashedModel()}), Policy()
WHOLE = story(3, 40)
HEAD, TAIL = WHOLE[: int(len(WHOLE) * 0.45)], WHOLE[int(len(WHOLE) * 0.55) :]


def record(number: int, text: str, title: str = "") -> ArticleRecord:
    """A stored article of an outlet of its own, whose id names its number."""
    article = Article(id=f"a{number}", title=title, text=text, lang="en", source=f"outlet{number}.example")
    return build_record(article, ANALYZER.analyze(article), number, number)


def candidate(subject: ArticleRecord, stored: ArticleRecord, group: int = 0) -> Candidate:
    """A canonical article, or with ``group`` a duplicate in it."""
    first = group or stored.number
    return Candidate(stored, (f"a{first}", first), stored_evidence(subject, stored))


def duplicate_of(group: int) -> Outcome:
    """The outcome of a duplicate in a group."""
    return Outcome("duplicate", match=Match(f"a{group}", group, f"a{group}", group, 3, 0.9, "overlap"))


def test_groups_are_united_by_a_copy_of_both_canonical_articles() -> None:
    """The duplicate joins the oldest, whichever was the closest and whatever the order of candidates."""
    subject, head, tail = record(9, WHOLE), record(1, HEAD), record(2, TAIL)
    candidates = [candidate(subject, tail), candidate(subject, head)]

    for group in (1, 2):
        outcome, heads = unite(subject, candidates, duplicate_of(group), POLICY)
        assert [each.id for each in heads] == ["a1", "a2"]
        assert outcome.match is not None
        assert (outcome.match.id, outcome.match.canonical_id) == (f"a{group}", "a1")


def test_groups_stay_apart_without_such_a_copy() -> None:
    """A duplicate member shows nothing, nor does a part of a text, another group or another policy."""
    subject, head, tail = record(9, WHOLE), record(1, HEAD), record(2, TAIL)
    in_group = [candidate(subject, head), candidate(subject, tail, group=3)]
    both = [candidate(subject, head), candidate(subject, tail)]
    mixed = record(9, f"{HEAD} {story(5, 40)}")

    for candidates, outcome, policy in (
        (in_group, duplicate_of(1), POLICY),
        (both, duplicate_of(4), POLICY),
        (both, Outcome("related"), POLICY),
        (both, duplicate_of(1), replace(POLICY, name="hamming")),
    ):
        assert unite(subject, candidates, outcome, policy) == (outcome, [])
    few = [candidate(mixed, head), candidate(mixed, tail)]
    assert unite(mixed, few, duplicate_of(1), POLICY) == (duplicate_of(1), [])


@pytest.mark.parametrize(
    ("figures", "titles"),
    [((3, 40), ("", "")), ((41,), ("Knots, part 1", "Knots, part 2"))],
)
def test_two_editions_of_one_template_stay_two_groups(
    figures: tuple[int, ...], titles: tuple[str, str]
) -> None:
    """A shortened copy of the report of one day shares as much with that of another day."""
    subject = replace(record(9, WHOLE, titles[0]), figures=(41, 42))
    own, other = replace(record(1, HEAD), figures=(41,)), replace(record(2, TAIL, titles[1]), figures=figures)

    assert unite(subject, [candidate(subject, own), candidate(subject, other)], duplicate_of(1), POLICY) == (
        duplicate_of(1),
        [],
    )


def test_members_that_are_no_copies_leave_with_their_copies() -> None:
    """In order of arrival: the first of them leads the others."""
    canonical, members = (
        record(1, HEAD),
        [record(4, edited(TAIL, 2)), record(2, TAIL), record(3, HEAD.upper())],
    )

    found = leaving(canonical, members, lambda later, earlier: is_stored_copy(later, earlier, POLICY))

    assert found == {"a2": "a2", "a4": "a2"}


def test_the_headline_decides_on_a_text_that_is_not_the_article() -> None:
    """Without the notice the two are copies; other texts are compared as ever."""
    notice = story(8, 6)
    first, second, third = (record(n, notice, title) for n, title in enumerate(("Owls", "Kites", "Owls"), 1))

    assert is_stored_copy(third, first, POLICY, notice=second)
    assert not is_stored_copy(second, first, POLICY, notice=third)
    assert is_stored_copy(record(5, WHOLE), record(4, WHOLE), POLICY, notice=third)
