"""Our reading of online shingling: five kinds of articles, and the grid of settings.

The kinds are those of Table 1 of the publication as far as they are on record here; the texts are ours.
"""

from __future__ import annotations

import pytest

from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.shingling import (
    Decision,
    ShinglingSettings,
    decide_in_order,
    evaluate,
    format_table,
    sample_texts,
    settings_grid,
)
from aggregator_lab.labeled import LabeledArticle
from tests.support.factories import edited, story

ORIGINAL = (
    "The swing bridge at Larkmouth will stay open for ships until Friday because a bearing has cracked. "
    "Engineer Petra Lund said that divers found the damage on Monday during a yearly check. Cars must take "
    "the upper crossing, which adds twenty minutes, and buses stop on both banks. The harbour office hopes "
    "to lift the new bearing into place at low tide."
)
EDITED = ORIGINAL.replace("until Friday", "until Saturday").replace("hopes to", "plans to")
EXCERPT = (
    "Ferries will run late into the evening in Larkmouth, the council decided. Cars must take the upper "
    "crossing, while cyclists may board for nothing. A band from the fishermen's school plays on the first "
    "boat, and the mayor will hand out warm soup to everybody who stands in the queue before sunrise."
)
COPY_OF_COPY = EDITED.replace("Engineer Petra Lund said", "The chief engineer said")
UNRELATED = (
    "A gardener in Upper Wenlow has grown a pumpkin heavier than her own piano. It took four neighbours and "
    "a borrowed trailer to bring it to the scales, where the crowd guessed its weight and mostly guessed too "
    "low. The seeds will be shared among the pupils of the village school next spring."
)
TEXTS = {
    "original": ORIGINAL,
    "edited": EDITED,
    "excerpt": EXCERPT,
    "copy of copy": COPY_OF_COPY,
    "unrelated": UNRELATED,
}


def decisions(setting: ShinglingSettings) -> dict[str, Decision]:
    """Decisions about the five articles, by id."""
    samples = sample_texts(TEXTS, setting.n, setting.k, setting.f)
    return {decision.id: decision for decision in decide_in_order(list(TEXTS), samples, setting)}


def test_five_kinds_of_articles() -> None:
    """Original, edited copy, overlap below the threshold, copy of a copy, unrelated."""
    by_id = decisions(ShinglingSettings(n=3, p=64, t=1, r=0.2))

    assert [decision.original for decision in by_id.values()] == [None, "original", None, "edited", None]
    assert by_id["original"].candidates == 0
    assert by_id["edited"].overlap > 0.8
    assert by_id["excerpt"].candidates == 2
    assert by_id["copy of copy"].candidates == 3
    assert by_id["unrelated"].candidates == 0


@pytest.mark.parametrize(
    ("setting", "called"),
    [
        (ShinglingSettings(p=64, r=0.05), ["edited", "excerpt", "copy of copy"]),
        (ShinglingSettings(p=64, r=0.99), []),
        (ShinglingSettings(p=64, t=60), []),
        (ShinglingSettings(n=5, p=64, r=0.85), ["copy of copy"]),
    ],
)
def test_settings_move_precision_and_recall(setting: ShinglingSettings, called: list[str]) -> None:
    """A lower overlap calls the excerpt a copy too; a higher overlap, more collisions or words find less."""
    assert [id_ for id_, decision in decisions(setting).items() if decision.original] == called


@pytest.mark.parametrize(
    ("n", "r", "message"),
    [([6], [0.2], "at most 5 words"), ([3], [1.2], "at most 1"), ([3], [0.0], "above 0")],
)
def test_values_out_of_range_are_refused(n: list[int], r: list[float], message: str) -> None:
    """The error names the limit."""
    with pytest.raises(InvalidInput, match=message):
        settings_grid(n, [1], [8], [1], [1.0], r)


def test_leading_share() -> None:
    """Half of the text has half of the shingles."""
    whole, half = (sample_texts(TEXTS, 3, 1, f).by_id["original"] for f in (1.0, 0.5))

    assert half < whole
    assert len(half) == pytest.approx(len(whole) / 2, abs=2)


def test_sampling_keeps_a_share() -> None:
    """One shingle in eight is sampled, the same ones in every article."""
    texts = {"a": story(1, 200), "b": story(1, 100)}
    whole, sampled = sample_texts(texts, 3, 1, 1.0), sample_texts(texts, 3, 8, 1.0)

    assert len(sampled.by_id["a"]) == pytest.approx(len(whole.by_id["a"]) / 8, rel=0.3)
    assert sampled.overlap("a", "b") == whole.overlap("a", "b") == 1.0


def test_grid_has_every_combination() -> None:
    """One line per setting and labeling; no match among edited stories is false."""
    gold = [
        LabeledArticle(Article(id=f"{s}-{c}", text=edited(story(s), c, changes=c + 1)), f"story {s}")
        for s in range(6)
        for c in range(3)
    ]
    settings = settings_grid([2, 3], [1, 4], [16], [1, 20], [1.0], [0.2, 0.5])
    lines = evaluate(gold, settings, orders=2)

    assert len(settings) == 8  # 20 collisions of 16 shingles are impossible
    assert [line.setting for line in lines] == settings
    assert all(line.precision == 1.0 and line.f1_lowest <= line.f1 for line in lines)
    assert max(line.f1 for line in lines) == 1.0
    assert len(format_table(lines).splitlines()) == 2 + len(settings)
    assert set(lines[0].as_json()) >= {"n", "k", "p", "t", "f", "r", "f1"}


def test_a_match_with_the_background_is_false() -> None:
    """The first of three stories is in the background, so one of its two copies matches it."""
    gold = [
        LabeledArticle(Article(id=f"{s}-{c}", text=edited(story(s), c)), f"story {s}")
        for s in range(3)
        for c in range(2)
    ]
    background = [Article(id="before", text=edited(story(0), 9)), Article(id="other", text=story(77))]
    (line,) = evaluate(gold, [ShinglingSettings()], background=background)

    assert line.precision == pytest.approx(3 / 4)
    assert line.recall == 1.0
