"""Desks and targets from requests: validation, and the desk form as fields of the API. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from aggregator.contract.decoding import convert_strings, to_single_line
from aggregator.contract.requests import DeskForm, DeskIn, TargetIn
from aggregator.contract.validation import ErrorCollector
from aggregator.errors import InvalidInput
from aggregator.events.desks import Desk, time_zone
from aggregator.events.webhooks.mail import validate_mail_address
from aggregator.events.webhooks.sender import validate_url

_LIST_FIELDS = ("terms", "without", "sources", "languages")


def to_desk(body: DeskIn, now_ms: int, owner: str = "", editor: str = "") -> Desk:
    """The desk of a request, without an id. Raises InvalidInput."""
    name = to_single_line(body.name)
    found = ErrorCollector()
    if not name:
        found.add("name: blank; give the desk a name.", "name", "missing")
    if bool(body.quiet_from) != bool(body.quiet_until):
        found.add("quiet_until: give both ends of the quiet hours, or neither.", "quiet_until", "missing")
    zone = body.time_zone.strip() or "UTC"
    try:
        time_zone(zone)
    except ValueError:
        found.add(
            f"time_zone: unknown time zone {zone!r}; expected a name such as Europe/Berlin.",
            "time_zone",
            "not_allowed",
        )
    found.raise_all()
    return Desk(
        id="",
        name=name,
        created_ms=now_ms,
        owner=owner,
        terms=_distinct(body.terms),
        without=_distinct(body.without),
        sources=_distinct(body.sources),
        languages=_distinct(body.languages),
        min_size=body.min_size,
        alert_size=body.alert_size,
        alert_sources=body.alert_sources,
        alert_hourly=body.alert_hourly,
        pause_minutes=body.pause_minutes,
        quiet_from=body.quiet_from,
        quiet_until=body.quiet_until,
        time_zone=zone,
        quiet_size=body.quiet_size,
        paused=body.paused,
        edited_ms=now_ms,
        edited_by=editor,
    )


def form_to_request(form: DeskForm) -> DeskIn:
    """The request of a submitted form; empty fields have their defaults. Raises InvalidInput."""
    values: dict[str, object] = {}
    for name in DeskIn.__struct_fields__:
        text = getattr(form, name).strip()
        if name in _LIST_FIELDS:
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
    fields = msgspec.structs.asdict(desk)
    values = {name: _form_value(fields[name]) for name in DeskIn.__struct_fields__}
    values["pause_minutes"] = str(desk.pause_minutes)
    return msgspec.convert(values, DeskForm)


def validate_target(body: TargetIn, *, allow_private: bool) -> str:
    """The checked address of a target. Raises InvalidInput; the message does not repeat the address."""
    if body.kind == "mail":
        return validate_mail_address(body.address)
    return validate_url(body.address.strip(), allow_private=allow_private)


def _form_value(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else ""
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value or "")


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    """Single-line values without blank and repeated ones, in order."""
    return tuple(dict.fromkeys(filter(None, map(to_single_line, values))))
