"""Notifications of desks from an event change to each kind of target, on every kind of store."""

from __future__ import annotations

import email
import email.policy
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from email.message import EmailMessage
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.domain import Outcome
from aggregator.events.desks import Desk, Desks
from aggregator.events.event import EditorAction
from aggregator.events.repository import EventRepository
from aggregator.events.webhooks.dispatcher import DESK_STATES_KEY, WebhookDispatcher
from aggregator.events.webhooks.mail import SmtpServer
from aggregator.events.webhooks.outbox import MAX_ATTEMPTS, OUTBOX_KEY, Attempt
from aggregator.events.webhooks.subscriptions import Subscription, Subscriptions
from aggregator.index import StoredArticle
from aggregator.store.base import Put, Store
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS
from tests.support.factories import EVENT_MS, Clock, commit_event, event
from tests.support.loaders import record
from tests.support.mail_server import MailServer, mail_server

pytestmark = pytest.mark.integration


@dataclass
class Newsroom:
    """A desk over one store with its dispatcher; ``calls``: what the receiver at ``url`` got."""

    repository: EventRepository
    subscriptions: Subscriptions
    desks: Desks
    dispatcher: WebhookDispatcher
    clock: Clock
    mail: MailServer
    desk: Desk
    url: str
    statuses: list[int]
    calls: list[dict[str, Any]]

    async def add(self, url: str = "", **options: Any) -> Subscription:
        """Add a target to the desk."""
        return (
            await self.subscriptions.subscribe(
                url or self.url, (), options.pop("format", "standard"), EVENT_MS, desk=self.desk.id, **options
            )
        )[0]

    async def change(self, id_: str, size: int, kind: Any = "fired", **fields: Any) -> None:
        """Commit a version of an event, and let the dispatcher run."""
        items = [f"{id_}{n}" for n in range(size)]
        await commit_event(
            self.repository,
            kind,
            event(id_, fields.pop("title", "Bridge <closed> @all"), items, **fields),
            EVENT_MS,
        )
        await self.dispatcher.lead()


def mail_of(envelope: Any) -> Any:
    """The message that was received."""
    return email.message_from_bytes(envelope.content, policy=email.policy.default)


def text_of(message: EmailMessage, kind: str = "plain") -> str:
    """The text of a mail, or its HTML."""
    part = message.get_body((kind,))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


async def stored_articles(ids: Sequence[str]) -> dict[str, StoredArticle]:
    """The articles of the event "e1", of three outlets, the last of which has no address."""
    outlets = ("one", "two", "two", "three")
    return {
        f"e1{n}": StoredArticle(
            replace(
                record(1, n),
                title=f"Ferry <{n}> sinks",
                source=f"{outlet}.example",
                url=f"https://{outlet}.example/{n}?a=1&b=2" if n < 3 else "javascript:alert(1)",
                published_at_ms=EVENT_MS + n * MINUTE_MS,
            ),
            Outcome("new"),
        )
        for n, outlet in enumerate(outlets)
        if f"e1{n}" in ids
    }


@pytest.fixture
async def newsroom(store: Store) -> AsyncIterator[Newsroom]:
    """A desk for events about the bridge from 3 items, after the first run of the dispatcher."""
    repository, subscriptions, clock = EventRepository(store), Subscriptions(store), Clock(EVENT_MS)
    desks = Desks(store)
    desk, _ = await desks.create(Desk("", "Harbour", EVENT_MS, terms=("bridge",), alert_size=3))
    calls: list[dict[str, Any]] = []
    statuses: list[int] = []

    async def receive(request: web.Request) -> web.Response:
        calls.append(await request.json())
        return web.Response(status=statuses.pop(0) if statuses else 200)

    app = web.Application()
    app.router.add_post("/in", receive)
    async with mail_server() as mail, TestServer(app) as receiver:
        dispatcher = WebhookDispatcher(
            repository, subscriptions, clock, get_articles=stored_articles,
            base_url="https://news.example", allow_private=True,
            smtp=SmtpServer("127.0.0.1", mail.port, "news@newsroom.example"),
        )  # fmt: skip
        newsroom = Newsroom(
            repository, subscriptions, desks, dispatcher, clock, mail, desk, str(receiver.make_url("/in")),
            statuses, calls,
        )  # fmt: skip
        await dispatcher.lead()
        yield newsroom
        await dispatcher.close()


