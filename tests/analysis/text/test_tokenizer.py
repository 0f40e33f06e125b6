"""Words and index terms: golden values, and properties for any input."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.figures import figures
from aggregator.analysis.text.morphology import SNOWBALL_LANGUAGES, STEM_CACHE_SIZE, _stem, stemmer
from aggregator.analysis.text.normalization import normalize
from aggregator.analysis.text.tokenizer import (
    MAX_WORD_CHARS,
    TOKENIZER_RECIPE,
    shingle_units,
    split_text,
    stop_words,
    terms_of_words,
    tokenize,
    tokenizer_recipe,
    words,
)
from tests.analysis.text.any_text import ANY_TEXT, DIFFICULT_TEXT

LANGS = ["en", "zh", "de", "fr", "ru", "ar", "ja", "ko", "th", "hi", "und", ""]


def from_one_pass(text: str, lang: str) -> tuple[list[str], list[str], list[str]]:
    """Return words, shingle units and all terms of a text from one pass."""
    found = split_text(text, lang)
    terms = terms_of_words(found.units, lang) if found.terms is None else found.terms
    return found.words, found.units, terms


def test_shingle_units_of_chinese_are_all_words_of_the_segmenter() -> None:
    """With stop words, numbers and foreign words; runs outside its dictionary are bigrams."""
    assert shingle_units("港务局的Alpha渡轮在2020年停航，カモメ", "zh") == [
        "港务局", "的", "alpha", "渡轮", "在", "2020", "年", "停航", "カモ", "モメ",
    ]  # fmt: skip
    assert shingle_units("渡轮 Alpha", "ja") == words("渡轮 Alpha", "ja") == ["渡", "轮", "alpha"]


clauses = st.lists(st.text("港务局周二宣布关闭东码头渡轮的在一", min_size=1, max_size=12), max_size=6)


@settings(deadline=None)
@given(clauses, clauses, st.sampled_from("，。！？；\n"))
def test_a_clause_has_the_same_shingle_units_in_any_text(
    first: list[str], second: list[str], mark: str
) -> None:
    """So every shingle of a copy without some sentences, inside the others, is in the original."""
    units = [shingle_units(mark.join(part), "zh") for part in (first, second)]

    assert shingle_units(mark.join(first + second), "zh") == units[0] + units[1]


@settings(deadline=None)
@given(ANY_TEXT | DIFFICULT_TEXT, ANY_TEXT | DIFFICULT_TEXT, st.sampled_from(LANGS))
def test_one_pass_and_line_by_line_results_are_equal(title: str, text: str, lang: str) -> None:
    """The analyzer relies on both for title and text."""
    whole = f"{title}\n{text}"
    expected = words(whole, lang), shingle_units(whole, lang), tokenize(whole, lang)

    assert from_one_pass(whole, lang) == expected
    for of_title, of_text, of_both in zip(
        from_one_pass(title, lang), from_one_pass(text, lang), expected, strict=True
    ):
        assert of_title + of_text == of_both


@settings(deadline=None)
@given(
    st.text(st.sampled_from("aZs1,.'’‘ʼ´`“”„–—•«»€£…\u00a0_-\x00\x1f\x7f \n"), max_size=40),
    st.sampled_from(LANGS),
)
def test_the_ascii_fast_path_gives_the_same_result(text: str, lang: str) -> None:
    """A non-ASCII letter at the end forces the general path; words, terms and figures must be equal."""
    assert words(f"{text} é", lang) == [*words(text, lang), "é"]
    assert tokenize(f"{text} é", lang)[: len(tokenize(text, lang))] == tokenize(text, lang)
    assert figures(f"{text} é") == figures(text)


@settings(deadline=None)
@given(ANY_TEXT | DIFFICULT_TEXT, st.sampled_from(LANGS))
def test_any_text_gives_short_words(text: str, lang: str) -> None:
    """No text raises; results are deterministic, nonempty, encodable and bounded in length."""
    for function in (words, tokenize):
        found = function(text, lang)
        assert found == function(text, lang)
        assert all(found)
        assert all(len(word) <= 2 * MAX_WORD_CHARS for word in found)
        "".join(found).encode("utf-8")


@settings(deadline=None)
@given(ANY_TEXT | DIFFICULT_TEXT, st.sampled_from(LANGS))
def test_words_depend_on_the_normal_form_only(text: str, lang: str) -> None:
    """Texts with one normal form have the same words and terms."""
    assert words(text, lang) == words(normalize(text), lang)
    assert tokenize(text, lang) == tokenize(normalize(text), lang)


def test_english_apostrophes() -> None:
    """Clitics are removed, negations and names are joined, for every kind of apostrophe."""
    for mark in "'’ʼ`＇":
        text = f"Trump{mark}s envoy can{mark}t meet O{mark}Brien; they{mark}ll wait"
        assert words(text, "en") == ["trump", "envoy", "cant", "meet", "obrien", "they", "wait"]


def test_apostrophes_of_other_languages_separate() -> None:
    """French elision separates article and noun, and the article is a stop word."""
    assert words("L’eau aujourd'hui", "fr") == ["l", "eau", "aujourd", "hui"]
    assert tokenize("L’eau de l’école", "fr") == ["eau", "écol"]


def test_hyphens_underscores_and_punctuation_separate() -> None:
    """Only letters, marks and digits are parts of a word."""
    assert words("well-known_file/name—“end”…go", "en") == ["well", "known", "file", "name", "end", "go"]


def test_numbers_in_words_and_terms() -> None:
    """A thousands comma joins, other separators separate; single digits are not index terms."""
    assert words("1,200,300 at 3.5% in 2020,300 on 9:05", "en") == [
        "1200300",
        "at",
        "3",
        "5",
        "in",
        "2020",
        "300",
        "on",
        "9",
        "05",
    ]
    assert tokenize("737 jets, 1,200 seats, 3 crew, G20 2016", "en") == [
        "737",
        "jet",
        "1200",
        "seat",
        "crew",
        "g20",
        "2016",
    ]


def test_stop_words_are_removed_before_stemming() -> None:
    """English function words, also contracted, give no terms; news words of the list are kept."""
    assert tokenize("They’ll say she can't, and it's what the others were doing.", "en") == []
    assert tokenize("Shell said the fire cost a billion", "en") == ["shell", "fire", "cost", "billion"]


def test_chinese_mixed_with_english() -> None:
    """Latin words inside Chinese are terms; Han runs give jieba's words or characters."""
    text = "ＢＢＣ报道，市议会决定关闭旧桥，Apple公司COVID-19基金支付。"

    assert words(text, "zh") == [
        "bbc", *"报道市议会决定关闭旧桥", "apple", *"公司", "covid", "19", *"基金支付",
    ]  # fmt: skip
    assert tokenize(text, "zh") == [
        "bbc", "报道", "市议会", "决定", "关闭", "旧桥", "apple", "公司", "covid", "19", "基金", "支付",
    ]  # fmt: skip


