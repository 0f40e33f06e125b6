"""Pairs that share wording and are different news, and their counterparts that stay copies."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.dedup.other_news import other_news, stands_under_many_headlines
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import compare_pair
from aggregator.domain import Analysis, Article
from tests.dedup.other_news_texts import BRIEFINGS, ITEMS, NOTICES, STATEMENTS, Item
from tests.support.pair_evidence import evidence_of

ANALYZER, POLICY = Analyzer(load_models()), Policy()
LANGUAGES = pytest.mark.parametrize("lang", ITEMS)


def article(title: str, *paragraphs: str, lang: str) -> Analysis:
    """The analysis of an article with these paragraphs."""
    return ANALYZER.analyze(Article(id="", title=title, text="\n".join(paragraphs), lang=lang))


def difference(later: Analysis, earlier: Analysis, *, same_outlet: bool = False) -> str:
    """The answer "copy", or the reason against it; "" if the wording does not suffice."""
    evidence = replace(evidence_of(later, earlier), same_outlet=same_outlet, hours_apart=2.0)
    is_copy, reason = compare_pair(later, earlier, evidence, POLICY)
    return "copy" if is_copy else reason


def sentences(text: str, lang: str) -> list[str]:
    """The sentences of a text."""
    stop, space = ("。", "") if lang == "zh" else (".", " ")
    return [f"{part.strip()}{stop}{space}" for part in text.split(stop) if part.strip()]


def beginning(item: Item, lang: str, count: int = 2) -> str:
    """The first sentences of an item, which has four, in Chinese three or four."""
    return "".join(sentences(item.text, lang)[:count])


def collection(lang: str, *, first: int = 0) -> Analysis:
    """A briefing of all items, each under its headline, beginning with this one."""
    items = [*ITEMS[lang][first:], *ITEMS[lang][:first]]
    return article(BRIEFINGS[lang], *(f"{item.title}\n{item.text}" for item in items), lang=lang)


@LANGUAGES
@pytest.mark.parametrize("place", range(4))
def test_an_item_is_part_of_a_collection(lang: str, place: int) -> None:
    """In either order, at any place of the collection, of the same outlet or another."""
    item, briefing = ITEMS[lang][place], collection(lang)
    own = article(item.title, item.text, lang=lang)

    for same_outlet in (False, True):
        assert difference(own, briefing, same_outlet=same_outlet) in ("part", "")
        assert difference(briefing, own, same_outlet=same_outlet) in ("part", "")
    assert difference(own, briefing) == difference(briefing, own) == "part"


@LANGUAGES
def test_a_collection_in_another_order_is_a_copy(lang: str) -> None:
    """The whole of it under its headline, or another outlet's."""
    assert difference(collection(lang, first=1), collection(lang)) == "copy"
    renamed = replace(collection(lang, first=1), title="Tornavik Quillan Ellerby Maresby")
    assert difference(renamed, collection(lang)) == "copy"


@LANGUAGES
@pytest.mark.parametrize("place", range(4))
def test_a_cut_or_padded_text_is_a_copy(lang: str, place: int) -> None:
    """Under its headline or another one about the same, in either order."""
    item = ITEMS[lang][place]
    whole = article(item.title, item.text, lang=lang)
    for title in (item.title, item.other_title):
        cut = article(title, beginning(item, lang, 3 - (title == item.title)), lang=lang)
        padded = article(title, item.text, NOTICES[lang], lang=lang)
        for other in (cut, padded):
            assert difference(other, whole) == difference(whole, other) == "copy"


@LANGUAGES
@pytest.mark.parametrize("place", range(4))
def test_another_outlet_replaces_the_headline(lang: str, place: int) -> None:
    """By one about the same news, or by one that says nothing of it: the text is the article."""
    item = ITEMS[lang][place]
    if (lang, place) == ("de", 1):
        return  # taken for a page: its text has the terms of the headline in compounds
    whole = article(item.title, item.text, lang=lang)
    for title in (item.other_title, BRIEFINGS[lang], ""):
        renamed = article(title, item.text, lang=lang)
        assert difference(renamed, whole) == difference(whole, renamed) == "copy"


