"""Analyzer: what is computed from one article."""

import itertools
import json
import pickle
import random
import re
import subprocess
import sys

import pytest
import xxhash
from opencc import OpenCC

from aggregator.analysis.analyzer import (
    ANALYSIS_RECIPE,
    MAX_TEXT_CHARS,
    SHORT_BELOW_WORDS,
    Analyzer,
    _check_length,
    group_of,
    shingle_width,
    space_name,
)
from aggregator.analysis.features import HashedModel
from aggregator.analysis.shingles import build_sketch, estimate_overlap
from aggregator.analysis.term_profile import story_terms
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.figures import figure_hash, figures
from aggregator.domain import HEADLINE_MARK, MAX_TEXT_WORDS, TERM_WEIGHT_STEPS, Article, Sketch
from aggregator.errors import InputTooLarge, NoText
from tests.analysis.bulletins import bulletins
from tests.support.factories import story
from tests.support.hang_limit import HANG_LIMIT_S

ANALYZER = Analyzer({"xx": HashedModel()})
CHINESE_STORY = (
    "港务局周二宣布关闭东码头。潜水员在最老的桥墩上发现四十处裂缝，渡轮从星期三起改在木材码头停靠。"
    "“我们不能再等一个冬天了”，局长李海峰对记者说。渔民抱怨，迁往北港池后每次出海都要多花二十分钟。"
    "省政府发言人表示，应急资金可以在几天之内发放；检测预计需要三周时间。"
)
GOLDEN = [615266297, 748076680, 1667423189, 2888421845]
HTML = (
    "<html><head><title>Harbour wall repaired</title></head><body><nav>Home News Sport</nav>"
    "<article><h1>Harbour wall repaired</h1>"
    "<p>Masons in Quellport finished the harbour wall on Tuesday after two winters of work.</p>"
    "<p>The last stone was set by the oldest fisherman of the town, who said that he had seen "
    "three walls fall.</p>"
    "<p>The council paid for the stones with a loan that runs for twelve years.</p></article></body></html>"
)


def test_the_name_of_a_space_begins_with_its_language_group() -> None:
    """``group_of`` reads it back."""
    assert [group_of(space) for space in ANALYZER.spaces] == ["xx"]


def test_html_becomes_its_main_text() -> None:
    """Title and text come from the page, without its navigation."""
    found = ANALYZER.analyze(Article(id="a", html=HTML))

    assert found.title == "Harbour wall repaired"
    assert "oldest fisherman" in found.text
    assert "Sport" not in found.text


@pytest.mark.parametrize("heading", ["<h1>{}</h1>", "<p><b>{}</b></p>", "<h1>\n {} </h1>"])
@pytest.mark.parametrize("title", ["Ferry sinks off Veldmoor", "Паром затонул у Велдмора", "渡轮在凌晨沉没"])
def test_the_headline_of_a_page_is_no_part_of_its_text(heading: str, title: str) -> None:
    """Notices of an outlet are known by headlines that do not occur in them."""
    text = "Nobody was hurt when it went down at dawn, said the harbour master of the island.\nIt was empty."
    paragraphs = "".join(f"<p>{line}</p>" for line in text.split("\n"))
    page = f"<article>{heading.format(title)}{paragraphs}</article>"
    found = ANALYZER.analyze(Article(id="a", title=title, html=page))
    same = ANALYZER.analyze(Article(id="a", title=title, text=text, known_lang=found.lang))

    assert (found.text, found.own_headline, found.text_hash) == (text, 0.0, same.text_hash)


def test_given_text_wins_over_html() -> None:
    """A text that the crawler extracted is used as it is."""
    assert ANALYZER.analyze(Article(id="a", text=story(1), html=HTML)).text == story(1)


@pytest.mark.parametrize(
    "article", [Article(id="a"), Article(id="a", text=" \n\t"), Article(id="a", title="!!! ---")]
)
def test_no_words_is_an_error(article: Article) -> None:
    """Without words there is nothing to fingerprint; the error names what to send."""
    with pytest.raises(NoText, match="no words"):
        ANALYZER.analyze(article)


@pytest.mark.parametrize("lang", ["en", "fr"])
def test_texts_of_stop_words_only_get_different_fingerprints(lang: str) -> None:
    """Without an index term the words themselves are used: not fingerprint 0 for all such texts."""
    found = [
        ANALYZER.analyze(Article(id="a", text=text, lang=lang))
        for text in ("hello", "are you", "not us", "x")
    ]

    assert all(analysis.terms for analysis in found)
    assert min((a.fingerprint ^ b.fingerprint).bit_count() for a in found for b in found if a is not b) > 7