def test_other_unspaced_scripts_give_bigrams() -> None:
    """Han and kana in other languages: one word per character, overlapping bigrams as terms."""
    assert words("東京の天気 news", "ja") == ["東", "京", "の", "天", "気", "news"]
    assert tokenize("東京の天気", "ja") == ["東京", "京の", "の天", "天気"]
    assert tokenize("The sign 天気予報 hung", "en") == ["sign", "天気", "気予", "予報", "hung"]
    assert tokenize("水", "ja") == ["水"]


def test_a_character_with_any_number_of_marks_is_of_bounded_length() -> None:
    """Words, units and terms are kept in caches that count entries."""
    marks = "\u0e31\u0e34\u0e48" * 500
    for lang in ("th", "en", "zh"):
        split = split_text(f"\u0e01{marks}\u0e02{marks} \u0e01\u0e34 \u6c11{marks}\u4e3b", lang)
        assert max(map(len, (*split.words, *split.units, *(split.terms or ())))) <= 2 * MAX_WORD_CHARS


def test_marks_stay_with_their_letters() -> None:
    """Vowel signs do not split Hindi words; Thai characters keep theirs; Korean has words."""
    assert words("हिन्दी में समाचार", "hi") == ["हिन्दी", "में", "समाचार"]
    assert words("ที่นี่", "th") == ["ที่", "นี่"]
    assert words("정부는 오늘 발표했다", "ko") == ["정부는", "오늘", "발표했다"]


@pytest.mark.integration
def test_long_words_are_cut() -> None:
    """A megabyte without a space is one word of 40 characters, in every script that has words."""
    for letter in "aéжह":
        text = letter * 1_000_000
        assert words(text, "en") == [letter * MAX_WORD_CHARS]
        assert [len(token) <= MAX_WORD_CHARS for token in tokenize(text, "de")] == [True]


