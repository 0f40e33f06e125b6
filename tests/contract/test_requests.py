"""Request types: fields, limits and formats of the public contract."""

from __future__ import annotations

import inspect
import re

import msgspec
import pytest

from aggregator.analysis.article_id import MAX_URL_CHARS
from aggregator.contract import requests
from aggregator.contract.decoding import convert_strings, decode
from aggregator.contract.requests import (
    MAX_EVENT_PAGE,
    MAX_RELATED_PAGE,
    EventsQuery,
    ExplainIn,
    RelatedIn,
    RelatedQuery,
)
from aggregator.errors import InvalidInput
from aggregator.http.pages import desks, front, report, search, sign_in, webhooks
from aggregator_client.wire import LANGUAGE_TAG_PATTERN, MAX_SOURCE_CHARS, MAX_TITLE_CHARS, ArticleIn

STRUCTS = [
    class_
    for module in (requests, desks, front, report, search, sign_in, webhooks)
    for _, class_ in inspect.getmembers(module, inspect.isclass)
    if issubclass(class_, msgspec.Struct) and class_.__module__ == module.__name__
]


@pytest.mark.parametrize("struct_type", STRUCTS)
def test_every_type_rejects_unknown_fields(struct_type: type[msgspec.Struct]) -> None:
    """A misspelled name is an error; subclasses do not inherit the option."""
    assert struct_type.__struct_config__.forbid_unknown_fields


@pytest.mark.parametrize("struct_type", STRUCTS)
def test_every_type_has_a_description(struct_type: type[msgspec.Struct]) -> None:
    """It is the description of the schema in the OpenAPI document."""
    assert (vars(struct_type).get("__doc__") or "").strip()


@pytest.mark.parametrize("tag", ["", "en", "en-US", "zh_Hant", "sr-Latn-RS", "und", "pt-BR", "gsw"])
def test_language_tags_are_accepted(tag: str) -> None:
    """Both separators are common; an empty tag counts as not given."""
    assert re.search(LANGUAGE_TAG_PATTERN, tag)


@pytest.mark.parametrize("tag", ["e", "en-", "en--US", "en US", "12", "en-123456789", "-en", "english"])
def test_other_words_are_no_language_tags(tag: str) -> None:
    """A subtag has at most eight characters, and the first one two or three letters."""
    assert not re.search(LANGUAGE_TAG_PATTERN, tag)


@pytest.mark.parametrize(
    ("name", "limit"), [("title", MAX_TITLE_CHARS), ("source", MAX_SOURCE_CHARS), ("url", MAX_URL_CHARS)]
)
def test_a_text_of_exactly_the_limit_is_accepted(name: str, limit: int) -> None:
    """One character more is refused, with the field and the limit."""
    msgspec.convert({name: "x" * limit}, ArticleIn)

    with pytest.raises(msgspec.ValidationError, match=rf"{limit}.*\$\.{name}"):
        msgspec.convert({name: "x" * (limit + 1)}, ArticleIn)


def test_null_counts_as_not_given() -> None:
    """Every field of an article may be null."""
    names = [field.encode_name for field in msgspec.structs.fields(ArticleIn)]

    assert "id" in names and "id_" not in names
    assert msgspec.convert(dict.fromkeys(names), ArticleIn) == ArticleIn()


def test_a_time_needs_an_offset() -> None:
    """A local time would depend on the crawler's time zone."""
    decoder = msgspec.json.Decoder(ArticleIn)

    assert decoder.decode(b'{"published_at": "2026-11-20T09:00:00+01:00"}').published_at is not None
    with pytest.raises(InvalidInput, match="published_at: the UTC offset is missing"):
        decode(b'{"published_at": "2026-11-20T09:00:00"}', ArticleIn)


@pytest.mark.parametrize(("count", "accepted"), [(0, True), (1, True), (50, True), (51, False)])
def test_related_articles_are_requested_for_up_to_50_ids(count: int, accepted: bool) -> None:
    """An empty list is valid: the reader has no history."""
    body = msgspec.json.encode({"ids": ["a"] * count})

    if accepted:
        assert len(decode(body, RelatedIn).ids or []) == count
    else:
        with pytest.raises(InvalidInput, match="ids"):
            decode(body, RelatedIn)


@pytest.mark.parametrize(
    ("struct_type", "largest"), [(RelatedQuery, MAX_RELATED_PAGE), (EventsQuery, MAX_EVENT_PAGE)]
)
def test_pages_have_a_largest_size(struct_type: type[RelatedQuery | EventsQuery], largest: int) -> None:
    """From 1 to the limit; the value arrives as text."""
    for limit in (1, largest):
        assert convert_strings({"limit": str(limit)}, struct_type).limit == limit
    for limit in (0, largest + 1):
        with pytest.raises(InvalidInput, match="limit"):
            convert_strings({"limit": str(limit)}, struct_type)


def test_a_side_of_a_comparison_is_an_id_or_an_article() -> None:
    """A string is the id of a stored article."""
    read = msgspec.json.decode(b'{"a": "a1", "b": {"title": "Ferry aground"}}', type=ExplainIn)

    assert read == ExplainIn("a1", ArticleIn(title="Ferry aground"))