@LANGUAGES
def test_a_notice_with_an_own_lead_is_own_news(lang: str) -> None:
    """What both share is the notice; the headline is about the lead. Also of sister outlets."""
    pages = [article(item.title, beginning(item, lang, 1), NOTICES[lang], lang=lang) for item in ITEMS[lang]]
    for earlier, later in pairwise(pages):
        for same_outlet in (False, True):
            assert difference(later, earlier, same_outlet=same_outlet) != "copy"


@LANGUAGES
@pytest.mark.parametrize("place", range(4))
def test_a_notice_alone_swallows_no_article(lang: str, place: int) -> None:
    """A page with nothing but the notice, and later articles over it, also of sister outlets."""
    item, bare = ITEMS[lang][place], article(BRIEFINGS[lang], NOTICES[lang], lang=lang)
    page = article(item.title, beginning(item, lang, 1), NOTICES[lang], lang=lang)

    for same_outlet in (False, True):
        assert difference(page, bare, same_outlet=same_outlet) in ("own news", "page", "names")


@LANGUAGES
@pytest.mark.parametrize("place", range(4))
def test_a_page_with_the_notice_alone_is_no_copy_of_an_article_over_it(lang: str, place: int) -> None:
    """Of another headline, which says nothing of the article; also of sister outlets, in either order."""
    item, other = ITEMS[lang][place], ITEMS[lang][place - 1]
    page = article(item.title, beginning(item, lang, 1), NOTICES[lang], lang=lang)
    bare = article(other.title, NOTICES[lang], lang=lang)

    for same_outlet in (False, True):
        assert difference(bare, page, same_outlet=same_outlet) != "copy"
        assert difference(page, bare, same_outlet=same_outlet) != "copy"


@LANGUAGES
def test_a_notice_does_not_hide_a_copy(lang: str) -> None:
    """The same lead over it under another headline."""
    item = ITEMS[lang][0]
    first, second = (
        article(title, beginning(item, lang), NOTICES[lang], lang=lang)
        for title in (item.title, item.other_title)
    )
    assert difference(second, first) == difference(first, second) == "copy"


@pytest.mark.parametrize(
    ("title", "text", "headline", "kicker", "lang"),
    [
        (
            "Pool reopens after repairs",
            "The indoor pool of Aldmoor opens again on Saturday after two years of repairs. The roof, which "
            "had leaked since a storm, was replaced, and warm waste air heats the water now. Tickets "
            "cost four crowns for children and seven for adults. Schools may swim free of charge.",
            "Families celebrate", "Good news for families: ", "en",
        ),
        (
            "Hallenbad öffnet wieder",
            "Das Hallenbad von Aldmoor öffnet am Samstag nach zwei Jahren wieder. Das Dach, durch das es "
            "seit einem Sturm geregnet hatte, wurde erneuert, und Abwärme heizt das Wasser. Karten "
            "kosten vier Kronen für Kinder und sieben für Erwachsene. Schulen schwimmen kostenlos.",
            "Familien jubeln", "Gute Nachricht für Familien: ", "de",
        ),
    ],
)  # fmt: skip
def test_a_copy_behind_a_kicker_has_no_news_of_its_own(
    title: str, text: str, headline: str, kicker: str, lang: str
) -> None:
    """Though its headline is about the kicker alone; an own lead in place of the old one may be news."""
    earlier = article(title, text, lang=lang)
    assert difference(article(headline, f"{kicker}{text}", lang=lang), earlier) == "copy"


@LANGUAGES
def test_a_page_without_its_article(lang: str) -> None:
    """Two headlines of one outlet over a list of other stories; another outlet has replaced one."""
    listed = [item.text for item in ITEMS[lang][2:]]
    first, second = (article(item.title, *listed, lang=lang) for item in ITEMS[lang][:2])

    assert difference(second, first, same_outlet=True) == "page"
    assert difference(second, first) == "copy"


