"""Streams built from real articles, for what a duplicate rule must keep and what it must drop. Pure, seeded.

A case is a few articles in order of arrival, each with what the answer must be:

    base  not judged: what was there before
    news  must be kept
    copy  must be a duplicate that is not kept
    page  a version of a live page: news if enough of its words were in no version that was kept

All articles that are sent to one service are made from different ones that share little wording
(``unrelated.py``), so that cases do not disturb each other. Words are those of ``edits.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

from aggregator.domain import Article
from aggregator.time_units import HOUR_MS
from aggregator_lab.evaluation.edits import split_sentences
from aggregator_lab.evaluation.online_protocol import CLOCK_START_MS
from aggregator_lab.evaluation.unrelated import Source, Supply, joined_pieces

PAGE_ENTRIES, PAGE_VERSIONS, NOTICE_ARTICLES = 4, 12, 12
BRIEFINGS = {
    "ar": "موجز الصباح", "de": "Der Morgen im Überblick", "en": "Morning briefing",
    "es": "Las noticias de la mañana", "fr": "Les titres du matin", "it": "Le notizie del mattino",
    "pl": "Poranny przegląd", "ru": "Главное к утру", "tr": "Sabah özeti", "zh": "早间新闻汇总",
}  # fmt: skip
MARKUP = (
    '<div class="entry-media"><figure class="align-wide size-medium"><a href="https://{host}/r/{n}"><img '
    'loading="lazy" decoding="async" width="960" height="640" src="https://img.{host}/up/{n}-960x640.jpg" '
    'alt="" class="media-{n}" srcset="https://img.{host}/up/{n}-960x640.jpg 960w, https://img.{host}/up/'
    '{n}-480x320.jpg 480w" sizes="(max-width: 960px) 100vw, 960px" /></a></figure></div>\n<p>{text}</p>'
)


class Item(NamedTuple):
    """An article of a case, and what its answer must be; ``fuller``: also that."""

    article: Article
    expected: Literal["base", "news", "copy", "page"]
    fuller: bool = False


Case = list[Item]


def _made(source: Source, outlet: str, text: str | None = None, title: str | None = None) -> Article:
    article = source.article
    return Article(
        id="",
        title=article.title if title is None else title,
        text=source.words(0) if text is None else text,
        lang=article.lang,
        source=f"{outlet}.example",
    )


def digest(supply: Supply, *, first: bool) -> Case:
    """A collection of 2 to 12 excerpts of 40 to 120 words before or after its articles, then its copy."""
    rng = supply.rng
    items = [supply.take() for _ in range(rng.randint(2, 12))]
    with_titles, joined = rng.random() < 0.5, rng.random() < 0.5
    title = BRIEFINGS.get(supply.lang, BRIEFINGS["en"])
    if joined and items[0].article.title:
        title = "; ".join(item.article.title for item in items[:3])
    parts = [
        (item.article.title + "\n" if with_titles else "") + item.words(0, rng.randint(40, 120))
        for item in items
    ]
    page = _made(items[0], "briefing", "\n\n".join(parts), title)
    articles = [_made(item, f"outlet{at}") for at, item in enumerate(items)]
    copy = Item(replace(page, source="mirror.example"), "copy")
    if first:
        return [Item(page, "base"), *(Item(article, "news") for article in articles), copy]
    return [*(Item(article, "base") for article in articles), Item(page, "news"), copy]


def quotation(supply: Supply, *, words: int) -> Case:
    """One passage in the middle of two unrelated articles of 80 to 250 words."""
    rng = supply.rng
    passage = supply.take(words + 20).words(10, 10 + words)
    items: Case = []
    for expected in ("base", "news"):
        body = supply.take(80)
        size = min(len(body), rng.randint(80, 250))
        text = f"{body.words(0, size // 2)}\n{passage}\n{body.words(size // 2, size)}"
        items.append(Item(_made(body, f"outlet-{expected}", text), "news" if items else "base"))
    return items


def live_page(supply: Supply, *, rolling: bool) -> Case:
    """12 versions of a page, each with an entry of 60 words more; a rolling one keeps the last four."""
    sources = [supply.take() for _ in range(PAGE_VERSIONS)]
    entries = [source.words(0, 60) for source in sources]
    items: Case = []
    for last in range(PAGE_VERSIONS):
        first = max(0, last + 1 - PAGE_ENTRIES) if rolling else 0
        text = "\n\n".join(reversed(entries[first : last + 1]))
        items.append(Item(_made(sources[0], "live", text), "page" if last else "base"))
    return items


def lead(supply: Supply, *, percent: int) -> Case:
    """The first part of an article, or 45 words for 0 %, then the whole elsewhere.

    100 words of other articles stand below the first part, but not below the 45 words.
    """
    source = supply.take(100)
    text = source.words(0, len(source) * percent // 100 or 45)
    text += f"\n{supply.noise(100)}" if percent else ""
    return [Item(_made(source, "first", text), "base"), Item(_made(source, "second"), "news")]


def notice(supply: Supply, *, words: int, outlets: int) -> Case:
    """A notice alone, perhaps of a rival, then 12 articles of 20 to 45 words with that notice below."""
    rng = supply.rng
    text = supply.take(words + 10).words(5, 5 + words)
    items: Case = [Item(_made(supply.take(), rng.choice(["outlet0", "rival"]), text), "base")]
    for at in range(NOTICE_ARTICLES):
        source = supply.take()
        teaser = f"{source.words(0, rng.randint(20, 45))}\n{text}"
        items.append(Item(_made(source, f"outlet{at % outlets}", teaser), "news"))
    return items


def bare_headline(supply: Supply, *, first: bool) -> Case:
    """A headline of 4 to 8 words without text, which is a phrase of the text of another article."""
    source = supply.take()
    lang = supply.lang
    sentences = [joined_pieces(sentence, lang) for sentence in split_sentences(source.words(0), lang)]
    pieces = max(sentences[1:] or sentences, key=len)
    size = supply.rng.randint(4, 8)
    start = supply.rng.randint(0, max(0, len(pieces) - size))
    phrase = "".join(pieces[start : start + size]).strip(" \n\t.,;:!?\"'«»“”()。，")
    headline, article = _made(source, "letters", "", phrase), _made(source, "paper")
    pair = [headline, article] if first else [article, headline]
    return [Item(pair[0], "base"), Item(pair[1], "news")]


def marked_up(supply: Supply) -> Case:
    """Six unrelated items of 15 to 60 words in the image markup of one feed, or of one system of feeds."""
    rng = supply.rng
    outlets = rng.choice([1, 6])
    items: Case = []
    for at in range(6):
        source, outlet = supply.take(), f"feed{at % outlets}"
        text = source.words(0, rng.randint(15, 60))
        text = MARKUP.format(host=f"{outlet}.example", n=rng.randrange(10**6), text=text)
        items.append(Item(_made(source, outlet, text), "news" if items else "base"))
    return items


def part_and_whole(supply: Supply, *, half: bool, whole_first: bool, own: bool | None = None) -> Case:
    """The first half, or a teaser of 25 to 40 words, before or after the whole.

    ``own``: both of one outlet; None: in half of the cases.
    """
    source = supply.take(100)
    size = len(source) // 2 if half else supply.rng.randint(25, 40)
    part = _made(source, "outlet", source.words(0, size) + ("" if half else " …"))
    one = supply.rng.random() < 0.5 if own is None else own
    whole = _made(source, "outlet" if one else "other")
    if whole_first:
        return [Item(whole, "base"), Item(part, "copy")]
    return [Item(part, "base"), Item(whole, "news", half)]


def five_versions(supply: Supply) -> list[Article]:
    """An article whole, its first 60 words, a teaser, its second half, and padded; each of its own outlet."""
    source = supply.take(150)
    assert supply.editor is not None
    padded = supply.editor.edit("padded", source.article)
    texts = [None, source.words(0, 60), source.words(0, 30), source.words(len(source) // 2)]
    versions = [_made(source, f"outlet{at}", text) for at, text in enumerate(texts)]
    versions.append(_made(source, "outlet4", padded.text if padded else ""))
    return [replace(article, id=f"v{at}") for at, article in enumerate(versions)]


def addressed(case: Case, number: int) -> list[Article]:
    """The articles of a case with ids and addresses of their own, an hour apart."""
    start_ms = CLOCK_START_MS + number * 60_000
    return [
        replace(
            item.article,
            id=f"{number}-{at}",
            url=f"https://{item.article.source}/{number}-{at}",
            published_at_ms=start_ms + at * HOUR_MS,
        )
        for at, item in enumerate(case)
    ]


KINDS: dict[str, Callable[[Supply], Case]] = {
    "digest, then its articles": partial(digest, first=True),
    "articles, then their digest": partial(digest, first=False),
    **{f"quotation of {n} words": partial(quotation, words=n) for n in (30, 64, 120)},
    "live page, last 4 entries": partial(live_page, rolling=True),
    "live page that grows": partial(live_page, rolling=False),
    **{f"{n} % of the lead and noise": partial(lead, percent=n) for n in (20, 45, 70)},
    "brief, then the whole": partial(lead, percent=0),
    **{
        f"notice of {n} words, {m} outlet{'s' * (m > 1)}": partial(notice, words=n, outlets=m)
        for n in (36, 60)
        for m in (1, NOTICE_ARTICLES)
    },
    "text, then bare headline": partial(bare_headline, first=False),
    "bare headline, then text": partial(bare_headline, first=True),
    "unrelated items in markup": marked_up,
    "teaser, then the whole": partial(part_and_whole, half=False, whole_first=False),
    "whole, then its own teaser": partial(part_and_whole, half=False, whole_first=True, own=True),
    "whole, then a teaser elsewhere": partial(part_and_whole, half=False, whole_first=True, own=False),
    "half, then the whole": partial(part_and_whole, half=True, whole_first=False),
    "whole, then its half": partial(part_and_whole, half=True, whole_first=True),
}
