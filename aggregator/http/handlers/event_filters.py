"""Event filters of requests: from query parameters, a saved watch, or a query string."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import msgspec

from aggregator.contract import requests
from aggregator.errors import InvalidInput
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
    """The filter of the field ``query`` of a body, with or without "?". Raises InvalidInput.

    The error names the parameter as its field, and the field ``query`` as its path.
    """
    pairs = parse_qsl(query_string.removeprefix("?"), keep_blank_values=True)
    try:
        return query_params.parse_pairs(pairs, requests.SavedFilterQuery)
    except InvalidInput as error:
        for part in (error, *error.others):
            part.path = ("query",)
        raise


def canonical_query_string(query: requests.SavedFilterQuery) -> str:
    """The canonical query string of a filter, without empty values."""
    values = msgspec.structs.asdict(query)
    return urlencode([(name, value) for name, value in values.items() if value])
