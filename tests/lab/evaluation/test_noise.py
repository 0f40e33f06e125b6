"""Noise of printed newspapers: abridged, joined and mixed-up texts, equal in every run."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from aggregator.domain import Article
from aggregator_lab.evaluation.noise import (
    CLEAN,
    LINE_WORDS,
    NOISE_LEVELS,
    SINGLE_KINDS,
    abridge,
    add_noise,
    join_passage,
    mix_columns,
)
from tests.support.factories import story

SENTENCES = [f"Sentence {at} reports what the council of town {at} decided." for at in range(20)]
CHINESE = "".join(f"第{at}号决定说市政府今天在会议上通过了新的预算。" for at in range(12))


def test_an_abridged_text_keeps_its_lead_and_the_order_and_loses_late_sentences() -> None:
    """Between 30 and 80 % of the sentences after the first remain; of 200 draws, more from the first half."""
    kept: Counter[int] = Counter()
    for seed in range(200):
        sentences = abridge(" ".join(SENTENCES), "en", random.Random(seed)).split(". ")
        numbers = [int(sentence.split()[1]) for sentence in sentences]
        assert numbers[0] == 0
        assert numbers == sorted(numbers)
        assert 1 + round(0.3 * 19) <= len(numbers) <= 1 + round(0.8 * 19)
        kept.update(numbers)

    assert sum(kept[at] for at in range(1, 10)) > 1.3 * sum(kept[at] for at in range(11, 20))


@pytest.mark.parametrize("text", ["", "One sentence only"])
def test_a_text_of_one_sentence_is_not_abridged(text: str) -> None:
    assert abridge(text, "en", random.Random(1)) == text


def test_a_joined_text_has_a_passage_of_the_other_at_one_end() -> None:
    """20 to 60 % as long, in one piece; both ends occur."""
    text, other = story(1, 20), story(2, 40)
    size = len(text.split())
    at_end = 0
    for seed in range(20):
        joined = join_passage(text, other, "en", random.Random(seed))
        assert text in joined
        passage = joined.replace(text, "").strip()
        assert passage in other
        assert 0.2 * size - 1 <= len(passage.split()) <= 0.6 * size + 1
        at_end += joined.startswith(text)

    assert 0 < at_end < 20
    assert join_passage(text, text, "en", random.Random(1)) == text
    assert join_passage(text, "", "en", random.Random(1)).strip() == text


def test_mixed_columns_keep_all_words_and_break_the_order_between_lines() -> None:
    words = [f"w{at}" for at in range(120)]
    mixed = mix_columns(" ".join(words), "en", random.Random(3)).split()

    assert sorted(mixed) == sorted(words)
    assert mixed != words
    lines = {tuple(words[at : at + LINE_WORDS]) for at in range(0, 120, LINE_WORDS)}
    assert {tuple(mixed[at : at + LINE_WORDS]) for at in range(0, 120, LINE_WORDS)} == lines


@pytest.mark.parametrize("text", ["", "a few words only"])
def test_a_text_of_one_line_has_no_columns(text: str) -> None:
    assert mix_columns(text, "en", random.Random(3)) == text


def test_chinese_gains_no_spaces() -> None:
    """Its sentences and words are joined as they were."""
    for seed in range(5):
        assert " " not in abridge(CHINESE, "zh", random.Random(seed))
        mixed = mix_columns(CHINESE, "zh", random.Random(seed))
        assert sorted(mixed) == sorted(CHINESE)


def test_levels_are_seeded_by_the_article_and_clean_changes_nothing() -> None:
    articles = [Article(id=str(at), title="", text=story(at, 20)) for at in range(30)]
    langs = ["en"] * len(articles)

    assert add_noise(articles, CLEAN, langs) == articles
    for level in (*NOISE_LEVELS, *SINGLE_KINDS):
        noisy = add_noise(articles, level, langs)
        assert noisy == add_noise(articles, level, langs)
        changed = sum(a.text != b.text for a, b in zip(articles, noisy, strict=True))
        # Every text has some OCR errors; the other kinds are made in half of them.
        assert changed == 30 if level.confusion_rate else 8 <= changed <= 22
