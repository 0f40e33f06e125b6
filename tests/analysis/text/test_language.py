"""Language detection: declared tags, scripts, English words and statistics, which are those of py3langid."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest
import stopwordsiso
from hypothesis import given, settings
from hypothesis import strategies as st
from py3langid import langid

from aggregator.analysis.text import language
from aggregator.analysis.text.language import (
    CANDIDATE_LANGUAGES,
    _identifier,
    detect_language,
    language_from_script,
    language_from_tag,
    language_group,
)
from aggregator.analysis.text.lexicon import table
from tests.support.hang_limit import HANG_LIMIT_S


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("en", "en"), ("en-US", "en"), ("EN_us.UTF-8", "en"), ("ENG", "en"), (" en , de", "en"),
        ("zh_Hant", "zh"), ("zh-Hans-CN", "zh"), ("cmn", "zh"), ("zho", "zh"), ("chi", "zh"),
        ("deu", "de"), ("ger", "de"), ("nb", "no"), ("nno", "no"), ("iw", "he"), ("in", "id"),
        ("", None), ("und", None), ("mul", None), ("zxx", None), ("C", None), ("?", None), ("qq", None),
        ("english", None), ("e", None), ("123", None), ("\x00en", None), ("en1", None), ("<script>", None),
    ],
)  # fmt: skip
def test_declared_tags(tag: str, expected: str | None) -> None:
    """Language tags, locale names and three-letter codes are parsed; anything else is ignored."""
    assert language_from_tag(tag) == expected


def test_a_valid_tag_wins_and_an_invalid_one_is_ignored() -> None:
    """The declared language takes precedence over detection."""
    assert detect_language("Der Stadtrat schließt die alte Brücke.", "en-GB") == "en"
    assert detect_language("Der Stadtrat schließt die alte Brücke.", "mul") == "de"
    assert detect_language("", "fr") == "fr"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("市议会投票决定关闭旧桥", "zh"),
        ("東京の古い橋が閉鎖される", "ja"),
        ("ﾌｪﾘｰが港に戻る", "ja"),
        ("시의회가 오래된 다리를 폐쇄한다", "ko"),
        ("สภาเทศบาลปิดสะพานเก่า", "th"),
        ("המועצה סוגרת את הגשר", "he"),
        ("Το συμβούλιο κλείνει τη γέφυρα", "el"),
        ("საბჭო ხურავს ხიდს", "ka"),
        ("Apple 公司在 Cupertino 发布新款 iPhone 手机", "zh"),
        ("日本的“の”字在这座城市的招牌上随处可见，店主们说顾客喜欢", "zh"),
        ("The sign read 旧桥 and nothing else was written on it", None),
        ("Городской совет закрыл старый мост", None),
        ("Plain English", None),
        ("", None),
    ],
)
def test_languages_identified_by_script(text: str, expected: str | None) -> None:
    """Scripts of one language identify it; shared scripts and quotations do not."""
    assert language_from_script(text) == expected


GERMAN = (
    "Der Stadtrat schließt die alte Brücke über den Fluss. Bis zum Frühjahr prüfen Fachleute jeden Pfeiler, "
    "und der Verkehr wird über die neue Straße im Norden geführt."
)
ENGLISH = (
    "The council closes the old bridge over the river. Until spring experts examine every pillar, and "
    "traffic that used it goes along the new road in the north."
)


@pytest.mark.parametrize(
    ("text", "declared", "expected"),
    [
        (GERMAN, "en", "de"),
        (GERMAN, "zh", "de"),
        (GERMAN, "ja", "de"),
        (GERMAN, "fr", "fr"),
        (GERMAN[:60], "en", "en"),
        (ENGLISH, "de", "en"),
        (ENGLISH, "zh", "en"),
        (ENGLISH[:60], "de", "de"),
        ("市议会投票决定关闭旧桥", "en", "zh"),
        ("市議會投票", "ja", "ja"),
        ("東京の古い橋が閉鎖される", "zh", "ja"),
        ("시의회가 오래된 다리를 폐쇄한다", "en", "ko"),
        ("Городской совет во вторник проголосовал за закрытие старого моста. " * 2, "en", "ru"),
        ("די שטאָט פֿאַרמאַכט די אַלטע בריק", "yi", "yi"),
        ("", "zh", "zh"),
        ("737", "zh", "zh"),
    ],
)
def test_a_contradicted_tag_is_ignored(text: str, declared: str, expected: str) -> None:
    """Another script, or enough text in another language, outweighs the tag; a short text does not."""
    assert detect_language(text, declared) == expected


def test_plain_english_needs_no_statistics() -> None:
    """Prose is recognized by frequent words; headlines and quoted titles are left to the statistics."""
    assert language._is_plainly_english(
        "The bridge of the old town has been closed, and the ferry left late."
    )
    assert not language._is_plainly_english("Council closes bridge, ferry returns")
    assert not language._is_plainly_english("Der Film „The Lord of the Rings“ läuft heute, und was er kostet")
    assert not language._is_plainly_english(
        "And og gås gik over marken, of tidligt om morgenen, and efter and"
    )
    # In ASCII more words count, wherever the typographic punctuation is.
    assert language._is_plainly_english("“Some came back,” she wrote — “but not before they could”")
    assert not language._is_plainly_english(
        "“Some came back,” she wrote, “but not before they could” к мосту"
    )


def test_english_only_words_are_not_words_of_other_languages() -> None:
    """According to stop word lists; a short text in another language must not look like English."""
    stop = {lang: stopwordsiso.stopwords(lang) for lang in stopwordsiso.langs()}
    words = set(table("marker", "en"))

    assert words <= stop.pop("en")
    assert not [(lang, common) for lang, listed in stop.items() if (common := words & listed)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The council voted on Tuesday to close the old bridge for repairs.", "en"),
        ("Le conseil municipal a voté mardi la fermeture du vieux pont.", "fr"),
        ("Der Gemeinderat hat am Dienstag beschlossen, die alte Brücke zu schließen.", "de"),
        ("El ayuntamiento votó el martes el cierre del viejo puente.", "es"),
        ("Городской совет во вторник проголосовал за закрытие старого моста.", "ru"),
        ("Міська рада у вівторок проголосувала за закриття старого мосту.", "uk"),
        ("صوت المجلس البلدي يوم الثلاثاء على إغلاق الجسر القديم للإصلاح", "ar"),
        ("नगर परिषद ने मंगलवार को पुराने पुल को बंद करने के लिए मतदान किया", "hi"),
        ("ＴＨＥ ＣＯＵＮＣＩＬ ＶＯＴＥＤ ＴＯ ＣＬＯＳＥ ＴＨＥ ＢＲＩＤＧＥ", "en"),
    ],
)
def test_statistics_for_shared_scripts(text: str, expected: str) -> None:
    """Sentences in scripts that several languages use."""
    assert detect_language(text) == expected


@pytest.mark.parametrize(
    "headline", ["Oil prices fall", "Bridge closed", "FERRY TO RETURN", "Mayor wins vote"]
)
def test_english_headlines_are_english(headline: str) -> None:
    """Two or three words are little evidence; English has a bonus, so that duplicates share a space."""
    assert detect_language(headline) == "en"


@pytest.mark.parametrize("text", ["", "  \n", "12,345.6 %", "!!! ???", "\ud800\udfff", "\x00"])
def test_texts_without_letters_are_undetermined(text: str) -> None:
    """Texts without letters have no language."""
    assert detect_language(text) == "und"


def test_the_sample_starts_at_the_first_letter() -> None:
    """Figures and lines at the start do not use up the sample."""
    assert detect_language("- 12 | 34 -\n" * 1000 + "市议会投票决定关闭旧桥") == "zh"


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=()), max_size=80), st.none() | st.text(max_size=8))
def test_any_text_has_a_language_and_a_group(text: str, declared: str | None) -> None:
    """The result is a two-letter code or und."""
    lang = detect_language(text, declared)
    assert lang == "und" or (len(lang) == 2 and lang.isascii() and lang.islower())
    assert language_group(lang) in {"en", "ru", "zh", "xx"}


def test_language_groups() -> None:
    """English and Chinese have models, all other languages share one group."""
    assert [language_group(lang) for lang in ("en", "zh", "de", "ja", "und", "")] == [
        "en",
        "zh",
        "xx",
        "xx",
        "xx",
        "xx",
    ]


def test_tables_are_consistent() -> None:
    """Every code in the tables is an ISO 639-1 code."""
    assert len(language._ISO_639_1) == 181
    assert set(language._CODE_ALIASES.values()) <= language._ISO_639_1
    assert set(language.CANDIDATE_LANGUAGES) <= language._ISO_639_1
    assert set(language._SCRIPTS) <= language._ISO_639_1


@pytest.mark.integration
def test_the_statistics_are_loaded_only_when_needed() -> None:
    """Declared languages and scripts do not load them; loading gives no warning."""
    program = """
