"""Pending articles: batches, metadata, and the record that is stored of an article."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Article, ArticleRecord
from aggregator.ingest.pending import (
    PendingArticle,
    build_record,
    copy_metadata,
    merge_metadata,
    metadata_of,
    split_batches,
)
from tests.support.factories import story

ARTICLE = Article("ferry", "", story(1), "", "https://example.org/ferry", "Example", 1_780_000_000_000)
ANALYSIS = replace(
    Analyzer({"xx": HashedModel()}).analyze(replace(ARTICLE, lang="eo", title="Ferry departs")), figures=(17,)
)


def pending(id_: str = "ferry", position: int = 0) -> PendingArticle:
    """A pending article with an assigned number."""
    return PendingArticle(position, replace(ARTICLE, id=id_), ANALYSIS, number=9, first_version=7)


@given(st.lists(st.sampled_from("abcdef"), max_size=20), st.integers(1, 5))
def test_batches_have_every_article_in_order_and_no_id_twice(ids: list[str], size: int) -> None:
    """No batch is empty, and one ends early only before a repeated id."""
    posted = [pending(id_, i) for i, id_ in enumerate(ids)]

    batches = list(split_batches(posted, size))

    assert [item for batch in batches for item in batch] == posted
    for i, batch in enumerate(batches):
        in_batch = [item.article.id for item in batch]
        assert 0 < len(batch) == len(set(in_batch)) <= size
        following = [item.article.id for rest in batches[i + 1 :] for item in rest]
        assert not following or len(batch) == size or following[0] in in_batch


def record(**changes: str | int | None) -> ArticleRecord:
    """The record of the article, with other fields."""
    return replace(build_record(pending()), **changes)  # type: ignore[arg-type]


def test_a_record_has_the_analysis_under_the_assigned_number() -> None:
    """Its title is the one found in the text if the article was posted without."""
    built = build_record(pending())

    assert (built.number, built.first_version, built.id) == (9, 7, "ferry")
    assert metadata_of(built) == (ANALYSIS.title, ARTICLE.url, ARTICLE.source, ARTICLE.published_at_ms)
    analysis = {name: value for name, value in asdict(ANALYSIS).items() if name not in ("text", "sketch")}
    assert {name: getattr(built, name) for name in analysis} == analysis
    assert built.sketch is ANALYSIS.sketch
    titled = replace(pending(), article=replace(ARTICLE, title="Posted"))
    assert build_record(titled).title == "Posted"


@pytest.mark.parametrize(
    ("posted", "expected"),
    [
        (Article("ferry"), ("Old", "old.example", "Old source", 5)),
        (Article("ferry", title="New"), ("New", "old.example", "Old source", 5)),
        (Article("ferry", url="new.example", source="New source"), ("Old", "new.example", "New source", 5)),
        (Article("ferry", published_at_ms=0), ("Old", "old.example", "Old source", 0)),
    ],
)
def test_posted_metadata_replaces_stored_metadata(
    posted: Article, expected: tuple[str, str, str, int | None]
) -> None:
    """Empty fields keep the stored value; a date of 0 is a date."""
    stored = record(title="Old", url="old.example", source="Old source", published_at_ms=5)

    assert metadata_of(merge_metadata(stored, posted)) == expected
    assert merge_metadata(stored, posted).text_hash == stored.text_hash


def test_copied_metadata_includes_empty_fields() -> None:
    """The copy in a shadow space equals the serving record; its number stays its own."""
    source = record(title="", url="", source="", published_at_ms=None)
    target = record(number=11)

    copied = copy_metadata(source, target)

    assert metadata_of(copied) == ("", "", "", None)
    assert copied.number == 11
