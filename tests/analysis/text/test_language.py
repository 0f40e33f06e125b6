"""Which language a text is said to be in, and why."""

from __future__ import annotations

import subprocess
import sys

import pytest
import stopwordsiso
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.analysis.text import language
from aggregator.analysis.text.language import (
    detect_language,
    language_from_script,
    language_from_tag,
    language_group,
)


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
def test_declared_tags(tag: str, expected: str | None):
    """Language tags, locale names and three-letter codes are understood; anything else is ignored."""
    assert language_from_tag(tag) == expected


def test_a_usable_declaration_wins_and_junk_is_ignored():
    """The crawler knows best, unless what it says means nothing."""
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
def test_scripts_that_settle_the_language(text: str, expected: str | None):
    """One language per script where that is so; shared scripts and quotations settle nothing."""
    assert language_from_script(text) == expected


GERMAN = (
    "Der Stadtrat schließt die alte Brücke über den Fluss. Bis zum Frühjahr prüfen Fachleute jeden Pfeiler, und der "
    "Verkehr wird über die neue Straße im Norden geführt."
)
ENGLISH = (
    "The council closes the old bridge over the river. Until spring experts examine every pillar, and traffic that "
    "used it goes along the new road in the north."
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
def test_a_plainly_contradicted_tag_is_not_believed(text: str, declared: str, expected: str):
    """Another script, or enough text in another language, outweighs the tag; little text does not."""
    assert detect_language(text, declared) == expected


def test_plain_english_needs_no_statistics():
    """Prose says so by its commonest words; headlines and quoted titles are left to the statistics."""
    assert language._is_plainly_english(
        "The bridge of the old town has been closed, and the ferry left late."
    )
    assert not language._is_plainly_english("Council closes bridge, ferry returns")
    assert not language._is_plainly_english("Der Film „The Lord of the Rings“ läuft heute, und was er kostet")
    assert not language._is_plainly_english(
        "And og gås gik over marken, of tidligt om morgenen, and efter and"
    )
    # In ASCII more words count, wherever typographic punctuation stands.
    assert language._is_plainly_english("“Some came back,” she wrote — “but not before they could”")
    assert not language._is_plainly_english(
        "“Some came back,” she wrote, “but not before they could” к мосту"
    )


def test_words_of_english_alone_are_those_of_no_other_language():
    """As far as lists of stop words say; in few words no other language may look like English."""
    stop = {lang: stopwordsiso.stopwords(lang) for lang in stopwordsiso.langs()}
    words = set(language.ENGLISH_ONLY_WORDS.split())

    assert words <= stop.pop("en")
    assert not [(lang, found) for lang, listed in stop.items() if (found := words & listed)]


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
def test_statistics_for_shared_scripts(text: str, expected: str):
    """Sentences in scripts that several languages use."""
    assert detect_language(text) == expected


@pytest.mark.parametrize(
    "headline", ["Oil prices fall", "Bridge closed", "FERRY TO RETURN", "Mayor wins vote"]
)
def test_english_headlines_are_english(headline: str):
    """Two or three words say little; English has a head start, so copies are not kept apart."""
    assert detect_language(headline) == "en"


@pytest.mark.parametrize("text", ["", "  \n", "12,345.6 %", "!!! ???", "\ud800\udfff", "\x00"])
def test_nothing_to_go_by(text: str):
    """Texts without letters have no language."""
    assert detect_language(text) == "und"


def test_the_sample_starts_at_the_first_letter():
    """Figures and rules at the top do not use the sample up."""
    assert detect_language("- 12 | 34 -\n" * 1000 + "市议会投票决定关闭旧桥") == "zh"


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=()), max_size=80), st.none() | st.text(max_size=8))
def test_any_text_has_an_answer(text: str, declared: str | None):
    """Always a two-letter code or und, and a group for it."""
    lang = detect_language(text, declared)
    assert lang == "und" or (len(lang) == 2 and lang.isascii() and lang.islower())
    assert language_group(lang) in {"en", "zh", "xx"}


def test_groups():
    """English and Chinese have models of their own, all other languages share one."""
    assert [language_group(lang) for lang in ("en", "zh", "de", "ja", "und", "")] == [
        "en",
        "zh",
        "xx",
        "xx",
        "xx",
        "xx",
    ]


def test_tables_are_consistent():
    """Every code that the tables lead to is an ISO 639-1 code."""
    assert len(language._ISO_639_1) == 181
    assert set(language._CODE_ALIASES.values()) <= language._ISO_639_1
    assert set(language._CANDIDATES) <= language._ISO_639_1
    assert set(language._SCRIPTS) <= language._ISO_639_1


def test_the_model_is_read_only_when_needed():
    """Importing, declared languages and telling scripts load no statistics; loading them warns of nothing."""
    program = """
import sys, warnings
warnings.simplefilter("error")
from aggregator.analysis.text.language import detect_language
assert (detect_language("x", "en"), detect_language("市议会投票")) == ("en", "zh")
assert "py3langid" not in sys.modules
assert detect_language("The council voted to close the bridge") == "en"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
