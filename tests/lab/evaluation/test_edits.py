"""Synthetic edits: what each keeps of the text, in languages with and without spaces."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import Article
from aggregator_lab.evaluation.edits import (
    EDITS,
    Editor,
    count_words,
    is_word,
    split_pieces,
    split_sentences,
)
from tests.support.factories import story

CHINESE = (
    "市政府今天宣布将在河东新建一座步行桥。工程预计明年春天开工，两年内完成。居民代表认为这将缩短上学的路程。"
    "轮渡公司表示会调整时刻表。总投资由省财政承担，设计方案下周公布！",
    "气象台预报周末沿海地区有大风。渔民应当及时回港避风，轮渡可能停航。学校将推迟运动会，具体时间另行通知。"
    "消防队提醒居民收好阳台上的花盆。周一风力会明显减弱。",
)


def articles(lang: str) -> list[Article]:
    texts = list(CHINESE) if lang == "zh" else [story(seed, 12) for seed in range(4)]
    return [
        Article(
            f"a{i}", f"Headline {i}", text, source="a.example", url="https://a.example/", published_at_ms=i
        )
        for i, text in enumerate(texts)
    ]


@pytest.mark.parametrize("lang", ["de", "zh", "ja"])
@pytest.mark.parametrize("name", EDITS)
def test_every_edit_changes_the_article(name: str, lang: str) -> None:
    """The copy has another source, no URL, a later date; equal seeds give equal copies."""
    given = articles(lang if lang != "ja" else "zh")
    copy = Editor(given, lang).edit(name, given[0])

    assert copy is not None
    assert (copy.title, copy.text) != (given[0].title, given[0].text)
    assert (copy.source, copy.url, copy.published_at_ms) == ("copy.example", "", 3_600_000)
    assert copy == Editor(given, lang).edit(name, given[0])
    assert (copy.title != given[0].title) == (name == "headline")


@pytest.mark.parametrize("lang", ["de", "zh"])
def test_edits_keep_what_they_should(lang: str) -> None:
    given = articles(lang)
    text = given[0].text
    words = words_of(text, lang)
    copies = {name: edited_text(given, name, lang) for name in EDITS}

    assert text.startswith(copies["cut"])
    assert len(words_of(copies["cut"], lang)) == len(words) // 2
    assert text in copies["padded"]
    added = len(words_of(copies["padded"], lang)) - len(words)
    assert 0.3 * len(words) <= added <= 0.6 * len(words) + 12
    assert sorted(split_sentences(copies["reordered"], lang)) == sorted(split_sentences(text, lang))
    changed = Counter(words) - Counter(words_of(copies["replaced"], lang))
    assert 0 < changed.total() <= round(len(words) * 0.1)
    assert copies["headline"] == text
    kept = words[len(words) // 3 :]
    assert words_of(copies["lead"], lang)[-len(kept) :] == kept
    assert not copies["lead"].startswith(text[:5])


def test_edits_that_do_not_apply_give_none() -> None:
    """Headline and lead need another article to take from."""
    alone = [Article("a", text=story(1, 12))]

    assert Editor(alone, "de").edit("headline", alone[0]) is None
    assert Editor(alone, "de").edit("lead", alone[0]) is None


def test_abbreviations_do_not_end_a_sentence() -> None:
    """A part of under 5 words is joined with the next."""
    text = "The ferry left at noon. Mr. Berg waited on the pier for two hours. He left."

    assert split_sentences(text, "en") == [
        "The ferry left at noon.",
        "Mr. Berg waited on the pier for two hours.",
        "He left.",
    ]


@given(st.text(alphabet="ab .，。桥河\n12", max_size=60), st.sampled_from(["en", "zh", "ja"]))
def test_pieces_join_to_the_text(text: str, lang: str) -> None:
    assert "".join(split_pieces(text, lang)) == text


def words_of(text: str, lang: str) -> list[str]:
    pieces = split_pieces(text, lang)
    found = [piece.strip() for piece in pieces if is_word(piece)]
    assert len(found) == count_words(pieces)
    return found


def edited_text(given: list[Article], name: str, lang: str) -> str:
    copy = Editor(given, lang).edit(name, given[0])
    assert copy is not None
    return copy.text
