"""Event filters of requests: from parameters, a desk, or a query string."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.contract.requests import EventFilterQuery, SavedFilterQuery
from aggregator.errors import InvalidInput, NotFound
from aggregator.events.desks import Desk, Desks
from aggregator.events.selection import EventFilter
from aggregator.http.handlers.events import build_filter, canonical_query_string, parse_filter
from aggregator.store.base import Store
from tests.support.factories import EVENT_MS, event

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
QUERIES = st.builds(
    SavedFilterQuery,
    term=TEXT,
    source=TEXT,
    lang=st.sampled_from(["", "de", "zh-Hant"]),
    min_size=st.integers(min_value=0, max_value=999),
    status=st.sampled_from([None, "breaking", "closed"]),
)


@given(QUERIES)
def test_a_query_string_means_the_same_when_read_again(query: SavedFilterQuery) -> None:
    """With or without the question mark."""
    saved = canonical_query_string(query)

    assert parse_filter(saved) == parse_filter(f"?{saved}") == query


@given(QUERIES)
def test_a_canonical_query_string_has_no_empty_values(query: SavedFilterQuery) -> None:
    """Equal filters have equal strings, in the order of the contract."""
    pairs = parse_qsl(canonical_query_string(query), keep_blank_values=True)

    assert all(value for _, value in pairs)
    assert ("min_size", "0") not in pairs
    assert ("status", "None") not in pairs
    order = list(SavedFilterQuery.__struct_fields__)
    assert [name for name, _ in pairs] == sorted((name for name, _ in pairs), key=order.index)


@pytest.mark.parametrize(
    ("query_string", "field"),
    [
        ("watch=0123456789ab", "watch"),
        ("term=a&term=b", "term"),
        ("min_size=-1", "min_size"),
        ("size=", "size"),
    ],
)
def test_an_unusable_query_string_names_its_parameter(query_string: str, field: str) -> None:
    """It cannot refer to a desk, and a name with an empty value is not ignored."""
    with pytest.raises(InvalidInput) as caught:
        parse_filter(query_string)

    assert caught.value.field == field


async def test_a_desk_and_the_query_must_both_match(store: Store) -> None:
    """The list of a desk can be narrowed, never widened."""
    desks = Desks(store)
    saved, _ = await desks.create(Desk("", "ports", EVENT_MS, terms=("harbour",), min_size=2))
    combined = await build_filter(desks, EventFilterQuery(watch=saved.id, min_size=1, status="breaking"))

    assert combined.matches(event("e1", "Harbour closed", ["a", "b"]))
    assert not combined.matches(event("e2", "Harbour closed", ["a"]))
    assert not combined.matches(event("e3", "Tunnel closed", ["a", "b"], terms=("tunnel",)))
    assert not combined.matches(event("e4", "Harbour closed", ["a", "b"], status="closed"))


async def test_without_a_desk_the_store_is_not_read(store: Store) -> None:
    """White space around the values is removed."""
    query = EventFilterQuery(term=" harbour ", source="one.example\t")

    assert await build_filter(Desks(store), query) == EventFilter("harbour", "one.example")


async def test_an_unknown_desk_is_not_found(store: Store) -> None:
    """It does not silently match every event."""
    with pytest.raises(NotFound):
        await build_filter(Desks(store), EventFilterQuery(watch="0123456789ab"))