def test_headlines_count_for_short_texts_only() -> None:
    """One notice under two company names is two texts; one newswire story under two headlines is one."""
    notice = "Quarterly dividend 25 cents against 25 cents. Payable on April 20."
    short = [
        ANALYZER.analyze(Article(id="a", title=t, text=notice)) for t in ("Oskara Mills", "Belcourt Rail")
    ]
    long = [
        ANALYZER.analyze(Article(id="a", title=t, text=story(1))) for t in ("Oskara Mills", "Belcourt Rail")
    ]

    assert short[0].text_hash != short[1].text_hash
    assert long[0].text_hash == long[1].text_hash


def test_case_and_punctuation_do_not_change_the_text_hash() -> None:
    """The text hash is a hash of the normalized words."""
    first = ANALYZER.analyze(Article(id="a", text="The ferry sank. “Nobody” was hurt", lang="en"))
    second = ANALYZER.analyze(Article(id="b", text='THE FERRY  SANK - "nobody" was hurt!', lang="en"))

    assert first.text_hash == second.text_hash
    assert first.fingerprint == second.fingerprint


def test_the_text_key_does_not_depend_on_the_language() -> None:
    """Nor on case, punctuation and invisible characters; on the headline if that counts, and the opening."""
    text, long = "The mayor’s crew won't sail, ÖRESUND is frozen", story(4, 40)

    def key(title: str, text: str, lang: str) -> int:
        return ANALYZER.analyze(Article(id="1", title=title, text=text, known_lang=lang)).text_key

    assert len({key("Ice", text, lang) for lang in ("en", "de", "zh", "ko", "ru", "und")}) == 1
    assert key("Ice", text, "en") == key("ICE!", text.replace("’", "'").replace("sail", "sa\u00adil"), "de")
    assert key("Ice", text, "en") != key("Snow", text, "en") != key("Snow", f"{text} today", "en")
    assert key("Ice", long, "en") == key("Snow", f"{long} today", "de") != key("Ice", f"Today {long}", "en")


@pytest.mark.parametrize(
    ("title", "text", "lang", "words", "share"),
    [
        ("Ferry sinks off Veldmoor", "The ferry sank off Veldmoor at dawn.", "en", 7, 2 / 3),
        ("Ferry sinks off Veldmoor", "Nobody was hurt.", "en", 3, 0.0),
        ("Ferry sinks off Veldmoor", "", "en", 0, 0.0),
        ("", "Nobody was hurt.", "en", 3, 1.0),
        ("Fähre sinkt vor Veldmoor", "Die Fähre sank in der Nacht vor Veldmoor.", "de", 8, 2 / 3),
        ("Паром затонул у Велдмора", "Паром затонул ночью у Велдмора.", "ru", 5, 1.0),
        ("渡轮沉没", "渡轮在凌晨沉没。", "zh", 4, 1.0),
    ],
)
def test_words_of_the_text_and_the_headline_in_it(
    title: str, text: str, lang: str, words: int, share: float
) -> None:
    """The text alone, and the share of the headline's terms that it has; 1 without a headline."""
    found = ANALYZER.analyze(Article(id="a", title=title, text=text, known_lang=lang))

    assert found.text_words == words
    assert found.own_headline == pytest.approx(share)


def test_shingles_about_the_headline_are_marked() -> None:
    """Those of the text, short or long; the headline itself is not."""
    lead = "The ferry to Veldmoor left the quay at dawn. "
    for text in (lead, lead + story(4, 20)):
        marks = ANALYZER.analyze(
            Article(id="a", title="Ferry for Veldmoor", text=text, lang="en")
        ).sketch.marks
        marked = int(((marks & HEADLINE_MARK) != 0).sum())
        # Two words of the lead, in at most three shingles each, and in those that begin in the headline.
        assert 1 <= marked <= 7
        plain = ANALYZER.analyze(Article(id="a", title="Nothing", text=text, lang="en")).sketch.marks
        assert not (plain & HEADLINE_MARK).any()


def test_a_text_of_more_words_than_are_counted() -> None:
    """The count ends at 65,535."""
    found = ANALYZER.analyze(Article(id="a", text="ebb and flood " * 22_000, lang="en"))
    assert found.text_words == MAX_TEXT_WORDS


def test_a_known_language_is_not_detected() -> None:
    """The text is in another script."""
    assert ANALYZER.analyze(Article(id="1", text="渡轮星期一恢复通航。", known_lang="de")).lang == "de"


