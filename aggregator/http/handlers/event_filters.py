"""From a request's query to the events it wants: its own filter, and that of a saved watch it names."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import msgspec

from aggregator.contract import requests
from aggregator.events.filter import EventFilter
from aggregator.events.saved_filters import SavedFilters
from aggregator.http import query_params
from aggregator.http.handlers import event_views


async def build_filter(watches: SavedFilters, query: requests.EventFilterQuery) -> EventFilter:
    """The filter; with a watch both must hold. Raises NotFound for a watch that is none."""
    own = event_views.query_filter(query)
    if not query.watch:
        return own
    saved = EventFilter.parse((await watches.get(query.watch)).query)
    return replace(own, and_also=(saved,))


def parse_filter(query_string: str) -> requests.SavedFilterQuery:
    """A query string, as it stands behind the question mark. Raises BadInput naming the parameter."""
    return query_params.parse_pairs(
        parse_qsl(query_string.removeprefix("?"), keep_blank_values=True), requests.SavedFilterQuery
    )


def canonical_query_string(query: requests.SavedFilterQuery) -> str:
    """The one way of writing a filter: what says nothing is left out."""
    given = msgspec.structs.asdict(query)
    return urlencode([(name, value) for name, value in given.items() if value])
