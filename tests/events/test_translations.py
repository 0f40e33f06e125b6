"""Agreement of names between profiles of two languages."""

from __future__ import annotations

import pytest

from aggregator.events.translations import latin_agreement, report_the_same, to_latin


def profile(words: str) -> dict[str, float]:
    """Equally heavy terms."""
    return dict.fromkeys(words.split(), len(words.split()) ** -0.5)


def test_names_agree_in_latin_script() -> None:
    """Accents, Cyrillic, and endings of one to three letters; a short common start is not enough."""
    assert to_latin("\u0424\u0443\u043a\u0443\u0441\u0438\u043c\u0430") == "fukusima"
    assert latin_agreement(profile("bundestag"), profile("bundesrat")) == (1.0, 1)
    assert latin_agreement(profile("\u043f\u0430\u0440\u0438\u0436"), profile("parizh")) == (1.0, 1)
    assert latin_agreement(profile("turkei"), profile("turkish"))[1] == 0
    assert latin_agreement(profile("constitution"), profile("constantinople"))[1] == 0
    assert latin_agreement({}, profile("wenlow")) == (0.0, 0)


def test_three_names_make_an_event() -> None:
    """Two do not, nor three that are a small part of what the events are about."""
    english = profile("wenlow ferry thornby miller capsize")

    assert report_the_same(english, profile("wenlow faehre thornby miller kentert"))
    assert not report_the_same(english, profile("wenlow faehre thornby kentert hafen"))
    assert not report_the_same(
        english, {**profile("a1 b2 election"), "wenlow": 0.05, "thornby": 0.05, "miller": 0.05}
    )


def test_names_written_by_sound_in_chinese_do_not_agree() -> None:
    """A known limit: their transliteration is that of the syllables."""
    assert latin_agreement({"\u57c3\u5c14\u591a\u5b89": 1.0}, {"erdogan": 1.0})[1] == 0


@pytest.mark.parametrize("term", ["", "!", "\ud800"])
def test_terms_without_letters_never_agree(term: str) -> None:
    """They have no Latin form."""
    assert latin_agreement({term: 1.0}, {term: 1.0}) == (0.0, 0)
