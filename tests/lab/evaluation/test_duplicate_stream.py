"""Unlabeled articles through the ingest service: pairs, groups, checks that store nothing."""

from __future__ import annotations

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import DuplicateStream, shingling_pairs
from aggregator_lab.evaluation.shingling import ShinglingSettings
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

    assert await opened.group_of_match(copy) == "a0"
    assert await opened.group_of_match(copy) == "a0"
    assert await opened.group_of_match(Article("other", text=story(2, 20), lang="de")) is None
    assert list(opened.stored) == ["a0"]


async def test_shingling_reads_chinese_by_characters() -> None:
    """Three shared characters are not yet a shared shingle in a language without spaces."""
    opened = stream()
    await opened.send([Article("a", text=CHINESE, lang="zh"), Article("b", text=CHINESE[2:], lang="zh")])
    await opened.send([Article("c", text="步行桥下的渔民昨天在雨中等待渡轮归来。", lang="zh")])

    pairs = list(shingling_pairs(opened, ShinglingSettings(p=64, r=0.01)))

    assert [(pair.article.id, pair.match.id) for pair in pairs] == [("b", "a")]