@pytest.mark.integration
@pytest.mark.parametrize(
    "unit", ["a'", "1,", "1,000", "'s", "ก้", "े", "中の", "é’", ".1", "\u200b", "_-", "가1中", "1.000.", "ẞ́"]
)
def test_results_grow_linearly(unit: str) -> None:
    """10 times the repetitions give at most 10 times the results, and 100,000 repetitions finish in time."""
    small, large = unit * 10_000, unit * 100_000
    for lang in ("en", "zh"):
        assert len(words(large, lang)) <= 10 * len(words(small, lang)) + 10
        assert len(tokenize(large, lang)) <= 10 * len(tokenize(small, lang)) + 20
    assert len(figures(large)) <= 10 * len(figures(small)) + 10
    assert len(normalize(large)) <= 10 * len(normalize(small)) + 10


def test_patterns_do_not_backtrack() -> None:
    """A quantified group that starts with the characters it ends with could backtrack quadratically."""
    word, mark = "x", "\u0301"
    pattern = tokenizer._ANY_PIECE
    for text in (word * 50_000 + mark, (word + mark) * 50_000, mark * 50_000 + word, ("中" + mark) * 50_000):
        assert sum(map(len, pattern.findall(text))) >= len(text) - len(re.match(f"{mark}*", text)[0])  # type: ignore[index]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(sorted(SNOWBALL_LANGUAGES)),
    st.text(st.characters(categories=("L", "Mn")), min_size=1, max_size=12),
)
def test_stems_never_fail_and_are_never_empty(lang: str, word: str) -> None:
    """The stemmers accept any word."""
    stem = stemmer(lang)
    assert stem is not None
    assert stem(word)


def test_arabic_stems_do_not_depend_on_the_word_before() -> None:
    """The Arabic stemmer of nltk keeps state; ``stemmer`` gives one stem per word in any order."""
    text = ["قالوا", "والكتاب", "المدرسة", "كتابات", "يكتبون", "الرئيس", "السياسية"]
    forwards = {word: _stem.__wrapped__("ar", word) for word in text}
    backwards = {word: _stem.__wrapped__("ar", word) for word in reversed(text)}

    assert forwards == backwards


def test_the_stem_cache_is_bounded() -> None:
    """One limit for all languages, and those without rules have no stemmer."""
    for number in range(STEM_CACHE_SIZE // 10):
        for lang in sorted(SNOWBALL_LANGUAGES)[:12]:
            terms_of_words([f"w{number}"], lang)
    assert _stem.cache_info().currsize == STEM_CACHE_SIZE
    assert stemmer("zh") is None
    assert stemmer("no such language") is None


def test_stop_words_are_normalized() -> None:
    """Lists are normalized like texts, so stop words match in any spelling; unknown languages have few."""
    assert {"the", "dont", "they"} <= stop_words("en")
    assert {"的", "了"} <= stop_words("zh")
    assert stop_words("xx") == frozenset("0123456789abcdefghijklmnopqrstuvwxyz")
    for lang in ("en", "de", "fr", "ru", "zh"):
        assert all(word == normalize(word) for word in stop_words(lang))


def test_golden_terms() -> None:
    """If this fails, stored fingerprints are no longer comparable: change TOKENIZER_RECIPE."""
    assert TOKENIZER_RECIPE == "tokens/1 nfkc-casefold jieba-hmm bigrams snowball stopwordsiso"
    golden = {
        "en": (
            "Rescuers in Port-Louis’s harbour saved 1,200 passengers; the ferry’s engines weren’t running.",
            "rescuer port loui harbour save 1200 passeng ferri engin run",
        ),
        "de": ("Die Gemeinderäte beschlossen am 3. Mai größere Straßenbahnen.",
               "gemeinderat beschloss mai gross strassenbahn"),
        "ru": ("Городской совет закрыл старый мост на ремонт.", "городск совет закр мост ремонт"),
        "zh": ("渡轮公司宣布，两千名乘客已全部安全获救。", "渡轮 公司 宣布 2000 名 乘客 安全 获救"),
        "ja": ("フェリーの乗客は無事", "フェ ェリ リー ーの の乗 乗客 客は は無 無事"),
    }  # fmt: skip
    for lang, (text, expected) in golden.items():
        assert " ".join(tokenize(text, lang)) == expected, lang
    assert (tokenizer_recipe("en"), tokenizer_recipe("zh"), tokenizer_recipe("xx")) == (
        TOKENIZER_RECIPE,
        f"{TOKENIZER_RECIPE} numerals/1",
        f"{TOKENIZER_RECIPE} spelling/1",
    )
