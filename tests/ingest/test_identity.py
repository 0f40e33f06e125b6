"""Ids that are used again: by the same source for another article, and by another source."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Answer, Article, build_record
from aggregator.ingest.identity import has_common_text, id_within_source, is_other_source
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import Core, core, edited, story

ANALYZER = Analyzer({"xx": HashedModel()})
# (language, headline, text), two subjects each.
SUBJECTS = {
    "en": (
        (
            "Ferry runs aground",
            "The evening ferry ran onto a sandbank below the mill, and its ninety passengers waited "
            "four hours until the tide lifted it. Nobody was hurt, said the harbour office.",
        ),
        (
            "Prize for a pumpkin",
            "A gardener from Estmark won the valley prize with a pumpkin of three hundred kilos, which two "
            "horses had to draw to the market place on Sunday morning.",
        ),
    ),
    "de": (
        (
            "Fähre läuft auf",
            "Die Abendfähre lief unterhalb der Mühle auf eine Sandbank, und ihre neunzig Fahrgäste warteten "
            "vier Stunden, bis die Flut sie hob. Niemand wurde verletzt, sagt das Hafenamt.",
        ),
        (
            "Preis für einen Kürbis",
            "Ein Gärtner aus Estmark gewann den Preis des Tals mit einem Kürbis von dreihundert Kilo, den "
            "zwei Pferde am Sonntag auf den Marktplatz ziehen mussten.",
        ),
    ),
    "ru": (
        (
            "Паром сел на мель",
            "Вечерний паром сел на мель ниже мельницы, и девяносто пассажиров ждали четыре часа, пока его не "
            "поднял прилив. Никто не пострадал, сообщила служба гавани.",
        ),
        (
            "Премия за тыкву",
            "Садовод из Эстмарка получил премию долины за тыкву весом триста килограммов, которую две "
            "лошади в воскресенье утром везли на рыночную площадь.",
        ),
    ),
    "zh": (
        ("渡轮搁浅", "晚班渡轮在磨坊下游的沙洲搁浅,九十名乘客等了四个小时,"
            "直到涨潮才脱险。港务处说没有人受伤,明天照常开航。"),
        ("南瓜得奖", "埃斯特马克的一位园丁种出三百公斤重的南瓜,"
            "获得山谷大奖,星期天早上两匹马把它拉到了集市广场。"),
    ),
    "ja": (
        (
            "渡し船が座礁",
            "夕方の渡し船が水車小屋の下流で砂州に乗り上げ、九十人の乗客は潮が満ちるまで四時間待った。"
            "けが人はいないと港の事務所は話している。",
        ),
        (
            "かぼちゃに賞",
            "エストマルクの園芸家が三百キロのかぼちゃで谷の賞を受け、"
            "日曜の朝に二頭の馬が市場の広場まで引いて行った。",
        ),
    ),
}  # fmt: skip
CORRECTED = {
    "en": " Corrected: it was ninety-one.",
    "zh": "更正:乘客是九十一名。",
    "ja": "訂正:乗客は九十一人。",
}


def common(former: tuple[str, str], later: tuple[str, str], lang: str | None = None) -> bool:
    """Whether the later (title, text) has something in common with the former one."""
    articles = [Article("a", title=title, text=text, lang=lang) for title, text in (former, later)]
    first, second = (ANALYZER.analyze(article) for article in articles)
    return has_common_text(build_record(articles[0], first), second)


@pytest.mark.parametrize("lang", SUBJECTS)
def test_another_subject_has_nothing_in_common_a_correction_has(lang: str) -> None:
    """In every script; an equal headline is not common text, and another headline makes no other article."""
    (title, text), (other_title, other) = SUBJECTS[lang]
    corrected = text + CORRECTED.get(lang, " (91)")

    assert not common((title, text), (other_title, other), lang)
    assert not common((title, text), (title, other), lang)
    assert common((title, text), (title, corrected), lang)
    assert common((title, text), (other_title, corrected), lang)
    assert common((title, text), (title, f"{other} {text} {other}"), lang), "a live page keeps something"
    assert common((title, ""), (title, text), lang), "a flash, then its report"
    assert not common((title, ""), (other_title, ""), lang)
    assert not common((title, ""), (other_title, other), lang)


def test_headlines_are_compared_where_there_is_no_text() -> None:
    """Words in common make one article, and so does a headline that became the text."""
    assert common(("Ferry runs aground below the mill", ""), ("Ferry aground at the mill: 90 wait", ""))
    assert common(("Ferry runs aground below the mill", ""), ("", "Ferry runs aground below the mill"))
    assert not common(("Ferry runs aground", "More soon."), ("Prize for a pumpkin", "More soon."))


@pytest.mark.parametrize(("share", "expected"), [(0, False), (0.1, False), (0.4, True), (0.9, True)])
@pytest.mark.parametrize("sentences", [6, 30, 120])
def test_a_standing_line_is_not_enough(share: float, expected: bool, sentences: int) -> None:
    """A tenth of the text is as much as unrelated articles of one outlet share, in any length."""
    kept = int(share * sentences)
    first = story(1, sentences)
    second = " ".join(first.split()[: kept * 10]) + " " + story(2, sentences - kept)

    assert common(("Live", first), ("Live", second)) == expected


def test_another_source_is_known_to_be_another() -> None:
    """Spellings are one source; on one site a name is that of the host; unknown is not another."""
    article = Article("a", text=story(1), source="Gazette", url="https://gazette.example/a")
    stored = build_record(article, ANALYZER.analyze(article))
    derived = replace(article, source="gazette.example")

    assert is_other_source(replace(article, source="Radio"), stored)
    assert is_other_source(replace(article, source="radio.example", url="https://radio.example/a"), stored)
    assert not is_other_source(replace(article, source="ＧＡＺＥＴＴＥ"), stored)
    assert not is_other_source(derived, stored)
    assert not is_other_source(article, replace(stored, source="gazette.example"))
    assert not is_other_source(replace(article, source=""), stored)
    assert not is_other_source(article, replace(stored, source=""))


def test_an_id_within_a_source_is_a_valid_id() -> None:
    """Too long ones are hashed; two of them differ."""
    assert id_within_source("Gazette", "1042") == "Gazette:1042"
    assert id_within_source("新闻", "7" * 510).startswith("source:")
    assert id_within_source("a", "7" * 511) != id_within_source("b", "7" * 511)


@pytest.fixture
def newsroom(store: Store) -> Core:
    """A service with its own store."""
    return core(store)


async def test_a_reused_id_is_decided_anew(newsroom: Core) -> None:
    """Each of 6 texts under one id gets its own verdict, and so do the copies of each."""
    groups = set()
    for n in range(6):
        text, title = story(n, 12 + 20 * (n % 3)), f"Report {'abcdef'[n]}"
        first = await newsroom.post("live", text, title=title, source="Live", published_at_ms=n)
        copy = (await newsroom.post(f"copy-{n}", text, title=title, source="Gazette")).outcome
        assert first.outcome.verdict == "new" and copy.match is not None and copy.match.canonical_id == "live"
        assert (first.replaces and first.replaces.title) == (f"Report {'abcdef'[n - 1]}" if n else None)
        groups.add(copy.match.canonical_first)
    again = await newsroom.post("live", text, title=title, source="Live")

    assert len(groups) == 6 and (again.stored, again.replaces) == (False, None)
    assert [m.id for m in await newsroom.index.articles.group_members("live")] == ["live", "copy-5"]


@pytest.mark.parametrize("steps", [1, 5])
async def test_the_next_copy_of_an_article_that_lost_its_id_is_kept(newsroom: Core, steps: int) -> None:
    """Lost at once, then the answer names what was dropped, or over five updates."""
    before, after = story(1, 20).split(". "), story(2, 20).split(". ")
    posts = [("latest", "Orange", story(1, 20)), ("dropped", "Plum", story(1, 20))]
    for n in range(1, steps + 1):
        cut = 20 * n // steps
        changed = ". ".join([*before[cut:], *after[:cut]])
        posts.append(("latest", "Orange", changed))
    posts += [("next", "Quince", story(1, 20)), ("last", "Rose", story(1, 20))]
    answers = {id_: await newsroom.post(id_, text, source=source) for id_, source, text in posts}

    kept = {id_: answer.outcome.keep for id_, answer in answers.items()}
    assert kept == {"latest": True, "dropped": False, "next": True, "last": False}
    assert (answers["latest"].replaces is not None) == (steps == 1)
    assert answers["latest"].withdrawn == (("dropped",) if steps == 1 else ())


@pytest.mark.parametrize("together", [True, False])
async def test_copies_dropped_for_a_copy_that_was_dropped_stay(newsroom: Core, together: bool) -> None:
    """Readers have what they repeat, and keep a version that was kept; in one batch as one by one."""
    longer = f"{story(1, 20)} {story(3, 20)}"
    posts = [("a", story(1, 20)), ("b", story(1, 20)), ("c", story(1, 20)), ("b", story(2, 20))]
    posts += [("fuller", longer), ("a", story(5, 20)), ("d", story(1, 20))]
    articles = [Article(id_, text=text, lang="en", source=f"Outlet {id_}") for id_, text in posts]
    groups = [articles] if together else [[article] for article in articles]
    answers = [answer for group in groups for answer in await newsroom.ingest.submit_many(group)]

    answered = [(a.outcome.keep, a.withdrawn) for a in answers if isinstance(a, Answer)]
    assert answered[:4] == [(True, ()), (False, ()), (False, ()), (True, ())]
    assert answered[4:] == [(True, ()), (True, ("c",)), (False, ())]
    assert [m.id for m in await newsroom.index.articles.group_members("d")] == ["fuller", "d"]


async def test_a_reused_id_may_be_a_copy(newsroom: Core) -> None:
    """A copy that becomes another article leaves its group; what it repeats now is named."""
    await newsroom.post("bridge", story(1), source="A")
    await newsroom.post("slug", story(2), source="B")
    await newsroom.post("x", story(1), source="X", title="Bridge")
    answer = await newsroom.post("x", story(2), source="X", title="Slug")

    assert answer.outcome.match is not None and answer.outcome.match.canonical_id == "slug"
    assert answer.replaces is not None and answer.replaces.verdict == "duplicate"
    assert [m.id for m in await newsroom.index.articles.group_members("bridge")] == ["bridge"]
    back = await newsroom.post("x", story(1), source="X")
    assert back.outcome.match is not None and back.outcome.match.canonical_id == "bridge"
    await newsroom.ingest.delete("bridge")
    assert (await newsroom.index.articles.get("x")).outcome.verdict == "new"


@pytest.mark.parametrize("share", [0, 0.3, 1])
@pytest.mark.parametrize("lang", ["en", "de", "ru", "zh"])
async def test_a_copy_that_nobody_keeps_is_decided_by_its_next_text(
    newsroom: Core, lang: str, share: float
) -> None:
    """A bare headline, a stub or a flash of two outlets: the report of the second is kept, its copy not."""
    (title, report), (_, other) = SUBJECTS[lang]
    flash = report[: int(share * len(report))]
    posts = ("a", flash), ("b", flash), ("b", f"{flash} {other}"), ("c", f"{flash} {other}")
    answers = [
        await newsroom.ingest.submit(Article(id_, title=title, text=text, lang=lang, source=f"Outlet {id_}"))
        for id_, text in posts
    ]

    assert [answer.outcome.keep for answer in answers] == [True, False, True, False]
    assert [answer.created for answer in answers] == [True] * 4


@pytest.mark.parametrize("lang", ["en", "de", "ru", "zh"])
@pytest.mark.parametrize("stub", ["", "..."])
async def test_a_stub_that_becomes_a_copy_is_decided_anew(newsroom: Core, lang: str, stub: str) -> None:
    """Though its headline stays; with a text that nobody had it is the same article as before."""
    (title, report), (headline, other) = SUBJECTS[lang]
    stub = stub and (other[:8] if lang == "zh" else " ".join(other.split()[:3]))
    both = f"{report} {other}"
    posts = ("wire", title, both), ("a", headline, stub), ("a", headline, both)
    answers = [
        await newsroom.ingest.submit(Article(id_, title=head, text=text, lang=lang, source=f"Outlet {id_}"))
        for id_, head, text in (*posts, ("b", headline[::-1], stub), ("b", headline[::-1], other[::-1]))
    ]

    assert [answer.outcome.keep for answer in answers[:3]] == [True, True, False]
    assert answers[2].outcome.match and answers[2].outcome.match.canonical_id == "wire"
    assert answers[2].replaces and answers[2].replaces.title == headline
    assert [(answer.outcome.verdict, answer.created) for answer in answers[3:]] == [
        ("new", True),
        ("new", False),
    ]


async def test_a_change_of_a_copy_that_nobody_keeps_is_decided_by_its_new_text(newsroom: Core) -> None:
    """It stays in its group, as the same article, and says what it adds now; kept once that is enough."""
    await newsroom.post("a", story(1, 40), source="A")
    longer = [f"{story(1, 40)} {story(7, sentences)}" for sentences in (5, 15)]
    texts = [story(1, 40), edited(story(1, 40), 1), longer[0], longer[0], longer[1], longer[1]]
    answers = [await newsroom.post("b", text, source="B") for text in texts]
    found = [answer.outcome for answer in answers]

    assert [o.match is not None and o.match.rule == "exact" for o in found] == [True] + [False] * 5
    assert [o.keep for o in found] == [False] * 4 + [True] * 2
    added = [0, 0.01, 0.11, 0.11, 0.27, 0.27]
    assert [o.adds for o in found] == [pytest.approx(share, abs=0.03) for share in added]
    assert [answer.created for answer in answers] == [True, False, False, False, True, False]
    assert (await newsroom.index.articles.get("b")).outcome == found[-1]
    assert [m.id for m in await newsroom.index.articles.group_members("a")] == ["a", "b"]


@pytest.mark.parametrize("lang", ["en", "de", "ru", "zh"])
@pytest.mark.parametrize("source", ["Outlet a", "Outlet b"])
async def test_a_first_sentence_that_is_filled_with_the_text_of_another_article(
    newsroom: Core, lang: str, source: str
) -> None:
    """It is a copy by now; filled with another text it is the same article as before."""
    (title, report), (headline, other) = SUBJECTS[lang]
    whole = f"{report} {story(1)}"
    posts = [("a", title, report[: len(report) // 2]), ("whole", report[29:60], whole), ("a", title, whole)]
    posts += [("b", headline, other[: len(other) // 2]), ("b", headline, f"{other} {story(2)}")]
    answers = [
        await newsroom.ingest.submit(
            Article(id_, title=head, text=text, lang=lang, source=source if id_ == "whole" else "Outlet a")
        )
        for id_, head, text in posts
    ]

    assert [answer.outcome.verdict for answer in answers] == ["new", "new", "duplicate", "new", "new"]
    assert [answer.outcome.keep for answer in answers] == [True, True, False, True, True]
    assert answers[2].outcome.match and answers[2].outcome.match.canonical_id == "whole"
    assert [answer.replaces is not None for answer in answers] == [False, False, True, False, False]


async def test_an_update_that_is_like_the_copies_stays_in_the_group(newsroom: Core) -> None:
    """Unlike the version before, but like a longer copy of it."""
    await newsroom.post("a", story(1, 20), source="A")
    await newsroom.post("b", story(1, 20) + " " + story(2, 18), source="B")
    answer = await newsroom.post("a", story(2, 18), source="A")

    members = [m.id for m in await newsroom.index.articles.group_members("b")]
    assert (answer.replaces is None) == (members == ["a", "b"])


async def test_another_language_under_an_id_is_a_reused_id(newsroom: Core) -> None:
    """It was another article before, and now the answer says so."""
    (title, text), (_, other) = SUBJECTS["en"][0], SUBJECTS["ru"][1]
    await newsroom.post("a", text, title=title)
    answer = await newsroom.ingest.submit(Article("a", text=other, lang="ru"))

    assert answer.replaces is not None and answer.replaces.title == title


async def submit(service: Core, *posts: tuple[str, str, str], together: bool) -> list[Answer]:
    """Post (id, source, text), in one batch or one by one."""
    articles = [Article(id_, text=text, lang="en", source=source) for id_, source, text in posts]
    groups = [articles] if together else [[article] for article in articles]
    answers = [answer for group in groups for answer in await service.ingest.submit_many(group)]
    return [answer for answer in answers if isinstance(answer, Answer)]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("batch_articles", [1, 64])
async def test_ids_of_two_sources(store: Store, together: bool, batch_articles: int) -> None:
    """The second source's articles go to its own id, updates and repeats too; the first keeps it."""
    service = core(store, batch_articles=batch_articles)
    update = story(3) + " Corrected."
    answers = await submit(
        service,
        ("7", "A", story(1)), ("7", "B", story(2)), ("7", "B", story(2)), ("7", "B", story(3)),
        ("7", "B", update), ("7", "A", story(4)), ("7", "C", story(4)), ("7", "b", update),
        together=together,
    )  # fmt: skip

    own = [answer.stored_as for answer in answers]
    assert own == [None, "B:7", "B:7", "B:7", "B:7", None, "C:7", "b:7"]
    assert [answer.id for answer in answers] == [id_ or "7" for id_ in own]
    assert [answer.stored for answer in answers] == [True, True, False, True, True, True, True, True]
    assert [bool(answer.replaces) for answer in answers] == [False] * 3 + [True, False, True, False, False]
    assert (await service.index.articles.get("7")).record.source == "A"


