"""Page for judging pairs: sample, escaping, no other resources."""

from __future__ import annotations

import re

from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import DuplicatePair, judge_pair
from aggregator_lab.evaluation.judgments import render_page, sample_pairs
from tests.support.factories import story


def pair(id_: str, text: str, lang: str = "de", days: float | None = None) -> DuplicatePair:
    a = Article(
        id_, "<b>Brücke</b>", f"{text} 12", published_at_ms=None if days is None else int(days * 864e5)
    )
    b = Article(f"{id_} of", "", f"{text} 15", source="b.example", published_at_ms=0)
    return DuplicatePair(a, b, lang, judge_pair(a, b, lang))


def test_the_sample_is_seeded() -> None:
    pairs = [pair(str(i), story(i, 3)) for i in range(20)]

    assert sample_pairs(pairs, 5) == sample_pairs(pairs, 5) != sample_pairs(pairs, 5, seed=1)
    assert len(sample_pairs(pairs, 50)) == 20


def test_pairs_are_shown_side_by_side() -> None:
    """Shared wording and differing figures are marked; markup of a headline is text."""
    page = render_page([pair("a", story(1, 5), days=40), pair("b", "桥" * 30, "zh", days=0.2)], 7, "policy x")

    assert "2 of 7 duplicates by policy x" in page
    assert page.count('data-judgment="') == 3  # in the style sheet: no pair is judged
    assert "&lt;b&gt;Brücke&lt;/b&gt;" in page
    assert "No headline" in page
    assert page.count("<mark") >= 4
    assert '<b class="figure">15</b>' in page
    assert "40 days apart" in page
    assert "5 h apart" in page
    assert "33 characters" in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)
