"""Pages of desks: saved views with thresholds and notification targets, made, tested and edited here.

All forms work without scripts: a change is answered with a redirect, a problem with the form as it was sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from aggregator.app import Service
from aggregator.contract.decoding import convert_strings
from aggregator.contract.requests import DeskIn, TargetIn
from aggregator.errors import Conflict, InvalidInput
from aggregator.events.desks import Desk, is_reportable, meets_thresholds, view_filter
from aggregator.events.detection.numbers import course_of, peak
from aggregator.events.selection import is_handled
from aggregator.events.webhooks.sender import NO_SMTP_SERVER
from aggregator.events.webhooks.subscriptions import PayloadFormat, TargetKind
from aggregator.http.app_keys import CALLER_KEY, SERVICE, caller_id, caller_name
from aggregator.http.handlers.desks import LIST_FIELDS, add_target, delete, to_desk
from aggregator.http.pages import html_response
from aggregator.http.pages.cards import Card, make_card
from aggregator.http.pages.webhooks import DeskPageQuery, load_deliveries, notice_of, redirect
from aggregator.time_units import DAY_MS, HOUR_MS
from aggregator_client.wire import doc

PREVIEW_DAYS = 7
MAX_PREVIEW = 200
LISTED_PREVIEW = 12
Later = Literal["", "development", "closed", "development closed", "development doubled closed"]
_List = Annotated[str, doc("As in DeskIn, separated by commas.", "swimming, hall", max_length=16_000)]
_Number = Annotated[str, doc("As in DeskIn; empty: its default.", "20", max_length=10)]
_Clock = Annotated[str, doc("As in DeskIn; empty: no quiet hours.", "22:30", max_length=10)]


class DeskForm(Struct, forbid_unknown_fields=True):
    """Form of the desk pages: the fields of a desk as text, lists separated by commas."""

    action: Annotated[Literal["save", "preview", "delete", "add_target"], doc("What to do.")] = "save"
    name: Annotated[str, doc("Name of the desk.", "Harbour desk", max_length=100)] = ""
    terms: _List = ""
    without: _List = ""
    sources: Annotated[_List, Meta(examples=["Brackwater Gazette, Coastline News"])] = ""
    languages: Annotated[_List, Meta(examples=["en"])] = ""
    min_size: _Number = ""
    alert_size: _Number = ""
    alert_sources: _Number = ""
    alert_hourly: _Number = ""
    pause_minutes: _Number = ""
    quiet_from: _Clock = ""
    quiet_until: _Clock = ""
    time_zone: Annotated[str, doc("IANA name of the time zone.", "Europe/Berlin", max_length=60)] = ""
    quiet_size: _Number = ""
    digest_at: _Clock = ""
    paused: Annotated[Literal["", "on"], doc("Whether no notifications are sent.")] = ""
    kind: Annotated[Literal["mail", "webhook", "slack"], doc("Kind of a new target.", "mail")] = "mail"
    address: Annotated[str, doc("Address of a new target.", "desk@news.example", max_length=2000)] = ""
    later: Annotated[Later, doc("Kinds of later changes that it gets, too.", "development")] = ""


EMPTY_FORM = DeskForm(pause_minutes="5", time_zone="UTC")


@dataclass(frozen=True, slots=True)
class Preview:
    """The events of a desk's view within the last days, and how many of them reached the thresholds.

    ``rows``: card, items in its busiest hour, and whether it reached the thresholds.
    """

    total: int
    notified: int
    rows: tuple[tuple[Card, int, bool], ...]
    truncated: bool


def may_edit(request: web.Request) -> bool:
    """Whether the caller may change desks and see their targets."""
    key = request.get(CALLER_KEY)
    return key is None or key.allows("editor")


async def create(
    request: web.Request, service: Service, query: DeskPageQuery, form: DeskForm
) -> web.Response:
    """Page: create a desk, or preview it. A preview or a problem shows the form again."""
    try:
        desk = to_desk(form_to_request(form), service.clock(), caller_id(request), caller_name(request))
        if form.action == "preview":
            return await desk_list(request, service, query, form=form, preview=await _preview(request, desk))
        stored, is_new = await service.events.desks.create(desk)
        if not is_new:
            raise Conflict(f"name: there is a desk {desk.name!r} already; choose another name.")
    except (InvalidInput, Conflict) as error:
        return await desk_list(request, service, query, form=form, problem=str(error))
    return redirect(f"/desks/{stored.id}", "created")


async def desk(request: web.Request, id_: str, query: DeskPageQuery) -> web.Response:
    """Page: one desk, its targets and notifications."""
    return await _desk_page(request, query, await request.app[SERVICE].events.desks.get(id_))


async def change(
    request: web.Request, service: Service, id_: str, query: DeskPageQuery, form: DeskForm
) -> web.Response:
    """Page: save, preview or delete a desk, or add a target."""
    stored = await service.events.desks.get(id_)
    if form.action == "delete":
        await delete(service, stored.id)
        return redirect("/desks", "deleted")
    try:
        if form.action == "add_target":
            return await _add_target(request, stored, form)
        edited = to_desk(form_to_request(form), service.clock(), editor=caller_name(request))
        if form.action == "preview":
            preview = await _preview(request, edited)
            return await _desk_page(request, query, stored, form=form, preview=preview)
        await service.events.desks.change(stored.id, lambda _: edited)
    except (InvalidInput, Conflict) as error:
        if form.action != "add_target":
            return await _desk_page(request, query, stored, form=form, problem=str(error))
        sentence = str(error).removeprefix(f"{getattr(error, 'field', '')}: ")
        sentence = sentence[:1].upper() + sentence[1:]
        return await _desk_page(request, query, stored, problem=sentence, target_form=form)
    return redirect(f"/desks/{stored.id}", "saved")


async def _add_target(request: web.Request, stored: Desk, form: DeskForm) -> web.Response:
    service = request.app[SERVICE]
    kind: TargetKind = "webhook" if form.kind == "slack" else form.kind
    payload_format: PayloadFormat = "slack" if form.kind == "slack" else "standard"
    is_mail = kind == "mail" or ("@" in form.address and "/" not in form.address)
    if is_mail and not service.settings.smtp_url:
        raise InvalidInput(f"address: {NO_SMTP_SERVER}.", field="address")
    wanted = TargetIn(kind, form.address, payload_format, form.later.split())  # type: ignore[arg-type]
    target, is_new = await add_target(request, stored, wanted)
    if form.kind == "webhook" and is_new:  # the only time that the secret is shown; chats check none
        return await _desk_page(request, DeskPageQuery(done="added"), stored, secret=target.secret)
    return redirect(f"/desks/{stored.id}", "added")


async def desk_list(
    request: web.Request,
    service: Service,
    query: DeskPageQuery,
    *,
    form: DeskForm | None = None,
    preview: Preview | None = None,
    problem: str = "",
) -> web.Response:
    """Page: desks and a form for a new desk."""
    desks, targets = await service.events.desks.values(), await service.events.subscriptions.values()
    list_events = service.events.repository.list_events  # by growth: the open ones
    listed = await list_events(limit=MAX_PREVIEW, order="growth", now_ms=service.clock()) if desks else []
    events = [event for event in listed if not is_handled(event)]
    view = await load_deliveries(service, targets if may_edit(request) else [])
    return html_response(
        request,
        "desks.html",
        page="desks",
        can_edit=may_edit(request),
        desks=[(desk, [row for row in view.targets if row.target.desk == desk.id]) for desk in desks],
        counts={desk.id: sum(map(view_filter(desk).matches, events)) for desk in desks},
        webhooks=[row for row in view.targets if not row.target.desk],
        form=form or EMPTY_FORM,
        is_open=form is not None or not desks,
        preview=preview,
        preview_days=PREVIEW_DAYS,
        problem=problem,
        notice=notice_of(query, view, service.clock()),
    )


async def _desk_page(
    request: web.Request,
    query: DeskPageQuery,
    stored: Desk,
    *,
    form: DeskForm | None = None,
    preview: Preview | None = None,
    problem: str = "",
    target_form: DeskForm | None = None,
    secret: str = "",
) -> web.Response:
    service = request.app[SERVICE]
    can_edit = may_edit(request)
    everything = await service.events.subscriptions.values() if can_edit else []
    view = await load_deliveries(service, [target for target in everything if target.desk == stored.id])
    return html_response(
        request,
        "desk.html",
        page="desks",
        can_edit=can_edit,
        desk=stored,
        view=view,
        form=form or desk_to_form(stored),
        preview=preview or await _preview(request, stored),
        preview_days=PREVIEW_DAYS,
        is_unsaved=preview is not None,
        target_form=target_form or DeskForm(kind="mail" if service.settings.smtp_url else "slack"),
        problem=problem,
        secret=secret,
        notice=notice_of(query, view, service.clock()),
        settings=service.settings,
        names={row.target.id: row.target.service for row in view.targets},
    )


async def _preview(request: web.Request, desk: Desk) -> Preview:
    service = request.app[SERVICE]
    now_ms = service.clock()
    events = await service.events.repository.list_events(
        since_ms=now_ms - PREVIEW_DAYS * DAY_MS, limit=MAX_PREVIEW, event_filter=view_filter(desk)
    )
    events = [event for event in events if event.merged_into is None]
    hourly = [peak(course_of(event), HOUR_MS) for event in events]
    reached = [is_reportable(e) and meets_thresholds(desk, e, n) for e, n in zip(events, hourly, strict=True)]
    cards = [make_card(event, now_ms) for event in events[:LISTED_PREVIEW]]
    rows = tuple(zip(cards, hourly, reached, strict=False))  # the listed ones only
    return Preview(len(events), sum(reached), rows, len(events) >= MAX_PREVIEW)


def form_to_request(form: DeskForm) -> DeskIn:
    """The request of a submitted form; empty fields have their defaults. Raises InvalidInput."""
    values: dict[str, object] = {}
    for name in DeskIn.__struct_fields__:
        text = getattr(form, name).strip()
        if name in LIST_FIELDS:
            values[name] = [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]
        elif name == "paused":
            values[name] = bool(text)
        elif text:
            values[name] = text
    if "name" not in values:
        raise InvalidInput("name: blank; give the desk a name.", field="name")
    return convert_strings(values, DeskIn)  # type: ignore[arg-type]


def desk_to_form(desk: Desk) -> DeskForm:
    """The form of a stored desk; 0 is shown as an empty field."""
    values = {name: _form_value(getattr(desk, name)) for name in DeskIn.__struct_fields__}
    values["pause_minutes"] = str(desk.pause_minutes)
    return msgspec.convert(values, DeskForm)


def _form_value(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return "on" if value is True else str(value or "")