async def test_an_event_reaches_every_target_of_its_desk_once(newsroom: Newsroom) -> None:
    """A signed call with the fields of the event, a text message, and an e-mail; not again when it grows."""
    await newsroom.add()
    await newsroom.add(format="slack")
    await newsroom.add("desk@newsroom.example", kind="mail")
    for size in (2, 3, 9):
        await newsroom.change("e1", size, "updated")
    signed = next(call for call in newsroom.calls if "type" in call)
    text = next(call["text"] for call in newsroom.calls if "text" in call)
    (envelope,) = newsroom.mail.envelopes
    message = mail_of(envelope)

    assert len(newsroom.calls) == 2
    assert (signed["type"], signed["data"]["desk"]) == (
        "desk.alert", {"id": newsroom.desk.id, "name": "Harbour"},
    )  # fmt: skip
    assert [(e["id"], e["size"]) for e in signed["data"]["events"]] == [("e1", 3)]
    assert signed["data"]["events"][0]["url"] == "https://news.example/events/e1"
    assert text.startswith("Harbour: Bridge &lt;closed&gt; @all\n")
    assert message["Subject"] == "Harbour: Bridge <closed> @all"
    assert "3 items from 2 outlets, 2 in the last hour" in text_of(message)
    assert f"Open the desk https://news.example/desks/{newsroom.desk.id}" in text_of(message)


async def test_a_mail_says_enough_to_decide(newsroom: Newsroom) -> None:
    """Link, numbers, first outlet, the newest headline of each outlet, why; as text and as HTML."""
    desk = await newsroom.desks.change(
        newsroom.desk.id, lambda desk: msgspec.structs.replace(desk, time_zone="Europe/Berlin")
    )
    await newsroom.add("desk@newsroom.example", kind="mail")
    await newsroom.change("e1", 4, first=(EVENT_MS, "e10", "one.example"))
    (envelope,) = newsroom.mail.envelopes
    message = mail_of(envelope)

    assert text_of(message) == (
        "Bridge <closed> @all https://news.example/events/e1\n"
        "4 items from 2 outlets, 3 in the last hour; first: one.example, 21 Sep, 16:13 CEST\n"
        "three.example: Ferry <3> sinks javascript:alert(1)\n"
        "two.example: Ferry <2> sinks https://two.example/2?a=1&b=2\n"
        "one.example: Ferry <0> sinks https://one.example/0?a=1&b=2\n"
        "When it was detected, 21 Sep, 16:13 CEST: 16 items within 4 hours, where 0.4 are usual.\n\n"
        f"Open the desk https://news.example/desks/{desk.id}\n"
    )
    html = text_of(message, "html")
    assert '<a href="https://two.example/2?a=1&amp;b=2">two.example: Ferry &lt;2&gt; sinks</a><br>' in html
    assert '<b><a href="https://news.example/events/e1">Bridge &lt;closed&gt; @all</a></b><br>4 items' in html
    assert "javascript:alert(1)<br>" in html and 'href="javascript' not in html


async def test_later_changes_reach_targets_that_chose_them(newsroom: Newsroom) -> None:
    """Of events that the desk has reported."""
    await newsroom.add()
    await newsroom.add("desk@newsroom.example", kind="mail", kinds=("development", "closed"))
    await newsroom.change("e1", 2)
    await newsroom.change("e1", 2, "development", developments=((EVENT_MS, ("troops",)),))
    assert newsroom.mail.envelopes == []  # below the threshold
    await newsroom.change("e1", 5, "updated")
    await newsroom.change("e1", 6, "development", developments=((EVENT_MS, ("troops",)),))
    await newsroom.change("e1", 7, "doubled")
    await newsroom.change("e1", 8, "closed", status="closed")
    sent = newsroom.mail.envelopes
    mails = [mail_of(envelope) for envelope in sent]

    assert [mail["Subject"] for mail in mails] == [
        f"Harbour: {label}Bridge <closed> @all" for label in ("", "Development: ", "Ended: ")
    ]
    assert "6 items from 2 outlets, new: troops" in text_of(mails[1])
    assert [call["type"] for call in newsroom.calls] == ["desk.alert"]


async def test_a_desk_is_not_notified_of_what_it_began_with(newsroom: Newsroom) -> None:
    """What had reached the thresholds is not new, whatever an editor does; what reaches them is."""
    earlier = {"detected_at_ms": EVENT_MS - 18 * MINUTE_MS}
    await newsroom.change("e1", 5, **earlier)
    await newsroom.change("e2", 2, **earlier)
    await newsroom.add()
    await newsroom.dispatcher.lead()

    await newsroom.change("e1", 5, "action", **earlier)
    await newsroom.change("e1", 6, "updated", **earlier)
    await newsroom.change("e2", 2, "updated", **earlier)
    assert newsroom.calls == []
    await newsroom.change("e2", 3, "updated", **earlier)
    assert [[e["id"] for e in call["data"]["events"]] for call in newsroom.calls] == [["e2"]]


