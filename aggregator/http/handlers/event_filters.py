"""From a request's query to the events it wants: its own filter, and that of a saved watch it names."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import msgspec

from aggregator.contract import requests
from aggregator.events.filter import EventQuery
from aggregator.events.saved_filters import Watches
from aggregator.http import query_params
from aggregator.http.handlers import event_views


async def wanted(watches: Watches, query: requests.EventFilter) -> EventQuery:
    """The filter; with a watch both must hold. Raises NotFound for a watch that is none."""
    own = event_views.wanted(query)
    if not query.watch:
        return own
    saved = EventQuery.parse((await watches.get(query.watch)).query)
    return replace(own, beside=(saved,))


def filter_of(text: str) -> requests.SavedFilter:
    """A query string, as it stands behind the question mark. Raises BadInput naming the parameter."""
    return query_params.convert_pairs(
        parse_qsl(text.removeprefix("?"), keep_blank_values=True), requests.SavedFilter
    )


def saved_form(query: requests.SavedFilter) -> str:
    """The one way of writing a filter: what says nothing is left out."""
    given = msgspec.structs.asdict(query)
    return urlencode([(name, value) for name, value in given.items() if value])
