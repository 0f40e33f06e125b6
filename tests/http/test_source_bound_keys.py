"""Keys bound to a source, over the real service: what belongs to another source stays as it is."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from aiohttp import ClientResponse

from aggregator.app import Service, open_service
from aggregator.auth.api_keys import Role
from aggregator.settings import Settings
from aggregator_client import Client as NewsClient
from tests.support.factories import story
from tests.support.fake_service import Client, serving

pytestmark = pytest.mark.integration

TEXT = (
    "The lock keeper of Estmark raised the gates at dawn, because the river had risen two metres overnight. "
    "Barges with timber wait below the town, and the ferry to the mill does not run before Thursday. "
    "The council has asked the owners of cellars near the quay to bring pumps and sandbags."
)
GERMAN = (
    "Der Schleusenwärter von Estmark hat die Tore im Morgengrauen gehoben, weil der Fluss stark gestiegen "
    "ist. Schiffe mit Holz warten unterhalb der Stadt, und die Fähre zur Mühle fährt nicht vor Donnerstag."
)
OTHER_TEXT = (
    "Nobody has asked the lock keeper, and the gates of the town stay closed until the end of the week."
)
URL = "https://radio.example/locks/7"
ID = "radio.example/locks/7"
TITLE = "River rises at Estmark"
RADIO = {"url": URL, "source": "Radio", "title": TITLE, "text": TEXT}
FORGED = {"url": "https://gazette.example/forged", "title": "Forged headline"}


@dataclass
class Keys:
    """A service that requires keys, with one bound to Gazette, one to Radio, and an admin key."""

    client: Client
    bound: dict[str, str]
    radio: dict[str, str]
    admin: dict[str, str]

    async def post(self, headers: dict[str, str], body: dict[str, Any], path: str = "/v1/articles") -> int:
        return (await self.client.post(path, json=body, headers=headers)).status

    async def stored(self, id_: str = ID) -> dict[str, Any] | None:
        response = await self.client.get(f"/v1/articles/{id_}", headers=self.admin)
        return await response.json() if response.status == 200 else None


async def open_keys(service: Service, client: Client) -> Keys:
    async def header(name: str, *sources: str) -> dict[str, str]:
        role: Role = "crawler" if sources else "admin"
        _, text = await service.edge.api_keys.add(name, role, sources=sources)
        return {"Authorization": f"Bearer {text}"}

    return Keys(
        client,
        admin=await header("Desk"),
        bound=await header("Gazette", "Gazette"),
        radio=await header("Radio", "Radio"),
    )


@pytest.fixture
async def keys() -> AsyncIterator[Keys]:
    """Keys of a service in memory, in which one article of Radio is stored."""
    async with open_service(Settings(store_url="memory")) as service, serving(service) as client:
        opened = await open_keys(service, client)
        assert await opened.post(opened.radio, RADIO) == 201
        yield opened


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def raw(text: str) -> bytes:
    return text.encode()


OWN = {"source": "Gazette"}
# What the key of Gazette sends: method, path, body.
ATTEMPTS: dict[str, tuple[str, str, bytes]] = {
    "another text": ("POST", "/v1/articles", line(id=ID, text=OTHER_TEXT, **OWN)),
    "the same text": ("POST", "/v1/articles", line(id=ID, text=TEXT, **OWN)),
    "the same text in capitals": ("POST", "/v1/articles", line(id=ID, text=TEXT.upper(), **OWN)),
    "the same text, title and url forged": ("POST", "/v1/articles", line(id=ID, text=TEXT, **FORGED, **OWN)),
    "the same text without a source": ("POST", "/v1/articles", line(id=ID, text=TEXT, **FORGED)),
    "the same text, empty source": ("POST", "/v1/articles", line(id=ID, text=TEXT, source="", **FORGED)),
    "the same text, null source": ("POST", "/v1/articles", line(id=ID, text=TEXT, source=None, **FORGED)),
    "a title alone": ("POST", "/v1/articles", line(id=ID, title="Forged headline", **OWN)),
    "html": ("POST", "/v1/articles", line(id=ID, html=f"<p>{OTHER_TEXT}</p><p>{TEXT}</p>", **OWN)),
    "another language": ("POST", "/v1/articles", line(id=ID, text=GERMAN, lang="de", **OWN)),
    "an id derived from the url": ("POST", "/v1/articles", line(url=URL, text=OTHER_TEXT, **OWN)),
    "an id derived from the url with tracking": (
        "POST", "/v1/articles", line(url="http://Radio.example/locks/7/?utm_source=x#y", text=TEXT, **OWN)
    ),
    "dry run, the same text": ("POST", "/v1/articles?dry_run=true", line(id=ID, text=TEXT, **OWN)),
    "dry run, another text": ("POST", "/v1/articles?dry_run=true", line(id=ID, text=OTHER_TEXT, **OWN)),
    "source of the other": ("POST", "/v1/articles", line(id=ID, text=OTHER_TEXT, source="Radio")),
    "source in lower case": ("POST", "/v1/articles", line(id=ID, text=OTHER_TEXT, source="radio")),
    "own source in lower case": ("POST", "/v1/articles", line(id=ID, text=OTHER_TEXT, source="gazette")),
    "own source in full width": ("POST", "/v1/articles", line(id=ID, text=OTHER_TEXT, source="Ｇazette")),
    "own source with a combining mark": (
        "POST", "/v1/articles", line(id=ID, text=OTHER_TEXT, source="Gazette\u0301")
    ),
    "own source with a zero-width space": (
        "POST", "/v1/articles", line(id=ID, text=OTHER_TEXT, source="Gazette\u200b")
    ),
    "own source with white space": ("POST", "/v1/articles", line(id=ID, text=TEXT, source=" Gazette\t")),
    "own source with a control character": (
        "POST", "/v1/articles", line(id=ID, text=TEXT, source="Gaz\u0000ette")
    ),
    "two sources, own last": (
        "POST", "/v1/articles", raw(f'{{"id":"{ID}","source":"Radio","source":"Gazette","text": "A b."}}')
    ),
    "two sources, own first": (
        "POST", "/v1/articles", raw(f'{{"id":"{ID}","source":"Gazette","source":"Radio","text": "A b."}}')
    ),
    "two ids": ("POST", "/v1/articles", raw(f'{{"id": "own", "id": "{ID}", "text": "A b."}}')),
    "batch, another text": ("POST", "/v1/articles/batch", line(id=ID, text=OTHER_TEXT, **OWN)),
    "batch, the same text": ("POST", "/v1/articles/batch", line(id=ID, text=TEXT, **FORGED)),
    "batch, twice the same id": (
        "POST", "/v1/articles/batch",
        line(id=ID, text=OTHER_TEXT, **OWN) + b"\n" + line(id=ID, text=TEXT, **OWN),
    ),
    "batch, dry run": ("POST", "/v1/articles/batch?dry_run=true", line(id=ID, text=TEXT, **OWN)),
    "batch, another language": ("POST", "/v1/articles/batch", line(id=ID, text=GERMAN, lang="de", **OWN)),
    "batch, two sources": (
        "POST", "/v1/articles/batch", raw(f'{{"id":"{ID}","source":"Radio","source":"Gazette","text": "A"}}')
    ),
    "delete": ("DELETE", f"/v1/articles/{ID}", b""),
    "delete, escaped": ("DELETE", "/v1/articles/radio.example%2Flocks%2F7", b""),
    "read": ("GET", f"/v1/articles/{ID}", b""),
    "read the head": ("HEAD", f"/v1/articles/{ID}", b""),
    "copies": ("GET", f"/v1/articles/{ID}/copies", b""),
    "related": ("GET", f"/v1/articles/{ID}/related", b""),
    "related to a text": ("POST", "/v1/related", line(text=TEXT)),
    "related to ids": ("POST", "/v1/related", line(ids=[ID])),
    "explain": ("POST", "/v1/explain", line(a=ID, b={"text": TEXT})),
    "page lookup": ("GET", f"/search?q={ID}", b""),
    "search": ("GET", "/v1/search?q=locks", b""),
    "list of articles": ("GET", "/v1/articles", b""),
    "page search": ("GET", "/search?q=locks", b""),
    "page compare": ("GET", f"/compare?a={ID}&b={ID}", b""),
    "front page": ("GET", "/", b""),
    "events": ("GET", "/v1/events", b""),
    "feed": ("GET", "/v1/events.atom", b""),
    "metrics": ("GET", "/metrics", b""),
    "event action": (
        "POST", "/v1/events/e/actions", line(action="remove_item", item=ID, actor="Gazette")
    ),
}  # fmt: skip


OWN_ID = f"Gazette:{ID}"
# Posts of the caller's own articles under that id: no article is refused for its id.
STORED_ELSEWHERE = {
    name
    for name in ATTEMPTS
    if name.startswith(("another", "the same", "html", "a title", "an id", "own source", "dry run", "batch"))
} - {"own source with a combining mark", "batch, two sources"}


def statuses_of(response: ClientResponse, text: str) -> set[int]:
    """The status of the answer, or those of the lines of a batch."""
    if response.content_type != "application/x-ndjson":
        return {response.status}
    return {json.loads(answer).get("error", {}).get("status", 200) for answer in text.splitlines()}


@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_an_article_of_another_source_is_neither_read_nor_changed(keys: Keys, attempt: str) -> None:
    """Every attempt is refused, or stored under a qualified id; it reveals no title and changes nothing."""
    before = await keys.stored()
    method, path, body = ATTEMPTS[attempt]
    async with keys.client.request(
        method, path, data=body or None, headers=keys.bound, allow_redirects=False
    ) as response:
        text = await response.text()

    if attempt in STORED_ELSEWHERE:
        answers = [json.loads(answer) for answer in text.splitlines()]
        assert {(answer["id"], answer["stored_as"]) for answer in answers} == {(OWN_ID, OWN_ID)}
        assert response.status in {200, 201}
        stored = await keys.stored(OWN_ID)
        assert (stored is None) == ("dry run" in attempt) and (
            stored is None or stored["source"] == "Gazette"
        )
    else:
        assert statuses_of(response, text) <= {400, 403}, text
    assert TITLE not in text
    assert "Radio" not in text.replace("'Radio'", "")  # the caller's own words may be quoted
    assert await keys.stored() == before
    assert before is not None and before["title"] == TITLE


async def test_own_articles_are_posted_updated_read_and_deleted(keys: Keys) -> None:
    """What is not refused: a retry, an update, other metadata, a missing source, and undoing."""
    own = {"id": "own", "text": OTHER_TEXT}
    statuses = [
        await keys.post(keys.bound, own),
        await keys.post(keys.bound, own),
        await keys.post(keys.bound, {**own, "url": "https://gazette.example/gates", "source": "Gazette"}),
        await keys.post(keys.bound, {**own, "text": f"{OTHER_TEXT} The ferry waits."}),
    ]
    stored = await keys.stored("own")

    assert statuses == [201, 200, 200, 200]
    assert stored is not None and stored["source"] == "Gazette"
    assert (await keys.client.get("/v1/articles/own", headers=keys.bound)).status == 200
    assert (await keys.client.delete("/v1/articles/own", headers=keys.bound)).status == 204
    assert await keys.stored("own") is None


async def test_the_same_text_under_an_own_id_is_a_duplicate_that_names_only_ids(keys: Keys) -> None:
    """A crawler needs the id of what it repeats; titles and addresses of related articles are left out."""
    response = await keys.client.post("/v1/articles", json={"id": "own", "text": TEXT}, headers=keys.bound)
    near = await keys.client.post(
        "/v1/articles", json={"id": "near", "text": OTHER_TEXT, "title": TITLE}, headers=keys.bound
    )
    answer = await response.json()

    assert answer["verdict"] == "duplicate"
    assert answer["duplicate_of"]["id"] == ID
    assert answer["related"] == []
    assert all(item["source"] == "Gazette" for item in (await near.json())["related"])


async def test_a_change_of_source_by_a_key_for_all_sources_moves_the_article(keys: Keys) -> None:
    """With a changed text; the same text is a repeat. The new owner may change it from then on."""
    moved = {"id": ID, "title": TITLE, "text": TEXT, "source": "Gazette"}
    assert await keys.post(keys.admin, moved) == 200 and (await keys.stored() or {})["source"] == "Radio"
    assert await keys.post(keys.admin, {**moved, "text": TEXT + " It rains.", "url": URL}) == 200
    stored = await keys.stored()

    assert stored is not None and (stored["source"], stored["title"], stored["url"]) == (
        "Gazette",
        TITLE,
        URL,
    )
    assert await keys.post(keys.bound, {"id": ID, "text": TEXT + " It pours."}) == 200
    assert await keys.post(keys.radio, RADIO) == 200 and await keys.stored(f"Radio:{ID}") is not None


async def test_an_article_without_source_belongs_to_no_bound_key(keys: Keys) -> None:
    """Only a key for all sources may change it."""
    await keys.post(keys.admin, {"id": "anonymous", "text": OTHER_TEXT})
    await keys.post(keys.bound, {"id": "anonymous", "text": TEXT})

    assert (await keys.stored("anonymous") or {})["source"] == "" and await keys.stored("Gazette:anonymous")
    assert (await keys.client.delete("/v1/articles/anonymous", headers=keys.bound)).status == 403


@pytest.mark.parametrize("texts", [(story(1), story(2)), (story(3), story(3))])
async def test_of_simultaneous_posts_of_one_id_one_source_owns_it(
    valkey_url: str, texts: tuple[str, str]
) -> None:
    """Two services on one store: the other one's article is stored under a qualified id.

    In one language; of two first posts in two languages at once both may own it.
    """
    settings = Settings(store_url=valkey_url)
    async with (
        open_service(settings) as one,
        open_service(settings) as two,
        serving(one) as client,
        serving(two) as other_client,
    ):
        keys = await open_keys(one, client)
        other = Keys(other_client, keys.bound, keys.radio, keys.admin)
        for number in range(40):
            id_ = f"article-{number}"
            bodies = [{"id": id_, "text": f"{text} {number}", "title": f"{number}"} for text in texts]
            gazette, radio = await asyncio.gather(
                keys.post(keys.bound, {**bodies[0], "source": "Gazette"}),
                other.post(other.radio, {**bodies[1], "source": "Radio"}),
            )
            stored = await keys.stored(id_)
            own = {name: await keys.stored(f"{name}:{id_}") for name in ("Gazette", "Radio")}

            assert {gazette, radio} <= {200, 201}
            assert stored is not None and own[stored["source"]] is None
            assert {name for name, article in own.items() if article is not None} == set(own) - {
                stored["source"]
            }


async def test_a_delete_and_a_change_of_owner_at_the_same_moment(valkey_url: str) -> None:
    """Either the old owner deletes its article first, or the delete is refused; never the new owner's."""
    settings = Settings(store_url=valkey_url)
    async with open_service(settings) as service, serving(service) as client:
        keys = await open_keys(service, client)
        for number in range(40):
            id_ = f"article-{number}"
            body = {"id": id_, "text": story(number), "url": f"https://gazette.example/{id_}"}
            await keys.post(keys.bound, body)
            moved, deleted = await asyncio.gather(
                keys.post(keys.admin, body | {"text": story(number) + " Moved.", "source": "Radio"}),
                client.delete(f"/v1/articles/{id_}", headers=keys.bound),
            )
            stored = await keys.stored(id_)

            assert (moved, deleted.status) in {(201, 204), (200, 403)}
            assert stored is not None and stored["source"] == "Radio"


@pytest.mark.parametrize("on_failure", ["open", "closed"])
async def test_clients_refuse_an_article_of_another_source(
    keys: Keys, on_failure: Literal["open", "closed"]
) -> None:
    """Alone or in a batch, failing open or closed: the key serves the others."""
    key = keys.bound["Authorization"].removeprefix("Bearer ")
    own, foreign = {"id": "own", "text": OTHER_TEXT}, {"id": "foreign", "text": TEXT, "source": "Radio"}
    async with NewsClient(str(keys.client.make_url("/")), key=key, on_failure=on_failure) as client:
        decisions = [await client.submit(foreign), *await client.submit_many([own, foreign])]

    assert [(each.verdict, each.keep, each.kind) for each in decisions] == [
        ("refused", True, "refused"), ("new", True, ""), ("refused", True, "refused")
    ]  # fmt: skip
    assert all("restricted to Gazette" in each.problem for each in decisions[::2])