@pytest.mark.parametrize(
    ("lang", "line", "first", "second"),
    [
        (
            "en",
            "Follow the regatta off Brine with us all day, every heat and every result. New to our service? "
            "Try it free for two weeks and start at once on any screen, without breaks while the boats are "
            "out. All heats of the season wait in the archive, with the crews, the times and the weather.",
            "Regatta LIVE: harbour pilots threaten to strike over night duty",
            "LIVE: regatta crews sleep ashore in tents",
        ),
        (
            "es",
            "Siga con nosotros la regata de Brine durante todo el día, con cada manga y cada resultado. "
            "Pruebe nuestro servicio gratis dos semanas y empiece ahora mismo en cualquier pantalla, sin "
            "pausas mientras los barcos navegan. Todas las mangas de la temporada esperan en el archivo.",
            "Regata en directo: los prácticos del puerto amenazan con una huelga nocturna",
            "Directo: regata, tripulaciones duermen tierra",
        ),
    ],
)
def test_a_live_page_is_not_about_the_name_of_its_series(
    lang: str, line: str, first: str, second: str
) -> None:
    """Two headlines of one outlet over a standing line share that name, also with the line."""
    a, b = article(first, line, lang=lang), article(second, line, lang=lang)

    assert difference(b, a, same_outlet=True) == difference(a, b, same_outlet=True) == "page"


@LANGUAGES
def test_an_outlet_renames_its_article(lang: str) -> None:
    """One of the headlines is about the text."""
    item = ITEMS[lang][0]
    whole = article(item.title, item.text, ITEMS[lang][0].text, lang=lang)
    for title in (item.other_title, BRIEFINGS[lang]):
        renamed = article(title, item.text, ITEMS[lang][0].text, lang=lang)
        assert difference(renamed, whole, same_outlet=True) == "copy"
        assert difference(whole, renamed, same_outlet=True) == "copy"


@LANGUAGES
@pytest.mark.parametrize("same_outlet", [False, True])
def test_a_quotation_in_the_middle_is_a_passage(lang: str, same_outlet: bool) -> None:
    """Of 60 to 80 words, in reports of twice its length and of three times."""
    for size in (1, 2):
        first, second = (
            article(
                items[0].title,
                *(item.text for item in items[:size]),
                STATEMENTS[lang],
                beginning(items[-1], lang) if size == 2 else "",
                lang=lang,
            )
            for items in (ITEMS[lang][:2], ITEMS[lang][2:])
        )
        assert difference(second, first, same_outlet=same_outlet) != "copy"
        assert difference(first, second, same_outlet=same_outlet) != "copy"


@LANGUAGES
def test_a_report_of_the_quotation_alone_is_no_copy_of_a_report_with_it(lang: str) -> None:
    """In either order: its headline is its own."""
    first, second = ITEMS[lang][:2]
    short = article(BRIEFINGS[lang], STATEMENTS[lang], lang=lang)
    report = article(first.title, first.text, STATEMENTS[lang], second.text, lang=lang)

    assert difference(short, report) != "copy"
    assert difference(report, short) != "copy"


@LANGUAGES
def test_a_bare_headline_in_a_long_text(lang: str) -> None:
    """Its words occur there, in the order of the headline; it has another subject than the text."""
    briefing = collection(lang)
    for item in ITEMS[lang]:
        bare = article(item.title, lang=lang)
        assert difference(bare, briefing) in ("headline", "")
        assert difference(briefing, bare) in ("headline", "")


@LANGUAGES
def test_a_line_of_a_feed_in_a_long_text(lang: str) -> None:
    """A headline with a sentence, which another article quotes further down."""
    first, second = ITEMS[lang][:2]
    line = article(first.title, beginning(first, lang, 1), lang=lang)
    longer = article(second.title, second.text, first.text, lang=lang)

    assert difference(line, longer) != "copy"
    assert difference(longer, line) != "copy"


@LANGUAGES
@pytest.mark.parametrize("place", range(4))
def test_a_summary_is_a_copy_of_its_article(lang: str, place: int) -> None:
    """Under the same headline: the first sentence or two."""
    item = ITEMS[lang][place]
    whole = article(item.title, item.text, lang=lang)
    for count in (1, 2):
        teaser = article(item.title, beginning(item, lang, count), lang=lang)
        assert difference(teaser, whole) == difference(whole, teaser) == "copy"


