"""Unlabeled articles through the ingest service: pairs, groups, checks that store nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import (
    DuplicateStream,
    headline_similarity,
    judge_pair,
    shingling_pairs,
)
from aggregator_lab.evaluation.shingling import ShinglingSettings, containment
from tests.support.factories import edited, story

CHINESE = "市政府今天宣布将在河东新建一座步行桥，工程预计明年春天开工，两年内完成，总投资由省财政承担。"


def stream() -> DuplicateStream:
    return DuplicateStream(Analyzer({"xx": HashedModel()}), Policy())


async def test_pairs_are_those_of_the_service() -> None:
    """HTML is shown as extracted; a copy of a copy belongs to the group of the original."""
    texts = [story(1, 20), edited(story(1, 20), 1), edited(edited(story(1, 20), 1), 2), story(2, 20)]
    articles = [Article(f"a{i}", text=text, lang="de") for i, text in enumerate(texts)]
    page = f"<html><body><article><h1>Brücke</h1><p>{story(2, 20)}</p></article></body></html>"
    opened = stream()

    await opened.send(articles)
    await opened.send([Article("a4", html=page, lang="de"), Article("a5", text="...")])

    assert [(pair.article.id, opened.stored[pair.article.id].group) for pair in opened.pairs] == [
        ("a1", "a0"),
        ("a2", "a0"),
        ("a4", "a3"),
    ]
    assert story(2, 20)[:40] in opened.pairs[2].article.text
    assert opened.pairs[0].rule is not None
    assert opened.rejected == 1


async def test_a_check_stores_nothing() -> None:
    """The same copy is checked twice with the same result."""
    opened = stream()
    await opened.send([Article("a0", text=story(1, 20), lang="de", published_at_ms=-5)])
    copy = Article("copy", text=edited(story(1, 20), 1), lang="de")

    answer = await opened.check(copy)
    assert answer is not None
    assert answer.outcome.match is not None
    assert answer.outcome.match.canonical_id == "a0"
    assert not answer.outcome.keep
    assert await opened.check(copy) == answer
    assert await opened.check(Article("empty", text="...")) is None
    assert list(opened.stored) == ["a0"]


async def test_shingling_reads_chinese_by_characters() -> None:
    """Three shared characters are not yet a shared shingle in a language without spaces."""
    opened = stream()
    await opened.send([Article("a", text=CHINESE, lang="zh"), Article("b", text=CHINESE[2:], lang="zh")])
    await opened.send([Article("c", text="步行桥下的渔民昨天在雨中等待渡轮归来。", lang="zh")])

    pairs = list(shingling_pairs(opened, ShinglingSettings(p=64, r=0.01)))

    assert [(pair.article.id, pair.match.id) for pair in pairs] == [("b", "a")]


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
