"""Made-up boilerplate: enough lines in every language, none twice, seeded."""

from __future__ import annotations

import random

import pytest

from aggregator_lab.evaluation.boilerplate import FRAMES, page_parts


@pytest.mark.parametrize("lang", [*FRAMES, "xx"])
def test_every_page_has_a_thousand_lines(lang: str) -> None:
    navigation, lines = page_parts(lang, random.Random(1))

    assert navigation.count("|") == 11
    assert len(lines) == len(set(lines)) == 1006
    assert page_parts(lang, random.Random(1)) == (navigation, lines)
    assert page_parts(lang, random.Random(2)) != (navigation, lines)


def test_other_languages_get_english_lines() -> None:
    assert page_parts("xx", random.Random(1)) == page_parts("en", random.Random(1))