def test_short_flag_and_term_weights() -> None:
    """A headline is marked short; term weights are descending and of unit norm."""
    headline = ANALYZER.analyze(Article(id="a", title="Ferry sinks off Veldmoor"))
    long = ANALYZER.analyze(Article(id="a", text=story(3)))

    assert (headline.short, long.short) == (True, False)
    assert len(story(3).split()) > SHORT_BELOW_WORDS
    weights = [w for _, w in long.terms]
    assert weights == sorted(weights, reverse=True)
    assert sum(w * w for w in weights) == pytest.approx(1, abs=0.02)
    assert [round(w * TERM_WEIGHT_STEPS) / TERM_WEIGHT_STEPS for w in weights] == weights


@pytest.mark.parametrize(
    ("lang", "title", "text"),
    [
        (
            "en",
            "Gazette.com: ferry sank",
            "Ferry sank, says https://www.shore.example/list.png and @shore today.",
        ),
        (
            "ru",
            "Паром затонул t.me/shore",
            "Паром затонул утром, сообщает https://telegra.example/shore и @shore.",
        ),
        ("zh", "渡轮沉没", "渡轮今晨沉没 https://shore.example/png @shore 消息 list@shore.example"),
    ],
)
def test_no_piece_of_an_address_is_a_term(lang: str, title: str, text: str) -> None:
    """Neither of relatedness nor of events; a text that has nothing else keeps them."""
    analysis = ANALYZER.analyze(Article(id="a", title=title, text=text, lang=lang))
    story = story_terms(title, lang, analysis.terms, analysis.opening_mask)
    found = {term for term, _ in (*analysis.terms, *story)}
    assert found
    assert found.isdisjoint(
        {"com", "https", "www", "shore", "exampl", "example", "png", "list", "telegra", "t", "me"}
    )
    assert ANALYZER.analyze(Article(id="a", text="https://shore.example/list", lang=lang)).terms


def test_unusable_articles_do_not_affect_the_others() -> None:
    """There is one result per article, in order."""
    results = ANALYZER.analyze_many(
        [Article(id="a", text=story(1)), Article(id="b"), Article(id="c", text=story(2))]
    )

    assert [isinstance(r, NoText) for r in results] == [False, True, False]


@pytest.mark.parametrize(
    ("end", "stated"),
    [
        ("had lost 2", []),  # of 27 million
        ("had lost $27…", []),
        ("had lost 27,", []),
        ("had lost 27 million crowns in one year and", ["27000000"]),
        ("had lost 27 million", ["27000000"]),
        ("had lost 27 %", ["27%"]),
        ("had lost 27.", ["27"]),
    ],
)
def test_a_figure_in_which_a_text_is_cut_is_none(end: str, stated: list[str]) -> None:
    """It is the beginning of another one; in a flash it is the news."""
    flash = f"The hospitals in the north, where 9 wards are closed, said on Monday that both {end}"

    for text, known in ((f"{story(1)} {flash}", stated), (flash, stated or figures(end))):
        found = ANALYZER.analyze(Article(id="a", text=text, lang="en")).figures
        assert found == tuple(figure_hash(figure) for figure in ["9", *known])


def test_the_analyzer_is_picklable() -> None:
    """An unpickled analyzer gives the same fingerprint."""
    again = pickle.loads(pickle.dumps(ANALYZER))

    assert (
        again.analyze(Article(id="a", text=story(1))).fingerprint
        == ANALYZER.analyze(Article(id="a", text=story(1))).fingerprint
    )


def test_chinese_text_in_the_fallback_space() -> None:
    """Without a Chinese model a Chinese article still gets words, sketch and fingerprint."""
    found = ANALYZER.analyze(
        Article(id="a", text="港口的渡船在星期二上午离开码头，船上有四十名乘客和六名船员。")
    )

    assert found.lang == "zh"
    assert found.space.startswith("xx.")
    assert found.sketch.size > 10


def sketch_in_chinese(text: str) -> Sketch:
    """Return the sketch of a Chinese text."""
    return ANALYZER.analyze(Article(id="a", text=text, lang="zh")).sketch


def test_chinese_shingles_are_three_words_of_the_segmenter() -> None:
    """Golden values: if they change, stored sketches are no longer comparable: change ANALYSIS_RECIPE."""
    units = ["港务局", "周二", "宣布", "关闭", "东", "码头"]
    found = sketch_in_chinese("港务局周二宣布：关闭东码头。")

    assert tokenizer.shingle_units("港务局周二宣布：关闭东码头。", "zh") == units
    assert found.sample.tolist() == build_sketch(units, 3).sample.tolist() == GOLDEN


