"""Orthographic variants: which spellings match, which do not, and that nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.text.normalization import fold
from aggregator.analysis.text.orthography import ORTHOGRAPHY_VERSION, normalize_letters, normalize_spelling
from aggregator.analysis.text.stemming import stemmer
from aggregator.analysis.text.tokenizer import tokenize, words

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)

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


@pytest.mark.parametrize("tag", ["fr", "sv", "und"])
def test_the_spelling_does_not_depend_on_the_tag(tag: str) -> None:
    """Whatever German is tagged as, its words are compared in one spelling."""
    text = "Über den Brücken wehen Flaggen"

    assert normalize_spelling(words(text, tag), tag) == normalize_spelling(words(text, "de"), "de")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_english_and_chinese_are_not_changed(lang: str) -> None:
    """Their spaces and fitted models do not depend on the orthography version."""
    unchanged = ["motörhead", "ещё", "naïve"]

    assert normalize_spelling(unchanged, lang) == unchanged


def test_german_plurals_have_the_stem_of_their_singular() -> None:
    """In either spelling; "ue" after q is not an umlaut."""
    stem = stemmer("de")
    assert stem is not None

    assert {stem(word) for word in ("haus", "häuser", "haeuser")} == {"haus"}
    assert stem("quelle") == "quell"


@given(ANY_TEXT, st.sampled_from(["de", "tr", "el", "ar", "ko", ""]))
def test_normalization_is_idempotent(text: str, lang: str) -> None:
    """For any text, and every result is a nonempty word without spaces."""
    normalized = normalize_spelling(words(text, lang), lang)

    assert normalize_spelling(normalized, lang) == normalized
    assert all(word and " " not in word for word in normalized)
    assert normalize_letters(normalize_letters(fold(text))) == normalize_letters(fold(text))


def test_golden_spellings() -> None:
    """If this fails, stored data is no longer comparable: change ORTHOGRAPHY_VERSION."""
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
