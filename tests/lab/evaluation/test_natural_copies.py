"""Copies that the data hold."""

from __future__ import annotations

from dataclasses import replace

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import DuplicateStream
from aggregator_lab.evaluation.natural_copies import count, natural_copies
from tests.support.factories import edited, story

FIRST = Article("a", "Mayor opens bridge", story(1, 20), lang="de")


async def test_each_copy_is_paired_with_the_most_similar_earlier_article() -> None:
    """A half is no such copy; a bare headline is compared with headlines."""
    stream = DuplicateStream(Analyzer({"xx": HashedModel()}), Policy())
    copy = replace(FIRST, id="b", title="Something else", text=edited(FIRST.text, 1, 2))
    await stream.send(
        [
            FIRST,
            copy,
            replace(copy, id="c"),
            replace(FIRST, id="half", text=FIRST.text[: len(FIRST.text) // 2]),
            Article("d", story(9, 1), lang="de"),
            Article("e", story(9, 1), lang="de"),
        ]
    )

    assert list(natural_copies(stream.stored)) == [("b", "a"), ("c", "b"), ("e", "d")]
    counts = count(stream.stored)
    assert counts["all"] == {"copies": 3, "found": 3, "needless": 0, "missed": []}
    assert (counts["like headlines"]["copies"], counts["long"]["copies"]) == (2, 2)


async def test_bare_headlines_with_other_numbers_are_no_copies() -> None:
    """Columns of another day count apart."""
    stream = DuplicateStream(Analyzer({"xx": HashedModel()}), Policy())
    column = "Ten things to know about the ferries and bridges of Brine before trade opens on June {}"
    days = {"a": 3, "b": 3, "c": 4}
    await stream.send([Article(id_, title=column.format(day), lang="en") for id_, day in days.items()])

    counts = count(stream.stored)
    assert (counts["all"]["copies"], counts["like headlines"]["copies"]) == (1, 1)
    assert counts["other numbers"]["missed"] == [("c", "b")]
