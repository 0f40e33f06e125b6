"""What a duplicate adds to the articles that readers have, and whether it is kept."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import MAX_KEPT_MEMBERS, compare_with_readers_versions
from aggregator.domain import Analysis, Article, ArticleRecord, Match, Outcome, build_record
from tests.support.factories import edited, story

ANALYZER, VERIFIED = Analyzer({"xx": HashedModel()}), Policy()
SENTENCES = [f"{story(seed, 1)}" for seed in range(500)]


def text(*sentences: int) -> str:
    """A text of these sentences of ten words each."""
    return " ".join(SENTENCES[n] for n in sentences)


def analysis(own: str) -> Analysis:
    """The analysis of a text without a headline."""
    return ANALYZER.analyze(Article(id="later", text=own, lang="en"))


def record(own: str, number: int = 1) -> ArticleRecord:
    """The stored article with this text."""
    return build_record(Article(id=f"a{number}", text=own, lang="en"), analysis(own), number, number)


def duplicate(rule: str = "overlap") -> Outcome:
    """The outcome of the decision on a duplicate of article 1."""
    match = Match("a1", 1, "a1", 1, 9, 0.9, rule)  # type: ignore[arg-type]
    return Outcome("duplicate", 9, match, keep=False)


def compared(
    later: str,
    canonical: str,
    kept: Sequence[str] = (),
    *,
    outcome: Outcome | None = None,
    policy: Policy = VERIFIED,
    same_outlet: bool = False,
) -> Outcome:
    """The outcome after the comparison with these articles."""
    return compare_with_readers_versions(
        outcome or duplicate(),
        analysis(later),
        record(canonical),
        [record(own, number) for number, own in enumerate(kept, 2)],
        policy,
        same_outlet,
    )


def test_an_exact_copy_adds_nothing() -> None:
    """By its rule, whatever a sample says."""
    found = compared(text(*range(30)), text(*range(30)), outcome=duplicate("exact"))

    assert (found.verdict, found.adds, found.keep, found.fuller) == ("duplicate", 0, False, False)
    other = compared(text(*range(30)), text(*range(100, 130)), outcome=duplicate("exact"), same_outlet=True)
    assert (other.verdict, other.adds, other.follows) == ("duplicate", 0, None)


@pytest.mark.parametrize("new", [0, 2, 4, 10, 15])
@pytest.mark.parametrize("length", [20, 60, 200])
def test_new_sentences_are_what_it_adds(length: int, new: int) -> None:
    """Their share of its words; from a fifth on it is kept."""
    share = new / 20
    added = round(share * length)
    found = compared(text(*range(length - added), *range(300, 300 + added)), text(*range(length)))

    assert found.adds == pytest.approx(share, abs=0.06)
    assert found.adds is not None and found.keep is (found.adds >= VERIFIED.keep_if_adds) and not found.fuller
    assert compared(
        text(*range(length - added), *range(300, 300 + added)),
        text(*range(length)),
        policy=Policy(keep_if_adds=0.9),
    ) == Outcome("duplicate", 9, duplicate().match, adds=found.adds, keep=False)


@pytest.mark.parametrize("changes", [4, 15, 30])
def test_a_few_exchanged_words_are_not_news(changes: int) -> None:
    """Up to a tenth of 300 words."""
    found = compared(edited(story(1), 3, changes), story(1))

    assert found.adds is not None and found.adds <= 0.15
    assert not found.keep


def test_what_kept_members_have_adds_nothing() -> None:
    """The second outlet with the addition is not kept again; a member that was dropped does not count."""
    first, extended = text(*range(20)), text(*range(10, 20), *range(30, 45))
    assert compared(extended, first).keep

    found = compared(extended, first, [edited(extended, 3)])
    assert found.adds is not None and found.adds < 0.15 and not found.keep


def test_members_together_have_it() -> None:
    """One half in each of two."""
    found = compared(text(*range(10, 30)), text(*range(15)), [text(*range(15, 22)), text(*range(22, 40))])

    assert found.adds is not None and found.adds < 0.1


def test_the_first_eight_members_count() -> None:
    """A group may be large."""
    others = [text(*range(300 + 5 * n, 305 + 5 * n)) for n in range(MAX_KEPT_MEMBERS)]
    later, canonical, addition = text(*range(20)), text(*range(10)), text(*range(10, 20))

    assert compared(later, canonical, [*others[1:], addition]).adds == pytest.approx(0, abs=0.05)
    assert compared(later, canonical, [*others, addition]).adds == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("canonical", "later", "fuller"),
    [
        (10, 14, True),  # 30 % more
        (10, 12, False),
        (60, 65, False),
        (60, 67, True),  # 60 words more
        (20, 20, False),
        (20, 12, False),
        (2, 40, True),  # the article after its teaser
    ],
)
def test_a_fuller_version_is_kept(canonical: int, later: int, fuller: bool) -> None:
    """It contains the canonical article and goes on."""
    found = compared(text(*range(later)), text(*range(canonical)))

    assert found.fuller is fuller
    assert found.keep is (fuller or (found.adds or 0) >= VERIFIED.keep_if_adds)


def test_a_longer_text_without_most_of_the_canonical_one_is_not_fuller() -> None:
    """It is kept for what it adds."""
    found = compared(text(*range(10), *range(100, 130)), text(*range(25)))

    assert (found.fuller, found.keep) == (False, True)


@pytest.mark.parametrize("mark", ["updated_figures", "reversed"])
def test_an_update_of_the_same_outlet_is_kept(mark: str) -> None:
    """Though it adds hardly a word; another outlet's may be the older one."""
    own, outcome = (
        story(1),
        replace(duplicate(), updated_figures=mark == "updated_figures", reversed=mark == "reversed"),
    )
    assert compared(edited(own, 2), own, outcome=outcome, same_outlet=True).keep
    assert not compared(edited(own, 2), own, outcome=outcome).keep
    assert not compared(edited(own, 2), own, same_outlet=True).keep