@pytest.mark.parametrize("sources", [("Gazette", "Radio"), ("海港日报", "广播"), ("", "")])
async def test_an_edited_copy_of_another_source_does_not_take_an_id(sources: tuple[str, str]) -> None:
    """It is a duplicate under its own id; of unknown source, or of the same page, it is an update."""
    service, (first, second) = core(MemoryStore()), sources
    edition = story(1) + " The mayor thanked the crew."
    await submit(service, ("7", first, story(1)), together=False)
    (copy,) = await submit(service, ("7", second, edition), together=False)
    page = Article("8", text=story(2), lang="en", source=first, url="https://gazette.example/8?utm_source=x")
    await service.ingest.submit(page)
    renamed = replace(page, text=story(2) + " Corrected.", source=second, url="https://gazette.example/8")

    assert (copy.id, copy.outcome.verdict) == ((f"{second}:7", "duplicate") if second else ("7", "new"))
    assert (await service.index.articles.get("7")).record.source == first
    assert (await service.ingest.submit(renamed)).id == "8"


@pytest.mark.parametrize("posts", [["B:7", "7"], ["7", "B:7"]])
async def test_an_own_id_that_is_in_the_batch_too(posts: list[str]) -> None:
    """Both articles are stored, one after the other; a dry run answers likewise."""
    service = core(MemoryStore())
    await submit(service, ("7", "A", story(1)), together=False)
    articles = [Article(id_, text=story(2 + n), lang="en", source="B") for n, id_ in enumerate(posts)]
    for dry_run in (True, False):
        answers = [
            a for a in await service.ingest.submit_many(articles, dry_run=dry_run) if isinstance(a, Answer)
        ]
        assert [answer.id for answer in answers] == ["B:7", "B:7"]
    assert sum(answer.replaces is not None for answer in answers) == 1


async def test_an_own_id_that_somebody_else_took() -> None:
    """The next one is used, and no article is refused; bound sources likewise."""
    service = core(MemoryStore())
    await submit(service, ("7", "A", story(1)), ("B:7", "A", story(2)), together=False)
    answer = await service.ingest.submit(Article("7", text=story(3), lang="en", source="B"))
    bound = await service.ingest.submit(Article("B:7", text=story(2), lang="en", source="C"), sources=("C",))

    assert (answer.id, bound.id, bound.outcome.verdict) == ("B:B:7", "C:B:7", "duplicate")
