"""Text normalization and the character classes of words."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given

from aggregator.analysis.text import normalization
from aggregator.analysis.text.morphology import stemmer
from aggregator.analysis.text.normalization import (
    MAX_MARK_RUN,
    ORTHOGRAPHY_VERSION,
    ascii_if_equivalent,
    blanking_table,
    core_headline,
    fold,
    nfkc,
    normalize,
    normalize_letters,
    source_key,
    strip_desk_prefix,
)
from tests.analysis.text.any_text import ANY_TEXT, DIFFICULT_TEXT


def test_normal_form_of_look_alikes() -> None:
    """Full-width letters, curly apostrophes, invisible characters and white space make no difference."""
    assert normalize("\ufeffThe  ＢＢＣ’s\u00ad\u200b re\u00adport\u202e\x00\n") == "the bbc's report"
    assert normalize("Straße ﬁn\ud800 ½") == "strasse fin 1⁄2"
    assert normalize(" \n\u3000") == ""


@given(ANY_TEXT | DIFFICULT_TEXT)
def test_normalization_is_idempotent(text: str) -> None:
    """A normal form is its own normal form, without surrogates, with single spaces only."""
    normalized = normalize(text)
    assert normalize(normalized) == normalized
    assert normalized == " ".join(normalized.split())
    normalized.encode("utf-8")


@pytest.mark.integration
def test_normalization_is_idempotent_on_every_character() -> None:
    """Every code point alone, and after a letter."""
    for start in range(0, sys.maxunicode + 1, 0x1000):
        block = "\n".join(f"{chr(code)} a{chr(code)}" for code in range(start, start + 0x1000))
        normalized = normalize(block)
        assert normalize(normalized) == normalized, hex(start)


def test_unspaced_letters_are_letters() -> None:
    """No punctuation or digit of the scripts without spaces is part of a word."""
    assert not re.search(f"[{normalization.UNSPACED_SCRIPTS}]", "。、・〈〉฿๏๑။៛，")
    assert re.fullmatch(f"[{normalization.COMBINING_MARKS}]+", "\u0301\u0e31\u093f")
    assert not re.search(f"[{normalization.COMBINING_MARKS}]", "aкก中ー_'")


@given(ANY_TEXT | DIFFICULT_TEXT)
def test_folding_keeps_white_space(text: str) -> None:
    """A normal form is the folded text with white space collapsed."""
    assert normalize(text) == " ".join(fold(text).split())
    assert fold(fold(text)) == fold(text)


def test_the_ascii_path_of_folding_equals_the_general_one() -> None:
    """Every ASCII character gives the same alone as next to a letter that forces the general path."""
    for code in range(128):
        assert fold(f"a{chr(code)}b") + "é" == fold(f"a{chr(code)}bé"), hex(code)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain `text`", "plain `text`"),
        ("“The ferry’s late” – again…", " The ferry's late    again "),
        ("10\u00a0€", "10  "),
        ("“Café”", "“Café”"),
        ("渡轮", "渡轮"),
    ],
)
def test_typography_alone_does_not_need_unicode(text: str, expected: str) -> None:
    """One letter beyond ASCII leaves the text unchanged."""
    assert ascii_if_equivalent(text) == expected


def test_a_blanking_table_keeps_matching_bytes_only() -> None:
    """All others become spaces, so that lengths and positions stay."""
    assert b"a-1 B\xe9".translate(blanking_table("[a-z0-9]")) == b"a 1   "


def test_long_runs_of_marks_are_cut() -> None:
    """Sorting them takes quadratic time; this text would take hours."""
    text = "a" + "\u0301\u0327" * 1_000_000 + "b"

    assert len(fold(text)) < 2 * MAX_MARK_RUN
    assert fold(text)[-1] == "b"


@pytest.mark.parametrize("run", [1, MAX_MARK_RUN - 2, MAX_MARK_RUN - 1])
@pytest.mark.parametrize("mark", ["\u0327\u0301", "\u05b0", "\U0001d165"])
def test_shorter_runs_of_marks_are_unchanged(run: int, mark: str) -> None:
    """No script has as many marks after one letter."""
    text = ("x" + (mark * run)[:run]) * 300

    assert nfkc(text) == unicodedata.normalize("NFKC", text)


def test_the_key_of_a_source_is_that_of_its_look_alikes() -> None:
    """Case, width, apostrophes and white space do not distinguish sources; other letters do."""
    assert source_key("  L’Écho  du Port") == source_key("l'écho du port") == source_key("Ｌ'ÉCHO DU PORT")
    assert source_key("Echo") != source_key("Écho") and source_key("") == ""


def test_german_plurals_have_the_stem_of_their_singular() -> None:
    """In either spelling; "ue" after q is not an umlaut."""
    stem = stemmer("de")
    assert stem is not None

    assert {stem(word) for word in ("haus", "häuser", "haeuser")} == {"haus"}
    assert stem("quelle") == "quell"


@given(ANY_TEXT)
def test_one_spelling_of_letters_is_idempotent(text: str) -> None:
    """For any text."""
    assert normalize_letters(normalize_letters(fold(text))) == normalize_letters(fold(text))


def test_golden_spellings_of_index_terms() -> None:
    """If this fails, stored data is no longer comparable: change ORTHOGRAPHY_VERSION."""
    assert ORTHOGRAPHY_VERSION == "spelling/1"
    assert normalize_letters(fold("ё ı ΐ أ ک ș")) == "е i ι ا ك ş"


@pytest.mark.parametrize(
    ("title", "stripped"),
    [
        ("UPDATE 2-Bridge closed", "Bridge closed"),
        ("RPT-WRAPUP 1-Bridge closed", "Bridge closed"),
        ("US STOCKS SNAPSHOT-Shares fall", "Shares fall"),
        ("HARBOUR NEWS 12 - Bridge closed", "Bridge closed"),
        ("Bridge-builder honoured", "Bridge-builder honoured"),
        ("NATO-led force leaves", "NATO-led force leaves"),
        ("UPDATE 2-", "UPDATE 2-"),
        ("WHEAT HARVEST - MINISTRY", "WHEAT HARVEST - MINISTRY"),
        ("", ""),
    ],
)
def test_newswire_prefixes_are_recognized_by_their_shape(title: str, stripped: str) -> None:
    """Capitals, optionally a number, a dash."""
    assert strip_desk_prefix(title) == stripped


@pytest.mark.parametrize(
    ("title", "core"),
    [
        ("Man held in Hull | Gazette", "Man held in Hull"),
        ("Fire in Orlow: two hurt - Site.com", "Fire in Orlow: two hurt"),
        ("UPDATE 2-Kelp Corp cuts jobs \u2013 BBC News", "Kelp Corp cuts jobs"),
        ("Le pont reste fermé | Monde | Le Courrier", "Le pont reste fermé"),
        ("奥洛市公交车祸致五人死亡_新华网", "奥洛市公交车祸致五人死亡"),
        ("奥洛市公交车祸致五人死亡 - 新浪新闻", "奥洛市公交车祸致五人死亡"),
        ("Bridge closed - police", "Bridge closed - police"),
        ("Estmark bombarded \u2013 Marrow", "Estmark bombarded \u2013 Marrow"),
        ("Opinion | The case for a second bridge", "Opinion | The case for a second bridge"),
        ("Harbour 3 - 1 Mills", "Harbour 3 - 1 Mills"),
        ("乔·拜登抵达", "乔·拜登抵达"),
        (" | BBC", "| BBC"),
        ("", ""),
    ],
)
def test_the_core_of_a_headline_names_no_outlet(title: str, core: str) -> None:
    """Speakers, sections in front and scores stay."""
    assert core_headline(title) == core
    assert core_headline(core) == core
