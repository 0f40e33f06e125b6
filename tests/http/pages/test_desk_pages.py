"""Pages of desks and webhooks: forms without scripts, what is shown of targets and deliveries."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.contract.requests import DeskIn
from aggregator.events.desks import Desk
from aggregator.events.webhooks.outbox import Attempt, Delivery, Outbox
from tests.support.factories import event
from tests.support.fake_service import START_MS, Client, FakeService

pytestmark = pytest.mark.integration

# A browser sends every field of the form, empty ones included.
FORM = {
    **{name: "" for name in DeskIn.__struct_fields__ if name != "paused"},
    "action": "save",
    "name": "Harbour",
    "terms": "bridge, Brackwater",
    "alert_size": "2",
}


async def make_desk(client: Client, service: FakeService) -> Desk:
    """A desk made by the form."""
    created = await client.post("/desks", data=FORM, allow_redirects=False)
    assert created.status == 303
    desks: list[Desk] = await service.events.desks.values()
    return desks[-1]


async def add_webhook(client: Client, desk: Desk, url: str = "https://desk.example/secret-path") -> str:
    """Id of a webhook target that was added by the form."""
    form = {"action": "add_target", "kind": "webhook", "address": url}
    page = await (await client.post(f"/desks/{desk.id}", data=form)).text()
    return str(re.findall(r'action="/webhooks/(\w+)"', page)[-1])


async def test_a_desk_is_made_by_a_form(client: Client, service: FakeService) -> None:
    """Lists are separated by commas, empty fields have their defaults."""
    response = await client.post("/desks", data=FORM)
    page = await response.text()
    (desk,) = await service.events.desks.values()

    assert (desk.name, desk.terms, desk.alert_size, desk.pause_minutes) == (
        "Harbour", ("bridge", "Brackwater"), 2, 5,
    )  # fmt: skip
    assert response.url.path == f"/desks/{desk.id}"
    assert "The desk was created." in page
    assert "Events about bridge or Brackwater. Notifies at 2 items, at most every 5 min." in page
    assert 'value="bridge, Brackwater"' in page


async def test_a_preview_saves_nothing(client: Client, service: FakeService) -> None:
    """It counts the events of the view, and those above the thresholds."""
    service.fake_events.stored = [
        event("e1", "Harbour bridge closed", "abc"),
        event("e2", "Old bridge <opens>", "a"),
        event("e3", "Bakery opens", "abc", terms=()),
    ]
    response = await client.post("/desks", data={**FORM, "action": "preview"})
    page = await response.text()

    assert response.status == 200 and await service.events.desks.values() == []
    assert "2 events in this view in the last 7 days, 1 would have been notified." in page
    assert "Old bridge &lt;opens&gt;" in page and "Bakery" not in page
    assert 'value="Harbour"' in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "Name of the desk: blank"),
        ({"alert_size": "many"}, "At this many items: expected"),
        ({"quiet_from": "22:00"}, "Until: give both ends of the quiet hours"),
        ({"time_zone": "Mars/Base"}, "unknown time zone"),
    ],
)
async def test_a_problem_is_shown_with_the_form(client: Client, change: dict[str, str], message: str) -> None:
    """As it was sent."""
    response = await client.post("/desks", data={**FORM, **change})
    page = await response.text()

    assert response.status == 200
    assert message in page and 'value="bridge, Brackwater"' in page


async def test_a_desk_is_changed_and_deleted(client: Client, service: FakeService) -> None:
    """A second desk of the same name is refused."""
    desk = await make_desk(client, service)
    same = await client.post("/desks", data=FORM)
    saved = await client.post(f"/desks/{desk.id}", data={**FORM, "terms": "", "paused": "on"})
    (changed,) = await service.events.desks.values()
    await add_webhook(client, desk)
    deleted = await client.post(f"/desks/{desk.id}", data={"action": "delete"})

    assert "there is a desk" in await same.text()
    assert "Saved." in await saved.text()
    assert (changed.id, changed.terms, changed.paused) == (desk.id, (), True)
    assert "All events. Notifications are paused." in await saved.text()
    assert deleted.url.path == "/desks" and "There is no desk yet." in await deleted.text()
    assert await service.events.subscriptions.values() == []


async def test_targets_are_shown_masked(client: Client, service: FakeService) -> None:
    """Their path is secret; the signing secret is shown once."""
    desk = await make_desk(client, service)
    form = {"action": "add_target", "kind": "webhook", "address": "https://desk.example/secret-path"}
    added = await (await client.post(f"/desks/{desk.id}", data=form)).text()
    later = await (await client.get(f"/desks/{desk.id}")).text()

    assert "whsec_" in added and "whsec_" not in later
    for page in (added, later, await (await client.get("/webhooks")).text()):
        assert "https://desk.example/…" in page and "secret-path" not in page


async def test_a_target_may_get_later_changes(client: Client, service: FakeService) -> None:
    """Chosen in the form; the page says where links are missing, and how many events are open."""
    desk = await make_desk(client, service)
    service.fake_events.stored = [
        event("e1", "Harbour bridge closed"),
        event("e2", "Harbour", status="closed"),
    ]
    form = {"action": "add_target", "kind": "slack", "address": "https://chat.example/in"}
    page = await (await client.post(f"/desks/{desk.id}", data=form | {"later": "development closed"})).text()
    refused = await client.post(f"/desks/{desk.id}", data=form | {"later": "rumours"})
    service.settings = replace(service.settings, public_url="https://news.example")
    with_links = await (await client.get(f"/desks/{desk.id}")).text()
    (target,) = await service.events.subscriptions.values()
    listed = await (await client.get("/desks")).text()

    assert target.kinds == ("development", "closed") and refused.status == 400
    assert "also told: development, ended" in page
    assert "(setting <code>public_url</code>)" in page and "public_url" not in with_links
    assert (
        f'<a href="/?watch={desk.id}" dir="auto">Harbour</a> <span class="count">1 event not handled</span>'
        in listed
    )


@pytest.mark.parametrize(
    ("kind", "address", "sentence"),
    [
        ("slack", "http://chat.example/hook", "Expected a URL that begins with https://."),
        ("webhook", "https://10.0.0.1/hook", "Webhooks go to public addresses only"),
        ("mail", "desk at news", "Expected one e-mail address, such as desk@example.org."),
    ],
)
async def test_a_refused_target_keeps_what_was_typed(
    client: Client, service: FakeService, kind: str, address: str, sentence: str
) -> None:
    """With one sentence in the form, without names of fields; the form of the desk is as stored."""
    service.settings = replace(service.settings, smtp_url="smtp://mail.example", smtp_sender="n@x.example")
    desk = await make_desk(client, service)
    form = {"action": "add_target", "kind": kind, "address": address, "later": "closed"}
    page = await (await client.post(f"/desks/{desk.id}", data=form)).text()

    assert f'id="t-problem">{sentence}' in page
    assert f'name="address" value="{address}"' in page
    assert f'value="{kind}" selected' in page and 'value="closed" selected' in page
    assert 'value="bridge, Brackwater"' in page


async def test_the_form_offers_what_works(client: Client, service: FakeService) -> None:
    """E-mail once a server is set up, else a chat, which gets no signing secret and can be removed."""
    desk = await make_desk(client, service)
    without = await (await client.get(f"/desks/{desk.id}")).text()
    form = {"action": "add_target", "kind": "slack", "address": "ann@news.example"}
    mailed = await (await client.post(f"/desks/{desk.id}", data=form)).text()
    assert "An e-mail address" not in without and 'id="t-problem">E-mail is not set up' in mailed
    assert mailed.count("E-mail is not set up") == 1
    form["address"] = "https://chat.example/in"
    added = await (await client.post(f"/desks/{desk.id}", data=form)).text()
    service.settings = replace(service.settings, smtp_url="smtp://mail.example", smtp_sender="n@x.example")
    with_mail = await (await client.get(f"/desks/{desk.id}")).text()

    assert '<option value="mail" disabled>E-mail (not set up)' in without
    assert 'value="slack" selected' in without and "smtp_sender" in without
    assert "Added." in added and "whsec_" not in added and 'name="action" value="remove"' in added
    assert 'value="mail" selected' in with_mail and "AGGREGATOR_SMTP" not in with_mail


async def test_the_form_names_the_schemes_that_are_accepted(client: Client, service: FakeService) -> None:
    """Plain http within the newsroom network, if the settings allow it."""
    desk = await make_desk(client, service)
    public = await (await client.get(f"/desks/{desk.id}")).text()
    service.settings = replace(service.settings, webhook_allow_private_addresses=True)
    private = await (await client.get(f"/desks/{desk.id}")).text()

    assert "URL that begins with https://</span>" in public
    assert "URL that begins with https:// or http://</span>" in private


async def test_mail_needs_a_server(client: Client, service: FakeService) -> None:
    """The sentence names the setting; with one the address is accepted."""
    desk = await make_desk(client, service)
    form = {"action": "add_target", "kind": "mail", "address": "desk@newsroom.example"}
    refused = await client.post(f"/desks/{desk.id}", data=form)
    service.settings = replace(service.settings, smtp_url="smtp://mail.example", smtp_sender="n@x.example")
    accepted = await client.post(f"/desks/{desk.id}", data=form)

    assert 'id="t-problem">E-mail is not set up' in await refused.text()
    assert accepted.status == 200 and "<code>desk@newsroom.example</code>" in await accepted.text()


async def test_a_test_is_sent_and_its_result_shown(client: Client, service: FakeService) -> None:
    """Delivered and failed; it is not counted as a delivery."""
    calls, statuses = [], [200, 500]

    async def receive(request: web.Request) -> web.Response:
        calls.append(await request.json())
        return web.Response(status=statuses.pop(0))

    app = web.Application()
    app.router.add_post("/in", receive)
    service.settings = replace(service.settings, webhook_allow_private_addresses=True)
    service.background.webhook_dispatcher.sender.allow_private = True
    async with TestServer(app) as receiver:
        desk = await make_desk(client, service)
        target = await add_webhook(client, desk, str(receiver.make_url("/in")))
        form = {"action": "ping", "next": f"/desks/{desk.id}"}
        delivered = await client.post(f"/webhooks/{target}", data=form)
        failed = await client.post(f"/webhooks/{target}", data=form)
    await service.background.webhook_dispatcher.close()

    assert [call["type"] for call in calls] == ["ping", "ping"]
    assert calls[0]["data"]["desk"] == {"id": desk.id, "name": "Harbour"}
    assert delivered.url.path == f"/desks/{desk.id}"
    assert "was delivered." in await delivered.text()
    assert "failed: answered with status 500." in await failed.text()
    assert "Failing" in await failed.text()
    assert "the last message to 1 target failed" in await (await client.get("/health")).text()
    assert (await service.events.subscriptions.get(target)).delivered == 0


async def test_the_history_of_a_target(client: Client, service: FakeService) -> None:
    """Attempts with results and the next one, pending and abandoned deliveries; the latter are sent again."""
    desk = await make_desk(client, service)
    target = await add_webhook(client, desk)
    service.fake_events.stored = [event("e1", "Harbour bridge closed")]
    queue = service.background.webhook_dispatcher.queue
    title = "Harbour: 7 new events"
    waiting = Delivery("m1", target, "e1", "alert", b"{}", START_MS, START_MS + 300_000, 1, "busy", 7, title)
    dead = Delivery(
        "m0", target, "gone", "alert", b"{}", START_MS, START_MS, 8, "answered with status 500", 1, "Gone"
    )
    tried = Attempt("m1", target, "alert", START_MS, 1, "busy", START_MS + 300_000, "e1", 7, title)
    await queue.save(None, Outbox(b"", (waiting,)), [dead], [tried])
    page = await (await client.get(f"/webhooks/{target}")).text()
    listed = await (await client.get(f"/v1/webhooks/{target}")).json()
    await client.post(f"/webhooks/{target}", data={"action": "retry"})
    retried = (await queue.outbox.read_with_raw())[1].calls
    await client.post(f"/webhooks/{target}", data={"action": "resend", "delivery": "m0"})
    after = await (await client.get(f"/webhooks/{target}")).text()

    assert page.count('<a href="/events/e1" dir="auto">Harbour: 7 new events</a>') == 2
    assert "Harbour bridge closed" not in page
    assert (listed["attempts"][0]["title"], listed["dead"][0]["title"]) == (title, "Gone")
    assert "next attempt" in page and "Not delivered" in page and "answered with status 500" in page
    assert retried[0].due_ms == START_MS and retried[0].attempts == 1
    assert [(d.id, d.attempts) for d in (await queue.outbox.read_with_raw())[1].calls] == [
        ("m1", 1),
        ("m0", 0),
    ]
    assert "Not delivered" not in after


async def test_a_deleted_desk_leaves_its_history_and_nothing_pending(
    client: Client, service: FakeService
) -> None:
    """Nor a count of what was given up; the targets of others are as they were."""
    desk = await make_desk(client, service)
    target, kept = await add_webhook(client, desk), Delivery("m2", "h2", "", "fired", b"{}", 0, 0)
    queue = service.background.webhook_dispatcher.queue
    waiting = Delivery("m1", target, "e1", "alert", b"{}", START_MS, START_MS + 300_000, 1, "busy")
    tried = Attempt("m0", target, "alert", START_MS, title="Harbour: Bridge closed")
    await queue.save(None, Outbox(b"", (waiting, kept)), [waiting], [tried])
    await client.post(f"/desks/{desk.id}", data={"action": "delete"})
    page = await (await client.get("/webhooks")).text()
    health = await (await client.get("/health")).text()

    assert await queue.pending() == {"h2": 1}
    assert "Harbour: Bridge closed" in page and "removed" in page and f'href="/webhooks/{target}"' not in page
    assert "could not be delivered" not in health


async def test_a_repeated_attempt_announces_no_next_one(client: Client, service: FakeService) -> None:
    """Only the last attempt at each delivery says when the next one is."""
    desk = await make_desk(client, service)
    target = await add_webhook(client, desk)
    tried = [
        Attempt("m1", target, "alert", START_MS, 1, "busy", START_MS + 5_000),
        Attempt("m2", target, "alert", START_MS, 1, "busy", START_MS + 300_000),
        Attempt("m1", target, "alert", START_MS + 5_000, 2),
    ]
    await service.background.webhook_dispatcher.queue.save(None, Outbox(), [], tried)
    page = await (await client.get(f"/webhooks/{target}")).text()

    assert page.count("busy") == 2
    assert page.count("next attempt") == 1 and "no further attempt" not in page


async def test_a_target_is_suspended_resumed_and_removed(client: Client, service: FakeService) -> None:
    """Each returns to the page it was sent from, never to another site."""
    desk = await make_desk(client, service)
    target = await add_webhook(client, desk)
    back = {"next": f"/desks/{desk.id}"}
    suspended = await (await client.post(f"/webhooks/{target}", data={"action": "disable", **back})).text()
    resumed = await (await client.post(f"/webhooks/{target}", data={"action": "enable", **back})).text()
    elsewhere = await client.post(
        f"/webhooks/{target}", data={"action": "retry", "next": "//evil.example/"}, allow_redirects=False
    )
    removed = await client.post(f"/webhooks/{target}", data={"action": "remove", **back})

    assert "Paused" in suspended and "paused by an editor" in suspended
    assert "Not used yet" in resumed
    assert elsewhere.headers["Location"].startswith("/?")
    assert removed.url.path == f"/desks/{desk.id}" and "Nobody yet." in await removed.text()


async def test_a_reader_sees_desks_but_no_targets(client: Client, service: FakeService) -> None:
    """The page of webhooks and every change need the role editor."""
    desk = await make_desk(client, service)
    await add_webhook(client, desk)
    await service.edge.api_keys.add("Ada", "admin")
    _, reader = await service.edge.api_keys.add("Ben", "reader")
    headers = {"Authorization": f"Bearer {reader}"}
    page = await (await client.get(f"/desks/{desk.id}", headers=headers)).text()
    listed = await (await client.get("/desks", headers=headers)).text()
    refused = [
        await client.get("/webhooks", headers=headers),
        await client.post("/desks", data=FORM, headers=headers),
        await client.post(f"/desks/{desk.id}", data=FORM, headers=headers),
    ]

    assert "Harbour" in page and "Harbour" in listed
    assert "desk.example" not in page + listed and "desk-form" not in page + listed
    assert [response.status for response in refused] == [403] * 3


async def test_pages_of_other_sites_change_nothing(client: Client, service: FakeService) -> None:
    """A form that a browser sends for another site's page."""
    response = await client.post("/desks", data=FORM, headers={"Origin": "https://evil.example"})

    assert response.status == 403 and await service.events.desks.values() == []


async def test_the_front_page_links_to_desks(client: Client, service: FakeService) -> None:
    """The one in force is the headline of the page."""
    desk = await make_desk(client, service)
    service.fake_events.stored = [
        event("e1", "Harbour bridge closed"),
        event("e2", "Bakery opens", terms=()),
    ]
    everything = await (await client.get("/")).text()
    view = await (await client.get(f"/?watch={desk.id}")).text()

    assert f'<a href="/?watch={desk.id}" class="chip"><bdi>Harbour</bdi>' in everything
    assert '<h1 id="breaking" dir="auto">Harbour</h1>' in view
    assert '<a class="chip on" href="/" aria-current="true"><bdi>Harbour</bdi>' in view  # once, to leave it
    assert "Harbour bridge closed" in view and "Bakery opens" not in view