@pytest.mark.parametrize(
    ("lang", "first", "second"),
    [
        (
            "en",
            "Riverside Metals shares rise 12 % after results",
            "Riverside Metals shares fall 12 % after results",
        ),
        (
            "en",
            "Court finds mayor of Maresby guilty of fraud",
            "Court finds mayor of Maresby not guilty of fraud",
        ),
        (
            "en",
            "Brackwater bridge reopens to lorries on Monday",
            "Brackwater bridge closes to lorries on Monday",
        ),
        ("de", "Zentralbank von Norland hebt den Leitzins an", "Zentralbank von Norland senkt den Leitzins"),
        ("es", "El banco central sube los tipos de interés", "El banco central baja los tipos de interés"),
        (
            "fr",
            "La banque centrale relève ses taux directeurs",
            "La banque centrale abaisse ses taux directeurs",
        ),
        ("zh", "央行宣布上调基准利率", "央行宣布下调基准利率"),
    ],
)
def test_bare_headlines_that_say_the_opposite(lang: str, first: str, second: str) -> None:
    """They share most words; one decides."""
    a, b = article(first, lang=lang), article(second, lang=lang)

    assert difference(b, a) in ("headline", "")
    assert difference(a, b) in ("headline", "")
    assert difference(article(first.upper(), lang=lang), a) == "copy"


@pytest.mark.parametrize("figures", [("12", "17"), ("1,200", "2,100"), ("3.5", "3.7")])
def test_bare_headlines_with_other_figures(figures: tuple[str, str]) -> None:
    """A toll, a price, a score."""
    a, b = (
        article(f"Ferry accident off Tornavik leaves {n} people injured, harbour office says", lang="en")
        for n in figures
    )
    assert difference(b, a) in ("headline", "")


def test_equal_headlines_decide() -> None:
    """Whatever the lengths, no kind applies under one headline."""
    for lang, items in ITEMS.items():
        whole = article(items[0].title, *(item.text for item in items), lang=lang)
        part = article(items[0].title, items[2].text, lang=lang)
        assert other_news(part, whole, evidence_of(part, whole), 16) == ""


@LANGUAGES
def test_a_text_under_many_headlines(lang: str) -> None:
    """Three unlike ones that do not occur in it; two, or headlines of the text's own stories, say nothing."""
    pages = [article(item.title, NOTICES[lang], lang=lang) for item in ITEMS[lang]]

    assert stands_under_many_headlines(pages[2], pages[:2])
    assert stands_under_many_headlines(pages[0], pages[1:])
    assert not stands_under_many_headlines(pages[1], pages[:1])
    assert not stands_under_many_headlines(pages[2], [pages[0], pages[0]])
    assert not stands_under_many_headlines(replace(pages[2], title=""), pages[:2])


@LANGUAGES
def test_an_article_under_many_headlines(lang: str) -> None:
    """Its headlines are about it, however many an outlet tries."""
    text = ITEMS[lang][0].text
    listed = [article(item.title, *(each.text for each in ITEMS[lang]), lang=lang) for item in ITEMS[lang]]
    renamed = [
        article(title, text, lang=lang)
        for title in (ITEMS[lang][0].title, ITEMS[lang][0].other_title, BRIEFINGS[lang])
    ]
    assert not stands_under_many_headlines(listed[3], listed[:3])
    assert not stands_under_many_headlines(renamed[2], renamed[:2])


@LANGUAGES
def test_different_texts_are_not_one_text(lang: str) -> None:
    """Each headline has a different text."""
    own = [article(item.title, item.text, lang=lang) for item in ITEMS[lang]]

    assert not stands_under_many_headlines(own[3], own[:3])


def test_a_column_that_only_names_itself_is_another_one_on_another_day() -> None:
    """Equal headline and text of one outlet; the same day, or of another outlet, it is a copy."""
    column = article(
        "Four figures for savers this week", "By Ragna Ulm, head of research at Marrow Bank.", lang="en"
    )
    evidence = replace(evidence_of(column, column), same_outlet=True, hours_apart=168.0)

    assert other_news(column, column, evidence, 16) == "column"
    assert other_news(column, column, replace(evidence, hours_apart=2.0), 16) == ""
    assert other_news(column, column, replace(evidence, same_outlet=False), 16) == ""


def test_an_item_is_part_of_a_collection_under_the_joined_headlines_of_two() -> None:
    """Each headline agrees with the joined ones, which are not about one item for the most part."""
    first, second = ITEMS["en"][:2]
    whole = article(f"{first.title}; {second.title}", first.text, second.text, lang="en")
    item = article(first.title, first.text, lang="en")

    assert other_news(item, whole, evidence_of(item, whole), 16) == "part"
