"""Groups after their articles were answered: united, split when the canonical article goes, withdrawn."""

from __future__ import annotations

from itertools import permutations

import pytest

from aggregator.domain import Answer, Article
from aggregator.errors import AggregatorError
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.index.helpers import seal
from tests.support.factories import Core, core, edited, story

WHOLE = story(1, 40)
HEAD, TAIL = WHOLE[: int(len(WHOLE) * 0.45)], WHOLE[int(len(WHOLE) * 0.55) :]
NOTICE = (
    "Members of the reading club see every page, the crossword and the weather map. Log in with the "
    "number on your card, or write to the desk of the club, which answers within two days and on no holiday."
)
UNLIKE = ("Otters return to the canal", "Choir sells its organ", "Ferry timetable changes in May")


async def groups(newsroom: Core, *ids: str) -> list[list[str]]:
    """The ids of each group, as `/copies` lists them."""
    found = {id_: [r.id for r in await newsroom.index.articles.group_members(id_)] for id_ in ids}
    assert all(set(found[other]) == set(members) for members in found.values() for other in members)
    return sorted(map(list, {tuple(members) for members in found.values()}))


async def verdict(newsroom: Core, id_: str) -> str:
    """The stored verdict."""
    return (await newsroom.index.articles.get(id_)).outcome.verdict


async def post_parts(newsroom: Core) -> Answer:
    """Two parts of one text with a copy of the second, then the whole; the answer for that."""
    await newsroom.post("head", HEAD, source="one.example")
    await newsroom.post("tail", TAIL, source="two.example")
    await newsroom.post("copy", edited(TAIL, 5), source="three.example")
    assert await groups(newsroom, "head", "tail", "copy") == [["head"], ["tail", "copy"]]
    return await newsroom.post("whole", WHOLE, source="four.example")


async def test_an_article_that_copies_two_groups_unites_them(store: Store) -> None:
    """The younger group joins the older one; what was answered stays, and so do repeats."""
    newsroom = core(store)
    whole = await post_parts(newsroom)

    assert whole.outcome.match is not None and whole.outcome.match.canonical_id == "head"
    assert await groups(newsroom, "head", "tail", "copy", "whole") == [["head", "tail", "copy", "whole"]]
    assert await verdict(newsroom, "tail") == "new"
    again = await newsroom.post("tail", TAIL, source="two.example")
    assert (again.outcome.verdict, again.outcome.keep, again.stored) == ("new", True, False)
    assert again.outcome.match is not None and again.outcome.match.canonical_id == "head"


async def test_a_batch_unites_groups_as_single_posts_do(store: Store) -> None:
    """Also if it stores the canonical articles itself."""
    newsroom = core(store)
    texts = {"head": HEAD, "tail": TAIL, "whole": WHOLE, "late": edited(TAIL, 7)}
    articles = [Article(id_, text=text, source=f"{id_}.example", lang="en") for id_, text in texts.items()]

    answers = await newsroom.ingest.submit_many(articles)

    assert not any(isinstance(answer, AggregatorError) for answer in answers)
    assert len(await groups(newsroom, *texts)) == 1


@pytest.mark.parametrize("sentences", [18, 28])
@pytest.mark.parametrize("order", ["film map print", "map film print", "film print map", "print film map"])
async def test_a_list_that_an_outlet_prints_below_its_articles_joins_no_groups(
    store: Store, order: str, sentences: int
) -> None:
    """The copy of one at another outlet has the list as well: most of each page."""
    newsroom, links = core(store), story(1, sentences)
    film, street = f"{story(2, 8)} {links}", f"{story(3, 8)} {links}"
    pages = {"film": (film, "one.example"), "map": (street, "one.example"), "print": (film, "two.example")}

    for id_ in order.split():
        await newsroom.post(id_, edited(pages[id_][0], len(id_), 1), source=pages[id_][1])

    found = await groups(newsroom, "film", "map", "print")
    assert sorted(map(sorted, found)) == [["film", "print"], ["map"]]


@pytest.mark.parametrize("gone", ["head", "tail", "copy", "whole"])
async def test_any_member_of_a_united_group_can_go(store: Store, gone: str) -> None:
    """Over a seal too; nothing names the deleted article, and each group lists its articles."""
    newsroom = core(store)
    await post_parts(newsroom)
    await seal(newsroom)

    await newsroom.ingest.delete(gone)

    left = [id_ for id_ in ("head", "tail", "copy", "whole") if id_ != gone]
    assert sorted(id_ for group in await groups(newsroom, *left) for id_ in group) == sorted(left)


