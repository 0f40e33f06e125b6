"""Event filters of requests: from query parameters, a saved watch, or a query string."""

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
    """The filter of a query and of the watch or desk it names. Raises NotFound for an unknown one."""
    query_filter = event_views.query_filter(query)
    if not query.watch:
        return query_filter
    return replace(query_filter, and_also=(await watches.filter_of(query.watch),))


def parse_filter(query_string: str) -> requests.SavedFilterQuery:
    """A filter from a query string (with or without "?"). Raises InvalidInput naming the parameter."""
    return query_params.parse_pairs(
        parse_qsl(query_string.removeprefix("?"), keep_blank_values=True), requests.SavedFilterQuery
    )


def canonical_query_string(query: requests.SavedFilterQuery) -> str:
    """The canonical query string of a filter, without empty values."""
    values = msgspec.structs.asdict(query)
    return urlencode([(name, value) for name, value in values.items() if value])
