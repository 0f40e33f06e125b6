"""The counter of wrong duplicates: which pairs it counts, by headline, opening and wording."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import containment, headline_similarity, judge_pair
from tests.support.factories import story

LEAD_A, LEAD_B, BACKGROUND = story(1, 20), story(2, 20), story(3, 30)
CHINESE_A = "市政府今天宣布将在河东新建一座步行桥，工程预计明年春天开工，两年内完成。"
CHINESE_B = "气象台预报周末沿海地区有大风，渔民应当及时回港避风，轮渡可能停航。"


def article(text: str, title: str = "") -> Article:
    return Article(id=f"{title} {text}"[:40], title=title, text=text)


BRIDGE = article(f"{LEAD_A} {BACKGROUND}", "Mayor opens bridge")
FERRY = article(f"{LEAD_B} {BACKGROUND}", "Ferry runs aground")
LONG = story(4, 200)


@pytest.mark.parametrize(
    ("a", "b", "wrong"),
    [
        # A shared background section below different leads and headlines.
        (BRIDGE, FERRY, True),
        # The same, but the headlines agree.
        (BRIDGE, replace(FERRY, title="MAYOR  opens the bridge"), False),
        # The opening of one is inside the other.
        (article(LEAD_A, "Mayor opens bridge"), article(f"{LEAD_B} {LEAD_A}", "Ferry runs aground"), False),
        # Nearly everything of the shorter text is in the longer one, except its opening.
        (article(f"{LEAD_A[:400]} {LONG}", "One"), article(f"{LEAD_B} {LONG}", "Another"), False),
        # Without headlines the texts decide alone.
        (replace(BRIDGE, title=""), replace(FERRY, title=""), True),
        (article(LEAD_A), article(LEAD_A), False),
        # Headlines alone.
        (article("", "Mayor opens bridge"), article("", "Mayor opens a bridge"), False),
        (article("", "Mayor opens bridge"), article("", "Storm closes harbour"), True),
    ],
)
def test_pairs_are_counted(a: Article, b: Article, wrong: bool) -> None:
    """Wrong: headlines, openings and wording all differ. The order of the pair does not matter."""
    assert judge_pair(a, b, "de").wrong is wrong
    assert judge_pair(b, a, "de") == judge_pair(a, b, "de")


@pytest.mark.parametrize(
    ("a", "b", "wrong"),
    [
        (CHINESE_A, CHINESE_B, True),
        (CHINESE_A, CHINESE_A + CHINESE_B, False),
        (CHINESE_A[:20] + CHINESE_B, CHINESE_A[:20] + CHINESE_B[:10], False),
        ("代表团", "代表团", True),  # shorter than a shingle: nothing is shared
    ],
)
def test_chinese_pairs_are_counted_by_characters(a: str, b: str, wrong: bool) -> None:
    """Half of the shorter text's 4-character shingles must be in the other text; openings do not count."""
    evidence = judge_pair(article(a, "贵州代表团"), article(b, "大风预报"), "zh")

    assert evidence.wrong is wrong
    assert evidence.opening_share is None
    assert evidence.as_json()["opening_share"] is None


@given(st.text(max_size=40), st.text(max_size=40))
def test_headline_similarity_is_symmetric_and_ignores_case_and_spaces(a: str, b: str) -> None:
    assert headline_similarity(a, b) == headline_similarity(b, a)
    assert 0 <= headline_similarity(a, b) <= 1
    assert headline_similarity(f"  {a} ", a.lower()) == (1.0 if a.split() else 0.0)


@given(st.frozensets(st.tuples(st.text(max_size=2))), st.frozensets(st.tuples(st.text(max_size=2))))
def test_containment_is_symmetric(a: frozenset[tuple[str]], b: frozenset[tuple[str]]) -> None:
    assert containment(a, b) == containment(b, a)
    assert containment(a, a | b) == bool(a)