async def test_the_order_of_versions_does_not_matter() -> None:
    """Whole, both parts and a copy are one group in the end in all orders."""
    texts = {"whole": WHOLE, "head": HEAD, "tail": TAIL, "copy": edited(WHOLE, 9)}
    for order in permutations(texts):
        newsroom = core(MemoryStore())
        for id_ in order:
            await newsroom.post(id_, texts[id_], source=f"{id_}.example")
        assert len(await groups(newsroom, *order)) == 1, order


async def test_members_that_shared_only_the_deleted_article_leave(store: Store) -> None:
    """The parts are no copies of each other; the copy of a part goes with it."""
    newsroom = core(store)
    for id_, text in (("whole", WHOLE), ("head", HEAD), ("tail", TAIL), ("copy", TAIL.upper())):
        await newsroom.post(id_, text, source=f"{id_}.example")
    assert len(await groups(newsroom, "whole", "head", "tail", "copy")) == 1

    await newsroom.ingest.delete("whole")

    assert await groups(newsroom, "head", "tail", "copy") == [["head"], ["tail", "copy"]]
    assert [await verdict(newsroom, id_) for id_ in ("head", "tail", "copy")] == ["new", "new", "duplicate"]
    found = await newsroom.post("later", edited(TAIL, 3), source="later.example")
    assert found.outcome.match is not None and found.outcome.match.canonical_id == "tail"


async def test_verdicts_that_rested_on_a_notice_are_withdrawn(store: Store) -> None:
    """The third headline shows that the text is not the article; later posts withdraw nothing more."""
    newsroom = core(store)
    titles = {"club": "Log in with your card", **dict(zip(("otters", "choir", "ferry"), UNLIKE, strict=True))}
    answers = {
        id_: await newsroom.post(id_, NOTICE, title=title, source="club.example")
        for id_, title in titles.items()
    }

    assert [answers[id_].outcome.verdict for id_ in ("club", "otters")] == ["new", "duplicate"]
    assert not answers["choir"].outcome.text_is_article
    assert [answer.withdrawn for answer in answers.values()] == [(), (), ("otters",), ()]
    assert await verdict(newsroom, "otters") == "new"
    assert await groups(newsroom, "club", "otters") == [["club"], ["otters"]]


async def test_a_notice_of_two_outlets_is_the_article_in_neither(store: Store) -> None:
    """Printed first by another one, under long texts: what one outlet's headlines show holds for all."""
    newsroom, wall = core(store), f"{NOTICE} {story(9, 90)}"
    posts = [("first", "a.example", "Log in with your card")]
    posts += [(f"b{n}", "b.example", title) for n, title in enumerate(UNLIKE)]
    posts += [("later", "c.example", "Mill sold to its workers")]
    answers = {
        id_: await newsroom.post(id_, wall, title=title, source=source) for id_, source, title in posts
    }

    assert [answers[id_].outcome.verdict for id_ in ("first", "b0", "b1")] == [
        "new",
        "duplicate",
        "duplicate",
    ]
    assert not answers["b2"].outcome.text_is_article and answers["b2"].withdrawn == ("b0", "b1")
    assert not answers["later"].outcome.text_is_article and answers["later"].outcome.keep


async def test_kept_pages_with_a_notice_are_withdrawn_too(store: Store) -> None:
    """A text that has nothing of any headline; sent again it is reported; a later text decides."""
    newsroom, wall = core(store), story(9, 12)
    titles = {**dict(zip(("otters", "choir", "ferry"), UNLIKE, strict=True)), "mill": "Mill sold to workers"}
    answers = [
        await newsroom.post(id_, wall, title=title, source="club.example") for id_, title in titles.items()
    ]

    assert [answer.outcome.keep for answer in answers] == [True] * 4
    assert [answer.outcome.text_is_article for answer in answers] == [True, True, False, False]
    assert [{*answer.withdrawn} for answer in answers] == [set(), set(), {"otters", "choir"}, set()]
    again = await newsroom.post("otters", wall, title=titles["otters"], source="club.example")
    assert (again.outcome.verdict, again.outcome.text_is_article, again.withdrawn) == ("new", False, ())
    fetched = await newsroom.post("otters", f"{story(5, 30)} {wall}", title=titles["otters"])
    assert fetched.outcome.text_is_article
