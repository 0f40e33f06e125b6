"""Event filters of requests: from query parameters, a desk, or a query string."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

import msgspec

from aggregator.contract import requests
from aggregator.errors import InvalidInput, NotFound
from aggregator.events.desks import Desk, Desks
from aggregator.events.filter import EventFilter
from aggregator.http import query_params


async def build_filter(desks: Desks, query: requests.EventFilterQuery) -> EventFilter:
    """The filter of a query and of the desk it names. Raises NotFound for an unknown one."""
    return EventFilter(
        query.term.strip(),
        query.source.strip(),
        query.lang,
        query.min_size,
        query.status,
        and_also=(await desks.filter_of(query.watch),) if query.watch else (),
    )


def parse_filter(query_string: str) -> requests.SavedFilterQuery:
    """The filter of the field ``query`` of a body, with or without "?". Raises InvalidInput."""
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


async def load_watch(desks: Desks, id_: str) -> Desk:
    """A desk that is a watch. Raises NotFound."""
    desk = (await desks.all()).get(id_)
    if desk is None or watch_query(desk) is None:
        raise NotFound(f"There is no watch {id_[:200]!r}.")
    return desk


def watch_query(desk: Desk) -> str | None:
    """The view of a desk as a query string of /v1/events; None if it takes more than one query."""
    lists = (desk.terms, desk.sources, desk.languages)
    if desk.without or any(len(values) > 1 for values in lists):
        return None
    term, source, lang = ("".join(values) for values in lists)
    return canonical_query_string(requests.SavedFilterQuery(term, source, lang, desk.min_size, desk.status))
