"""Queries and forms of the HTML pages. Unknown fields are rejected."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from aggregator.contract.requests import EventFilterQuery, PayloadFormat
from aggregator.contract.responses import EventOrder
from aggregator_client.wire import Severity, Source, VerdictName, doc

ReportView = Literal["newest", "oldest", "outlets"]
Done = Literal[
    "", "created", "saved", "deleted", "added", "removed", "ping", "enable", "disable", "retry", "resend"
]
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
    paused: Annotated[Literal["", "on"], doc("Whether no notifications are sent.")] = ""
    kind: Annotated[Literal["mail", "webhook", "slack"], doc("Kind of a new target.", "mail")] = "mail"
    address: Annotated[str, doc("Address of a new target.", "desk@news.example", max_length=2000)] = ""


class DeskPageQuery(Struct, forbid_unknown_fields=True):
    """Query of the desk and webhook pages: what was just done, and to which target."""

    done: Annotated[Done, doc("What was just done, for the message of the page.", "saved")] = ""
    target: Annotated[str, doc("Id of the target that it was done to.", "9b7f3c21d0e4", max_length=40)] = ""


class WebhookForm(Struct, forbid_unknown_fields=True):
    """Form of the webhook pages."""

    action: Annotated[
        Literal["add", "ping", "enable", "disable", "retry", "resend", "remove"], doc("What to do.")
    ]
    url: Annotated[str, doc("URL to call.", "https://hooks.example/news", max_length=2000)] = ""
    query: Annotated[str, doc("Query of /v1/events.", "term=flood&min_size=20", max_length=2000)] = ""
    format: PayloadFormat = "standard"
    delivery: Annotated[str, doc("Id of the delivery.", "d-81f2", max_length=40)] = ""
    next: Annotated[str, doc("Page to return to.", "/webhooks", max_length=200)] = ""


class ReportQuery(Struct, forbid_unknown_fields=True):
    """Query of the report page: order and page of its articles; ``print``: all on one page."""

    view: Annotated[ReportView, doc("Order of the articles of the report.", "newest")] = "newest"
    page: Annotated[int, doc("Page of the articles, from 1.", 1, ge=1, le=1000)] = 1
    print: Annotated[bool, doc("All articles on one page.", False)] = False


class FrontQuery(EventFilterQuery, forbid_unknown_fields=True):
    """Query of the editors' page."""

    sort: Annotated[EventOrder, doc("Order of the open events.", "time")] = "surprise"
    severity: Annotated[Severity, doc("Only events of this severity.", "growing")] | None = None
    ours: Annotated[Literal["yes", "no"], doc("Whether an own source has published it.", "yes")] | None = None
    verdict: Annotated[VerdictName, doc("Only latest articles with this verdict.", "new")] | None = None
    kiosk: Annotated[bool, doc("Large type without controls, for a screen on a wall.", False)] = False


class SearchPageQuery(Struct, forbid_unknown_fields=True):
    """Query of the search page: ``hours`` is how far back it looks, 0: everything."""

    q: Annotated[str, doc("Words, or the id or the URL of an article.", "swimming hall")] = ""
    lang: Annotated[str, doc("Only in this language.", "en", max_length=35)] = ""
    source: Annotated[Source, doc("Only from this outlet.", "Brackwater Gazette")] = ""
    verdict: Annotated[VerdictName | Literal[""], doc("Only with this verdict.", "new")] = ""
    hours: Annotated[int, doc("Only of these last hours.", 24, ge=0, le=24 * 366)] = 0
    cursor: Annotated[str, doc("Articles of the next page.", "WzEsMl0", max_length=200)] = ""


class LookupQuery(Struct, forbid_unknown_fields=True):
    """Query of the lookup page."""

    q: Annotated[str, doc("Id or address of a stored article.", "pool-1")] = ""


class CompareQuery(Struct, forbid_unknown_fields=True):
    """Query of the comparison page: ids or addresses of two stored articles."""

    a: Annotated[str, doc("Id or URL of the first article.", "pool-1")] = ""
    b: Annotated[str, doc("Id or URL of the second article.", "pool-2")] = ""


class LookupForm(Struct, forbid_unknown_fields=True):
    """Form of the lookup page."""

    q: Annotated[str, doc("Id, address or text of an article.", "swimming hall")] = ""


class SignInQuery(Struct, forbid_unknown_fields=True):
    """Query of the sign-in page: the address to return to."""

    next: Annotated[str, doc("Page to return to.", "/", max_length=2000)] = "/"


class SignInForm(Struct, forbid_unknown_fields=True):
    """Form of the sign-in page."""

    key: Annotated[str, doc("An access key.", "k9f3.0123456789abcdef", max_length=200)] = ""
    next: Annotated[str, doc("Page to return to.", "/", max_length=2000)] = "/"


class CompareForm(CompareQuery, forbid_unknown_fields=True):
    """Form of the comparison page: each side by id, address or text."""
