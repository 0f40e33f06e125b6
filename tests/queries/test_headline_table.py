"""Headline table: rows that match words, ranked, filtered, removed and bounded."""

import random
from dataclasses import replace

import numpy as np
import pytest

from aggregator.analysis.text.tokenizer import has_phrase, tokenize
from aggregator.domain import StreamItem
from aggregator.queries import headline_table
from aggregator.queries.headline_table import (
    HeadlineTable,
    SearchFilter,
    TermGroup,
    score,
)

ENGLISH = frozenset({"en"})


def row(number: int, words: str, headline_words: int | None = None, **fields: object) -> StreamItem:
    """An article with these words, all in its headline unless ``headline_words`` says otherwise."""
    given = words.split()
    title, source = given[:headline_words], given[headline_words:] if headline_words is not None else []
    made = StreamItem(
        number, number, f"a{number}", "new", arrived_ms=1000 * number, title=" ".join(title),
        source=" ".join(source), lang="en", space="en.1",
    )  # fmt: skip
    return replace(made, **fields)  # type: ignore[arg-type]


def found(
    table: HeadlineTable, words: str, row_filter: SearchFilter | None = None, lang: str = "en", floor: int = 0
) -> list[int]:
    """Numbers of the rows that match, best first."""
    groups = [TermGroup(frozenset({lang}), tuple(tokenize(words, lang)))] if words else []
    hits = list(table.search(groups, row_filter or SearchFilter(), {"en.1": floor}))
    numbers = np.concatenate([hit.numbers for hit in hits])
    scores = np.concatenate([hit.scores for hit in hits])
    best: list[int] = numbers[np.lexsort((numbers, scores))[::-1]].tolist()
    return best


def filled(*rows: StreamItem) -> HeadlineTable:
    """A table of these rows."""
    table = HeadlineTable(1000)
    for each in rows:
        table.add(each)
    return table


def test_rows_with_more_words_come_first_then_headlines_then_newer_ones() -> None:
    """A word outside the headline counts less than one in it, and both more than time."""
    table = filled(
        row(1, "dam kareth burst"),
        row(2, "dam flood"),
        row(3, "flood kareth gazette dam", headline_words=1),
        row(4, "dam reopens"),
        row(5, "harbour bridge"),
    )

    assert found(table, "dam kareth") == [1, 3, 4, 2]
    assert found(table, "dam") == [4, 2, 1, 3]
    assert found(table, "") == [5, 4, 3, 2, 1]


def test_a_row_needs_half_of_the_words() -> None:
    """One of two suffices, one of three does not; a word that a headline repeats counts once."""
    table = filled(row(1, "dam dam"), row(2, "dam kareth"))

    assert found(table, "dam bridge") == [2, 1]
    assert found(table, "dam bridge harbour") == []
    assert found(table, "dam kareth harbour") == [2]


def test_phrases_are_found_as_by_comparing_each_headline(monkeypatch: pytest.MonkeyPatch) -> None:
    """In headlines of few words: across rows, and from headline to source, there is none."""
    monkeypatch.setattr(headline_table, "CHUNK_ROWS", 64)
    choose = random.Random(7).choices
    for size in range(1, 4):
        phrase = tuple(choose(("dam", "kareth", "otter"), k=size))
        words = [choose(("dam", "kareth", "otter"), k=n % 6) for n in range(1, 300)]
        split = [n % 4 for n in range(1, 300)]
        table = filled(
            *(row(n, " ".join(w), s) for n, (w, s) in enumerate(zip(words, split, strict=True), 1))
        )
        group = TermGroup(ENGLISH, tuple(dict.fromkeys(phrase)), (phrase,))
        numbers = [n for part in table.search([group], SearchFilter(), {}) for n in part.numbers.tolist()]
        expected = [
            n
            for n, (w, s) in enumerate(zip(words, split, strict=True), 1)
            if any(has_phrase(tuple(part), phrase) for part in (w[:s], w[s:]))
        ]
        assert sorted(numbers) == expected, phrase


def test_words_are_compared_in_the_language_of_the_row() -> None:
    """The same letters are other words in another language."""
    table = filled(row(1, "dam"), row(2, "dam", lang="de"))

    assert found(table, "dam", lang="de") == [2]
    assert found(table, "dam", lang="fr") == []


def test_all_filters_must_hold() -> None:
    """Language, source, verdict, time and URL; the end of a period is excluded."""
    table = filled(
        row(1, "dam", source="gazette", verdict="duplicate", url="https://a.example/1"),
        row(2, "dam", source="gazette"),
        row(3, "dam", lang="de"),
    )

    assert found(table, "", SearchFilter(lang="de")) == [3]
    assert found(table, "", SearchFilter(lang="it")) == []
    assert found(table, "dam", SearchFilter(sources=("gazette",))) == [2, 1]
    assert found(table, "dam", SearchFilter(sources=("gazette",), verdict="duplicate")) == [1]
    assert found(table, "", SearchFilter(since_ms=2000, until_ms=3000)) == [2]
    assert found(table, "", SearchFilter(url="https://a.example/1")) == [1]


def test_expired_and_removed_rows_are_no_results() -> None:
    """Rows below the floor of their space, and those that were removed."""
    table = filled(row(1, "dam"), row(2, "dam"), row(3, "dam"))
    table.remove([3, 99])

    assert found(table, "dam", floor=2) == [2]


def test_a_full_table_drops_its_oldest_articles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when older articles were added after newer ones, as at the start."""
    monkeypatch.setattr(headline_table, "CHUNK_ROWS", 2)
    table = HeadlineTable(4)
    for number in (9, 8, 1, 2, 7, 6):
        table.add(row(number, "dam"))
    assert table.is_full
    assert found(table, "dam") == [9, 8, 7, 6, 2, 1]

    table.add(row(1, "dam"))
    assert len(table) == 6
    table.add(row(10, "dam"))

    assert found(table, "dam") == [10, 9, 8, 7, 6]
    assert (len(table), table.oldest_number) == (5, 6)
    assert sorted(table.numbers().tolist()) == [6, 7, 8, 9, 10]


def test_rows_can_be_added_during_a_search() -> None:
    """A search yields between chunks; no view of a column remains that would forbid its growth."""
    table = filled(row(1, "dam"))
    hits = []
    for part in table.search([TermGroup(ENGLISH, ("dam",))], SearchFilter(), {}):
        table.add(row(2, "dam"))
        hits.append(part)
    assert [part.numbers.tolist() for part in hits] == [[1]]
    assert found(table, "dam") == [2, 1]


def test_a_word_that_no_article_has_is_not_found() -> None:
    """Hashes of 16 bits took 1 invented word of 6 for one of 12,000 headlines, and a source for another."""
    choose = random.Random(11).choices
    table = filled(*(row(n + 1, "".join(choose("abcdefgh", k=9)), source=f"outlet {n}") for n in range(3000)))

    assert [found(table, "".join(choose("klmnopqr", k=9))) for _ in range(300)] == [[]] * 300
    assert [found(table, "", SearchFilter(sources=[f"paper {n}"])) for n in range(300)] == [[]] * 300


def test_the_score_orders_missing_words_before_headline_words_before_time() -> None:
    """All within 64 bits; times beyond 32 bits count as the largest."""
    assert score(0, 0, 0) > score(1, 12, 10**12) > score(1, 11, 2**32) == score(1, 11, 2**32 - 1)
    assert score(0, 12, 10**12) < 1 << 62
