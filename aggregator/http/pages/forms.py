"""Queries and forms of the HTML pages. Unknown fields are rejected."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from aggregator.contract.requests import EventFilterQuery
from aggregator.contract.responses import EventOrder
from aggregator_client.wire import Severity, Source, VerdictName

ReportView = Literal["newest", "oldest", "outlets"]


class DeskForm(Struct, forbid_unknown_fields=True):
    """Form of the desk pages: the fields of a desk as text, lists separated by commas."""

    action: Literal["save", "preview", "delete", "add_target"] = "save"
    name: Annotated[str, Meta(max_length=100)] = ""
    terms: Annotated[str, Meta(max_length=12_000)] = ""
    without: Annotated[str, Meta(max_length=12_000)] = ""
    sources: Annotated[str, Meta(max_length=16_000)] = ""
    languages: Annotated[str, Meta(max_length=2000)] = ""
    min_size: Annotated[str, Meta(max_length=10)] = ""
    alert_size: Annotated[str, Meta(max_length=10)] = ""
    alert_sources: Annotated[str, Meta(max_length=10)] = ""
    alert_hourly: Annotated[str, Meta(max_length=10)] = ""
    pause_minutes: Annotated[str, Meta(max_length=10)] = ""
    quiet_from: Annotated[str, Meta(max_length=10)] = ""
    quiet_until: Annotated[str, Meta(max_length=10)] = ""
    time_zone: Annotated[str, Meta(max_length=60)] = ""
    quiet_size: Annotated[str, Meta(max_length=10)] = ""
    paused: Literal["", "on"] = ""
    kind: Literal["mail", "webhook", "slack"] = "mail"
    address: Annotated[str, Meta(max_length=2000)] = ""


class DeskPageQuery(Struct, forbid_unknown_fields=True):
    """Query of the desk and webhook pages: what was just done, and to which target."""

    done: Literal[
        "", "created", "saved", "deleted", "added", "removed", "ping", "enable", "disable", "retry", "resend"
    ] = ""
    target: Annotated[str, Meta(max_length=40)] = ""


class WebhookForm(Struct, forbid_unknown_fields=True):
    """Form of the webhook pages."""

    action: Literal["add", "ping", "enable", "disable", "retry", "resend", "remove"]
    url: Annotated[str, Meta(max_length=2000)] = ""
    query: Annotated[str, Meta(max_length=2000)] = ""
    format: Literal["standard", "slack"] = "standard"
    delivery: Annotated[str, Meta(max_length=40)] = ""
    next: Annotated[str, Meta(max_length=200, description="Page to return to.")] = ""


class ReportQuery(Struct, forbid_unknown_fields=True):
    """Query of the report page: order and page of its articles; ``print``: all on one page."""

    view: ReportView = "newest"
    page: Annotated[int, Meta(ge=1, le=1000)] = 1
    print: bool = False


class FrontQuery(EventFilterQuery, forbid_unknown_fields=True):
    """Query of the editors' page."""

    sort: Annotated[EventOrder, Meta(description="Order of the open events.")] = "surprise"
    severity: Annotated[Severity, Meta(description="Only events of this severity.")] | None = None
    ours: (
        Annotated[
            Literal["yes", "no"],
            Meta(description="Only events that one of the own sources has published, or none of them."),
        ]
        | None
    ) = None
    verdict: (
        Annotated[VerdictName, Meta(description="Only articles with this verdict among the latest.")] | None
    ) = None
    kiosk: Annotated[bool, Meta(description="Large type without controls, for a screen on a wall.")] = False


class SearchPageQuery(Struct, forbid_unknown_fields=True):
    """Query of the search page: ``hours`` is how far back it looks, 0: everything."""

    q: Annotated[str, Meta(description="Words, or the id or the URL of an article.")] = ""
    lang: Annotated[str, Meta(max_length=35, description="Only in this language.")] = ""
    source: Annotated[Source, Meta(description="Only from this outlet.")] = ""
    verdict: Annotated[VerdictName | Literal[""], Meta(description="Only with this verdict.")] = ""
    hours: Annotated[int, Meta(ge=0, le=24 * 366, description="Only of these last hours.")] = 0
    cursor: Annotated[str, Meta(max_length=200, description="Articles of the next page.")] = ""


class LookupQuery(Struct, forbid_unknown_fields=True):
    """Query of the lookup page."""

    q: Annotated[str, Meta(description="Id or address of a stored article.")] = ""


class CompareQuery(Struct, forbid_unknown_fields=True):
    """Query of the comparison page: ids or addresses of two stored articles."""

    a: str = ""
    b: str = ""


class LookupForm(Struct, forbid_unknown_fields=True):
    """Form of the lookup page."""

    q: Annotated[str, Meta(description="Id, address or text of an article.")] = ""


class SignInQuery(Struct, forbid_unknown_fields=True):
    """Query of the sign-in page: the address to return to."""

    next: Annotated[str, Meta(max_length=2000)] = "/"


class SignInForm(Struct, forbid_unknown_fields=True):
    """Form of the sign-in page."""

    key: Annotated[str, Meta(max_length=200, description="An access key.")] = ""
    next: Annotated[str, Meta(max_length=2000)] = "/"


class CompareForm(Struct, forbid_unknown_fields=True):
    """Form of the comparison page: each side by id, address or text."""

    a: str = ""
    b: str = ""
