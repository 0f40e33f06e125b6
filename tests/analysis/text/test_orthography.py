"""Spellings: which texts are one, which are not, and that nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.text.normalization import fold
from aggregator.analysis.text.orthography import ORTHOGRAPHY_VERSION, normalize_letters, normalize_spelling
from aggregator.analysis.text.stemming import stemmer
from aggregator.analysis.text.tokenizer import tokenize, words

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)

TWICE = [
    ("de", "Die Straßen Münchens wären für Fußgänger schöner.", "Die Strassen Muenchens waeren fuer Fussgaenger schoener."),
    ("el", "Ο δήμαρχος της Αθήνας είπε όχι στους οδηγούς", "Ο ΔΗΜΑΡΧΟΣ ΤΗΣ ΑΘΗΝΑΣ ΕΙΠΕ ΟΧΙ ΣΤΟΥΣ ΟΔΗΓΟΥΣ"),
    ("tr", "Diyarbakırlı işçiler istasyonda ıslandı", "DİYARBAKIRLI İŞÇİLER İSTASYONDA ISLANDI"),
    ("ru", "Самолёт ещё не взлетел, сообщил пилот Семёнов", "Самолет еще не взлетел, сообщил пилот Семенов"),
    ("ro", "Primăria Iași închide şcoala şi piaţa", "Primăria Iaşi închide școala și piața"),
    ("ar", "أعلنَ الوزيرُ عن إغلاقِ الميناء", "اعلن الوزيــر عن اغلاق الميناء"),
    ("fa", "شهردار یک پارک تازه ساخت", "شهردار يك پارك تازه ساخت"),
]  # fmt: skip


@pytest.mark.parametrize(("lang", "one", "other"), TWICE)
def test_two_spellings_of_one_text(lang: str, one: str, other: str) -> None:
    """Compared by the same words, and indexed under the same terms."""
    assert fold(one) != fold(other)
    assert normalize_spelling(words(one, lang), lang) == normalize_spelling(words(other, lang), lang)
    assert tokenize(one, lang) == tokenize(other, lang)


def test_the_spaces_of_korean() -> None:
    """One word or two: compared by syllables, and by nothing else than those."""
    apart, together = words("항구를 다시 열 수 있다", "ko"), words("항구를 다시 열수있다", "ko")

    assert apart != together
    assert normalize_spelling(apart, "ko") == normalize_spelling(together, "ko") == list("항구를다시열수있다")


@pytest.mark.parametrize("tag", ["fr", "sv", "und"])
def test_a_wrong_tag_compares_alike(tag: str) -> None:
    """Whatever German is tagged as, its words are compared in one spelling."""
    told = "Über den Brücken wehen Flaggen"

    assert normalize_spelling(words(told, tag), tag) == normalize_spelling(words(told, "de"), "de")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_english_and_chinese_are_left_alone(lang: str) -> None:
    """Their spaces, and the models that were fitted to them, are as they were."""
    told = ["motörhead", "ещё", "naïve"]

    assert normalize_spelling(told, lang) == told


def test_plurals_keep_the_stem_of_their_singular() -> None:
    """German in either spelling; qu is no umlaut."""
    stem = stemmer("de")
    assert stem is not None

    assert {stem(word) for word in ("haus", "häuser", "haeuser")} == {"haus"}
    assert stem("quelle") == "quell"


@given(ANY_TEXT, st.sampled_from(["de", "tr", "el", "ar", "ko", ""]))
def test_one_spelling_is_final(text: str, lang: str) -> None:
    """Any text: once in one spelling, always; and words stay words."""
    once = normalize_spelling(words(text, lang), lang)

    assert normalize_spelling(once, lang) == once
    assert all(word and " " not in word for word in once)
    assert normalize_letters(normalize_letters(fold(text))) == normalize_letters(fold(text))


def test_form_has_not_changed_unnoticed() -> None:
    """Golden: when this fails, what is stored is no longer comparable; bump FORM."""
    assert ORTHOGRAPHY_VERSION == "spelling/1"
    assert normalize_spelling(words("Größe ё ı ΐ أ ک ș", "und"), "und") == [
        "groesse",
        "е",
        "i",
        "ι",
        "ا",
        "ك",
        "ş",
    ]