async def test_a_new_headline_notifies_nobody(newsroom: Newsroom) -> None:
    """Not even if it has a word of the desk that the event lacked; the next item of the event does."""
    await newsroom.add()
    await newsroom.change("e1", 5, title="Harbour closed", terms=("harbour",))
    await newsroom.change("e1", 5, "action", title="Bridge down", terms=("harbour",))
    assert newsroom.calls == []

    await newsroom.change("e1", 6, "updated", title="Bridge down", terms=("harbour",))
    assert len(newsroom.calls) == 1


async def test_a_digest_reports_the_day_of_a_desk_once(newsroom: Newsroom) -> None:
    """At its hour in its time zone, ten of each list; none for the day on which the hour was set."""
    await newsroom.add()
    await newsroom.add(format="slack")
    await newsroom.add("desk@newsroom.example", kind="mail")
    hour = {"digest_at": "18:00", "time_zone": "Europe/Berlin", "alert_size": 1000}
    await newsroom.desks.change(newsroom.desk.id, lambda desk: msgspec.structs.replace(desk, **hour))
    six_ms = EVENT_MS + 2 * HOUR_MS - EVENT_MS % HOUR_MS  # 16:00 in UTC
    published = EditorAction("set_work_status", "Ada", EVENT_MS, "e3", work_status="published")

    async def sent(at_ms: int) -> list[str]:
        newsroom.clock.now_ms = at_ms
        await newsroom.dispatcher.lead()
        return [str(mail_of(envelope)["Subject"]) for envelope in newsroom.mail.envelopes]

    assert await sent(EVENT_MS) == []
    await newsroom.change("e3", 4, work_status="published", actions=(published,))
    for n in range(34):
        await newsroom.change(f"e{n}", 4)
    await newsroom.change("other", 4, title="Election", terms=("vote",))
    await newsroom.change("e4", 4, detected_at_ms=EVENT_MS - DAY_MS, first_seen_ms=EVENT_MS - DAY_MS)
    assert await sent(six_ms - 10) == []
    title = "Harbour: digest, 32 new, 1 developed, 1 published"
    assert await sent(six_ms) == await sent(six_ms + DAY_MS - 10) == [title]
    text = text_of(mail_of(newsroom.mail.envelopes[0]))
    assert text.index("NEW: 32") < text.index("DEVELOPED: 1") < text.index("PUBLISHED: 1")
    assert text.count("When it was detected,") == 12 and "and 22 more" in text
    assert "https://news.example/events/e3" in text and "/events/other" not in text
    assert {call.get("type") or call["text"].splitlines()[0] for call in newsroom.calls} == {
        "desk.digest", title,
    }  # fmt: skip
    # After days without service the last day alone is reported.
    assert await sent(six_ms + 9 * DAY_MS) == [title, "Harbour: digest"]


async def test_a_plain_webhook_gets_every_change_and_a_target_only_alerts(newsroom: Newsroom) -> None:
    """Both over one outbox."""
    await newsroom.add()
    await newsroom.subscriptions.subscribe(newsroom.url, (), "standard", EVENT_MS)
    await newsroom.change("e1", 5)
    await newsroom.change("e1", 5, "closed", status="closed")

    assert sorted(call["type"] for call in newsroom.calls) == ["desk.alert", "event.closed", "event.fired"]


async def test_many_events_are_one_message(newsroom: Newsroom) -> None:
    """Those after the first wait for the pause; ten are listed."""
    await newsroom.add()
    await newsroom.add("desk@newsroom.example", kind="mail")
    for n in range(13):
        await newsroom.change(f"e{n}", 3 + n)
    assert len(newsroom.calls) == 1
    newsroom.clock.now_ms += 5 * MINUTE_MS
    await newsroom.dispatcher.lead()
    data = newsroom.calls[-1]["data"]
    message = mail_of(newsroom.mail.envelopes[-1])
    await newsroom.dispatcher.lead()

    assert len(newsroom.calls) == 2
    assert ([e["id"] for e in data["events"]][:2], len(data["events"]), data["more"]) == (
        ["e12", "e11"],
        10,
        2,
    )
    assert message["Subject"] == "Harbour: 12 new events"
    assert "and 2 more" in text_of(message)


async def test_a_failing_target_is_retried_and_logged(newsroom: Newsroom) -> None:
    """The other target is not delayed; the history has each attempt and the time of the next."""
    failing = await newsroom.add()
    await newsroom.add("desk@newsroom.example", kind="mail")
    newsroom.statuses.append(503)
    await newsroom.change("e1", 5)
    newsroom.clock.now_ms += 10_000
    await newsroom.dispatcher.lead()
    history = await newsroom.dispatcher.queue.attempts(frozenset((failing.id,)))

    assert len(newsroom.mail.envelopes) == 1 and len(newsroom.calls) == 2
    assert {a.title for a in history} == {mail_of(newsroom.mail.envelopes[0])["Subject"]}
    assert [(a.number, a.error, a.next_ms > 0, a.event) for a in history] == [
        (2, "", False, "e1"),
        (1, "answered with status 503", True, "e1"),
    ]


