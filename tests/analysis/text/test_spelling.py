"""The spelling in which texts are compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.text.normalization import fold
from aggregator.analysis.text.spelling import (
    compared_form,
    is_part_of_figure,
    join_figures,
    normalize_spelling,
)
from aggregator.analysis.text.tokenizer import tokenize, words
from tests.analysis.text.any_text import ANY_TEXT


def compared(text: str, lang: str) -> list[str]:
    """The words of a text in compared spelling."""
    return normalize_spelling(words(text, lang), lang)


TWO_SPELLINGS = [
    ("de", "Die Straßen Münchens wären für Fußgänger schöner.",
     "Die Strassen Muenchens waeren fuer Fussgaenger schoener."),
    ("el", "Ο δήμαρχος της Αθήνας είπε όχι στους οδηγούς", "Ο ΔΗΜΑΡΧΟΣ ΤΗΣ ΑΘΗΝΑΣ ΕΙΠΕ ΟΧΙ ΣΤΟΥΣ ΟΔΗΓΟΥΣ"),
    ("tr", "Diyarbakırlı işçiler istasyonda ıslandı", "DİYARBAKIRLI İŞÇİLER İSTASYONDA ISLANDI"),
    ("ru", "Самолёт ещё не взлетел, сообщил пилот Семёнов", "Самолет еще не взлетел, сообщил пилот Семенов"),
    ("ro", "Primăria Iași închide şcoala şi piaţa", "Primăria Iaşi închide școala și piața"),
    ("ar", "أعلنَ الوزيرُ عن إغلاقِ الميناء", "اعلن الوزيــر عن اغلاق الميناء"),
    ("fa", "شهردار یک پارک تازه ساخت", "شهردار يك پارك تازه ساخت"),
]  # fmt: skip


@pytest.mark.parametrize(("lang", "one", "other"), TWO_SPELLINGS)
def test_two_spellings_give_equal_words_and_terms(lang: str, one: str, other: str) -> None:
    """They differ as folded text, but are compared by the same words and indexed under the same terms."""
    assert fold(one) != fold(other)
    assert normalize_spelling(words(one, lang), lang) == normalize_spelling(words(other, lang), lang)
    assert tokenize(one, lang) == tokenize(other, lang)


def test_korean_spacing_is_ignored() -> None:
    """A phrase written as one word or as two is compared by its syllables."""
    spaced, unspaced = words("항구를 다시 열 수 있다", "ko"), words("항구를 다시 열수있다", "ko")

    assert spaced != unspaced
    assert (
        normalize_spelling(spaced, "ko") == normalize_spelling(unspaced, "ko") == list("항구를다시열수있다")
    )


@given(ANY_TEXT, st.sampled_from(["de", "en", "es", "tr", "el", "ar", "ko", "sr", ""]))
def test_a_compared_word_is_a_word(text: str, lang: str) -> None:
    """For any text: not empty, without spaces; the spelling of one word does not depend on its neighbors."""
    found = compared(text, lang)

    assert all(word and " " not in word for word in found)
    forms = {word: compared_form(word, lang) for word in words(text, lang) if lang != "ko"}
    plain = [word for word, form in forms.items() if not is_part_of_figure(word, lang, form)]
    assert [forms[word] for word in plain] == [
        form for word in plain for form in normalize_spelling([word], lang)
    ]


def test_golden_spellings() -> None:
    """If this fails, stored data is no longer comparable: change ANALYSIS_RECIPE."""
    assert compared("Größe ё ı ΐ أ ک ș", "und") == ["grosse", "е", "i", "ι", "ا", "ك", "s"]
    assert compared("Größe Łódź Đorđe", "pl") == ["grosse", "lodz", "dorde"]


@pytest.mark.parametrize(
    ("lang", "one", "other"),
    [
        ("en", "Twelve people, twenty-five dogs, five hundred cats", "12 people, 25 dogs, 500 cats"),
        ("en", "$1.2m, 5 percent and 7 per cent of two million", "$1,200,000, 5% and 7% of 2,000,000"),
        ("en", "a U.S. envoy of the U.K. at 5 p.m.", "a US envoy of the UK at 5 pm"),
        ("en", "Marrow & Sons", "Marrow and Sons"),
        ("en", "M\u043escow and Ki\u0435v", "Moscow and Kiev"),
        ("ru", "Mo\u0441\u043a\u0432a", "Москва"),
        ("de", "fünfundzwanzig von zwölf Häusern", "25 von 12 Haeusern"),
        ("de", "1,2 Millionen", "1.200.000"),
        ("en", "Müller met Mueller", "Muller met Müller"),
        ("es", "cinco millones y un millón", "5.000.000 y un millon"),
        ("fr", "quatre-vingt-douze et dix-sept puis deux cents", "92 et 17 puis 200"),
        ("fr", "ÉTÉ À L'ÉCOLE", "ete a l'ecole"),
        ("es", "treinta y cinco años con dos mil", "35 años con 2000"),
        ("it", "ventotto o ventidue", "28 o 22"),
        ("nl", "tweeëntwintig", "22"),
        ("ru", "двадцать пять и пятьсот", "25 и 500"),
        ("id", "dua puluh lima dan dua belas", "25 dan 12"),
        ("tr", "on iki İSTANBUL Erdoğan", "12 istanbul Erdogan"),
        ("sr", "Београд љубав двадесет пет", "Beograd ljubav 25"),
        ("he", "שָׁלוֹם", "שלום"),
        ("hi", "सम्बन्ध क़ानून", "संबंध कानून"),
        ("vi", "Hà Nội", "Ha Noi"),
        ("ar", "٥ مدينة", "5 مدينه"),
    ],
)
def test_house_styles_are_compared_in_one_spelling(lang: str, one: str, other: str) -> None:
    """Number words, powers of ten, abbreviations, accents, look-alikes, alphabets."""
    assert compared(one, lang) == compared(other, lang)


@pytest.mark.parametrize(
    ("lang", "one", "other"),
    [
        ("en", "five percent", "five dollars"),
        ("en", "one left", "1 left"),
        ("en", "twenty, five hundred", "25 hundred and"),
        ("de", "ein Haus", "1 Haus"),
    ],
)
def test_other_words_stay_apart(lang: str, one: str, other: str) -> None:
    """Units behind number words, and "one", which is seldom a number."""
    assert compared(one, lang) != compared(other, lang)


def test_a_run_of_figures_is_joined() -> None:
    """Units and signs next to digits are left to ``figures``."""
    assert join_figures(["minus", "5", "percent"], "en") == ["5"]
    assert join_figures(["1", "200", "000", "dollars"], "en") == ["1200000"]
    assert join_figures(["usd", "3", "5", "million"], "en") == ["3500000"]