import warnings
warnings.simplefilter("error")
from aggregator.analysis.text import language
assert (language.detect_language("x", "en"), language.detect_language("市议会投票")) == ("en", "zh")
assert not language._identifier.cache_info().currsize
assert language.detect_language("The council voted to close the bridge") == "en"
assert language._identifier.cache_info().currsize
"""
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False
    )

    assert (completed.returncode, completed.stderr) == (0, "")


LANGUAGE_TEXTS = (
    "The council of the town voted on a new bridge after months of talks.",
    "Die Fähre nach Estmark fährt am Montag wieder, sagte der Bürgermeister.",
    "DIE FÄHRE NACH ESTMARK FÄHRT AM MONTAG WIEDER.",
    "El ayuntamiento votó ayer por un nuevo puente sobre el río.",
    "Городской совет проголосовал за строительство нового моста.",
    "Градско веће је гласало за изградњу новог моста.",
    "Gradsko veće je glasalo za izgradnju novog mosta.",
    "市议会星期三投票决定修建一座新的大桥。",
    "وافق مجلس المدينة على بناء جسر جديد",
    "नगर परिषद ने नए पुल के लिए मतदान किया",
    "The ferry\0again \ud800 1,200 times. " * 40,
    "Brücke",
)


@cache
def reference() -> langid.LanguageIdentifier:
    """py3langid, restricted to the same languages."""
    model = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
    model.set_languages(CANDIDATE_LANGUAGES)
    return model


@pytest.mark.integration
@pytest.mark.parametrize("text", LANGUAGE_TEXTS)
def test_scores_are_those_of_py3langid(text: str) -> None:
    """For each language, up to the precision of its sums (float32)."""
    assert _identifier().scores(text) == pytest.approx(dict(reference().rank(text)), rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("text", ["", "\0", "q"])
def test_all_scores_are_equal_without_a_known_ngram(text: str) -> None:
    """So nothing is taken for a language."""
    scores = _identifier().scores(text)
    assert scores.keys() == set(CANDIDATE_LANGUAGES)
    assert len(set(scores.values())) == 1