async def test_a_suspended_target_gets_what_was_pending_when_it_is_resumed(newsroom: Newsroom) -> None:
    """Nothing new is enqueued for it meanwhile."""
    target = await newsroom.add()
    newsroom.statuses.append(503)
    await newsroom.change("e1", 5)
    await newsroom.subscriptions.suspend(target.id, "suspended by Ann")
    newsroom.clock.now_ms += 60 * MINUTE_MS
    await newsroom.change("e2", 5)
    assert len(newsroom.calls) == 1
    await newsroom.subscriptions.suspend(target.id, "")
    await newsroom.dispatcher.lead()

    assert [e["id"] for e in newsroom.calls[-1]["data"]["events"]] == ["e1"]
    assert await newsroom.dispatcher.queue.pending() == {}


async def test_an_abandoned_delivery_is_sent_again_under_its_id(newsroom: Newsroom) -> None:
    """And pending ones at once on request."""
    target = await newsroom.add()
    queue = newsroom.dispatcher.queue
    newsroom.statuses.extend([500] * 8)
    await newsroom.change("e1", 5)
    for _ in range(7):
        await queue.retry_now(target.id, newsroom.clock())
        await newsroom.dispatcher.lead()
    (letter,) = await queue.dead_letters({target.id})
    await queue.resend(target.id, letter.id, newsroom.clock())
    await newsroom.dispatcher.lead()
    history = await queue.attempts(frozenset((target.id,)))

    assert len(newsroom.calls) == 9 and letter.attempts == 8
    assert {attempt.delivery for attempt in history} == {letter.id} and history[0].error == ""


async def test_an_edit_during_a_call_does_not_lose_its_result(
    newsroom: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outbox changes between the call and the commit of its result; nothing is sent twice."""
    target = await newsroom.add()
    send = newsroom.dispatcher.sender.send

    async def send_while_an_editor_acts(*arguments: Any) -> Any:
        result = await send(*arguments)
        await newsroom.dispatcher.queue.retry_now(target.id, newsroom.clock())
        return result

    monkeypatch.setattr(newsroom.dispatcher.sender, "send", send_while_an_editor_acts)
    await newsroom.change("e1", 5)
    await newsroom.dispatcher.lead()

    assert len(newsroom.calls) == 1 and await newsroom.dispatcher.queue.pending() == {}


async def test_a_crash_between_two_runs_reports_nothing_twice(newsroom: Newsroom) -> None:
    """The memory of the desk and the delivery are committed together."""
    await newsroom.add()
    await newsroom.change("e1", 5)
    restarted = WebhookDispatcher(
        newsroom.repository, newsroom.subscriptions, newsroom.clock, allow_private=True
    )
    await commit_event(newsroom.repository, "doubled", event("e1", "Bridge closed", "abcdefgh"), EVENT_MS)
    newsroom.clock.now_ms += 60 * MINUTE_MS
    await restarted.lead()
    await restarted.close()

    assert len(newsroom.calls) == 1


async def test_the_history_is_bounded(newsroom: Newsroom) -> None:
    """The newest attempts are kept."""
    target = await newsroom.add("https://desk.invalid/in")
    queue = newsroom.dispatcher.queue
    raw, outbox = await queue.outbox.read_with_raw()
    attempt = Attempt("m", target.id, "ping", EVENT_MS)
    await queue.save(raw, outbox, attempts=[attempt] * (MAX_ATTEMPTS + 5))

    assert len(await newsroom.repository.store.stream_tail(b"{events}deliveries", 3000)) <= MAX_ATTEMPTS


async def test_what_older_versions_stored_is_read(store: Store) -> None:
    """Subscriptions without a kind and deliveries without a number of events."""
    old = {"id": "h", "url": "https://x.example", "secret": "whsec_", "queries": ["min_size=3"]}
    call = {"id": "m", "hook": "h", "event": "e", "kind": "fired", "body": b"{}", "made_ms": 1, "due_ms": 1}
    await store.put([
        Put(b"{events}webhooks", msgspec.msgpack.encode({"h": old})),
        Put(OUTBOX_KEY, msgspec.msgpack.encode({"position": b"1-0", "calls": [call]})),
    ])  # fmt: skip
    dispatcher = WebhookDispatcher(EventRepository(store), Subscriptions(store), Clock(EVENT_MS))

    assert (await Subscriptions(store).get("h")).kind == "webhook"
    assert await dispatcher.queue.pending() == {"h": 1}
    assert (await store.read([DESK_STATES_KEY])) == [None]