@pytest.mark.parametrize(
    ("lang", "width"), [("ja", 7), ("th", 10), ("lo", 7), ("ko", 7), ("zh", 3), ("de", 3), ("vi", 4)]
)
def test_set_phrases_of_bulletins_are_a_small_part_of_them(lang: str, width: int) -> None:
    """The width is what the figures in docs/benchmarks/duplicates.md were measured with.

    A shuffled copy keeps three quarters of its shingles, as a duplicate must.
    """
    assert shingle_width(lang) == width
    if lang in ("de", "vi"):
        return
    texts = [article.text for article in bulletins(lang)]
    sketches = [ANALYZER.analyze(Article(id="a", text=text, lang=lang)).sketch for text in texts]
    shared = [estimate_overlap(a, b).containment for a, b in itertools.combinations(sketches, 2)]
    shuffled = [
        Article(id="a", text=" ".join(random.Random(1).sample(parts, len(parts))), lang=lang)
        for parts in (re.findall("[^.。]+[.。]", text) for text in texts)
    ]
    kept = [
        estimate_overlap(sketch, ANALYZER.analyze(article).sketch).containment
        for sketch, article in zip(sketches, shuffled, strict=True)
    ]

    assert sorted(shared)[len(shared) * 9 // 10] < 0.45
    assert min(kept) >= 0.75


def test_set_phrases_alone_do_not_make_a_chinese_copy() -> None:
    """Two bulletins about two delegations in one wording share too few words for a copy."""
    bulletin = (
        "本台消息：{0}代表团今天上午在人民礼堂举行全体会议，审议港务工作报告。会议由{1}主持。"
        "{2}{3}与会代表一致表示，要认真贯彻会议精神，扎实做好各项工作，推动经济社会高质量发展。"
    )
    first = bulletin.format(
        "东川",
        "李海峰",
        "代表们谈到渔船更新，认为三年内应当替换两百艘旧船，并给渔民发放贷款。",
        "渔业学校明年扩大招生，毕业生可以在新建的冷藏仓库实习。",
    )
    second = bulletin.format(
        "西岭",
        "王秀兰",
        "委员会讨论了山区公路，计划修建四条隧道，使果农能够把苹果及时运往省城。",
        "气象部门建议在峡谷入口安装雨量计，防止泥石流冲毁桥梁。",
    )
    overlap = estimate_overlap(sketch_in_chinese(first), sketch_in_chinese(second))
    characters = estimate_overlap(*(build_sketch(tokenizer.words(text, "zh"), 5) for text in (first, second)))

    assert overlap.shared < 40 < characters.shared
    assert overlap.containment < characters.containment


def test_parts_of_a_chinese_text_have_its_shingles() -> None:
    """Words are segmented by clause: of a text without its first sentence every shingle is known."""
    first, rest = CHINESE_STORY.split("。", 1)

    assert estimate_overlap(sketch_in_chinese(rest), sketch_in_chinese(CHINESE_STORY)).containment == 1.0
    assert estimate_overlap(sketch_in_chinese(first), sketch_in_chinese(CHINESE_STORY)).containment == 1.0


def test_traditional_characters_give_the_sketch_of_simplified_ones() -> None:
    """The words are segmented after the conversion."""
    traditional = OpenCC("s2t").convert(CHINESE_STORY)

    assert traditional != CHINESE_STORY
    assert sketch_in_chinese(traditional).sample.tolist() == sketch_in_chinese(CHINESE_STORY).sample.tolist()


def test_space_names_of_the_parts() -> None:
    """The name hashes model, recipes and conversion in this order; the recipe lists the others."""
    model = HashedModel("zh")
    parts = [model.id, tokenizer.TOKENIZER_RECIPE, ANALYSIS_RECIPE, "t2s"]
    digits = xxhash.xxh3_64_intdigest("|".join(parts).encode()) & 0xFFFF

    assert space_name("zh", model) == f"zh.{digits:04x}"
    space_parts = Analyzer({"zh": model, "en": HashedModel("en")}).space_parts
    recipes = {space[:2]: described.recipe for space, described in space_parts.items()}
    assert recipes == {"zh": "|".join(parts[1:]), "en": "|".join(parts[1:3])}


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("a" * MAX_TEXT_CHARS, None),
        ("a" * (MAX_TEXT_CHARS + 1), MAX_TEXT_CHARS + 1),
        ("\ufdfa" * (MAX_TEXT_CHARS // 18), None),
        ("\ufdfa" * (MAX_TEXT_CHARS // 18 + 1), MAX_TEXT_CHARS + 6),
        ("船" * MAX_TEXT_CHARS, None),
    ],
    ids=["ascii", "ascii-above", "expanding", "expanding-above", "ideographs"],
)
def test_the_length_of_texts_is_limited_after_normalization(text: str, length: int | None) -> None:
    """Characters are counted, not time, so the same texts are accepted on every machine."""
    if length is None:
        _check_length(text)
        return
    with pytest.raises(InputTooLarge, match=f"text has {length:,} characters"):
        _check_length(text)


# A sentence per language: those with a stemmer, a segmenter or a separate script.
TEXTS = {
    "en": "The ferry to the island resumed its service on Monday after the storm had passed.",
    "de": "Die Fähre nach Estmark fährt am Montag wieder, nachdem der Sturm vorübergezogen ist.",
    "fr": "Le ferry reprend son service lundi après le passage de la tempête et la fin des réparations.",
    "es": "El transbordador reanuda el servicio el lunes tras el paso de la tormenta.",
    "it": "Il traghetto riprende il servizio lunedì dopo il passaggio della tempesta.",
    "ru": "Паром возобновляет движение в понедельник после того, как шторм прошёл.",
    "uk": "Пором відновлює рух у понеділок після того, як буря минула.",
    "zh": "渡轮星期一恢复通航，暴风雨已经过去，维修工作也已经完成。",
    "zh-Hant": "渡輪星期一恢復通航，暴風雨已經過去，維修工作也已經完成。",
    "ja": "フェリーは月曜日に運航を再開した。嵐は過ぎ去り、修理も完了した。",
    "ko": "폭풍이 지나가고 수리가 끝난 뒤 여객선이 월요일에 운항을 재개했다.",
    "th": "เรือข้ามฟากกลับมาให้บริการในวันจันทร์หลังจากพายุผ่านไป",
    "ar": "استأنفت العبارة خدمتها يوم الاثنين بعد مرور العاصفة وانتهاء الإصلاحات.",
    "fa": "کشتی پس از پایان طوفان روز دوشنبه دوباره به راه افتاد.",
    "hi": "तूफान गुजरने और मरम्मत पूरी होने के बाद सोमवार को नौका सेवा फिर शुरू हुई।",
    "tr": "Feribot, fırtınanın geçmesinin ardından pazartesi günü seferlerine yeniden başladı.",
    "el": "Το φέρι επαναλαμβάνει τα δρομολόγιά του τη Δευτέρα μετά το πέρασμα της καταιγίδας.",
    "und": "12345 67890",
}
PROGRAM = """
import json, sys
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.text import morphology, tokenizer
from aggregator.analysis.text.language import _identifier
from aggregator.analysis.analyzer import warm_up
from aggregator.domain import Article

analyzer = Analyzer(load_models(None))
if "cold" not in sys.argv:
    warm_up(analyzer)
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
caches = (
    tokenizer.stop_words, morphology.stemmer, morphology.segmenter, morphology.simplifier, _identifier
)
loaded = {}
for lang, text in json.load(sys.stdin).items():
    page = f"<html><body><article><h1>{text}</h1><p>{text}</p></article></body></html>"
    for article in (Article(id="", text=text), Article(id="", html=page)):
        before, modules = len(opened), set(sys.modules)
        misses = [cache.cache_info().misses for cache in caches]
        analyzer.analyze_many([article])
        misses = [cache.cache_info().misses - was for cache, was in zip(caches, misses)]
        new = [*opened[before:], *(set(sys.modules) - modules)]
        if new or any(misses):
            loaded.setdefault(lang, []).append([new[:5], misses])
print(json.dumps(loaded))
"""


def loaded_afterwards(*options: str) -> dict[str, object]:
    """Return what each language loads, in a new process."""
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM, *options],
        input=json.dumps(TEXTS), capture_output=True, text=True, timeout=HANG_LIMIT_S, check=True,
    )  # fmt: skip
    result: dict[str, object] = json.loads(completed.stdout)
    return result


@pytest.mark.integration
def test_nothing_is_loaded_after_the_warm_up() -> None:
    """No file is opened, no module imported and no dictionary, stemmer or stop word list made."""
    assert loaded_afterwards() == {}


@pytest.mark.integration
def test_the_probe_sees_what_is_loaded() -> None:
    """Without the warm-up nearly every language loads something: the other test can fail."""
    assert loaded_afterwards("cold").keys() >= {"en", "de", "ru", "zh", "ja", "ar"}