def test_a_version_without_the_canonical_text_follows_it() -> None:
    """Of the same outlet; of another one it is the report with a new beginning."""
    first, last = text(*range(20)), text(*range(15, 40))
    found = compared(last, first, [text(*range(8, 28))], same_outlet=True)

    assert (found.verdict, found.match, found.keep, found.follows) == ("related", None, True, "a1")
    assert found.group(7) == 7
    assert compared(last, first, [text(*range(8, 28))]).verdict == "duplicate"


@pytest.mark.parametrize("step", [1, 3, 5])
def test_a_rolling_page_of_twelve_versions(step: int) -> None:
    """Each drops its last sentences: no version stays with a canonical article of which nothing remains."""
    canonical, groups, kept = 0, [], list[int]()
    versions = [text(*range(100 - step * n, 120 - step * n)) for n in range(12)]
    for n in range(1, 12):
        outcome = compared(versions[n], versions[canonical], [versions[k] for k in kept], same_outlet=True)
        if outcome.match is None:
            assert (outcome.verdict, outcome.follows, outcome.keep) == ("related", "a1", True)
            canonical, kept = n, []
        elif outcome.keep:
            kept.append(n)
        groups.append(canonical)
        assert step * (n - canonical) <= 10  # of 20 sentences half is left

    assert groups[0] == 0  # the next version is one of the first
    assert len({0, *groups}) >= 1 + (11 * step) // 15


@given(st.lists(st.integers(0, 399), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_each_outcome_is_consistent(sentences: list[int], rng: random.Random) -> None:
    """``keep`` follows from ``adds``, ``fuller`` and ``follows``; ``adds`` is a share."""
    others = [rng.sample(range(400), rng.randint(1, 40)) + sentences[: rng.randint(0, 30)] for _ in range(3)]
    same_outlet = rng.random() < 0.5
    found = compared(
        text(*sentences), text(*others[0]), [text(*o) for o in others[1:]], same_outlet=same_outlet
    )

    if found.match is None:
        assert (found.verdict, found.keep, found.follows) == ("related", True, "a1") and same_outlet
        return
    assert found.adds is not None and 0 <= found.adds <= 1
    assert found.fuller <= found.keep
    assert found.keep == (found.fuller or found.adds >= 0.2) or found.adds == 0.2


def test_the_rule_of_the_paper_knows_what_is_added() -> None:
    """A duplicate of one outlet does not follow."""
    found = compared(text(*range(20)), text(*range(5)), policy=Policy(name="hamming"), same_outlet=True)

    assert found.adds is not None and found.adds > 0.6
    assert (found.verdict, found.follows) == ("duplicate", None)
    assert (found.fuller, found.keep) == (True, True)


@pytest.mark.parametrize(
    "title, adds",
    [("Marrowdale quay closed for repairs", 0.0), ("Marrowdale quay closed for repairs, ferries stop", 0.29)],
)
def test_a_bare_headline_adds_the_words_that_the_other_headline_lacks(title: str, adds: float) -> None:
    """Its few shingles tell no share of words."""
    canonical = replace(
        record(text(1)), title="Marrowdale quay closed for repairs | The Gazette", text_words=0
    )
    later = replace(analysis(text(2)), title=title, text_words=0)

    found = compare_with_readers_versions(duplicate(), later, canonical, [], VERIFIED, False)

    assert found.adds == adds and found.keep is (adds >= 0.2)
