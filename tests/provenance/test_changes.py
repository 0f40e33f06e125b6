"""What a later article changed of an earlier one."""

from __future__ import annotations

from aggregator.provenance.changes import MAX_PASSAGE_CHARS, changes_between, describe
from tests.provenance.records import record
from tests.support.factories import edited, story

BEFORE = (
    "The ferry to Estmark ran aground on Friday with 120 passengers and 14 crew on board. "
    "All were brought ashore by noon, the coast guard said. The captain, who has sailed the route for "
    "eleven years, said that a buoy was missing. An inquiry begins on Monday."
)
AFTER = (
    "The ferry to Estmark ran aground on Friday with 135 passengers and 14 crew on board. "
    "All were brought ashore by noon, the coast guard said. Two of them were treated for cold and shock."
)


def test_stored_texts_show_what_was_cut_and_added() -> None:
    """Passages, words and figures, in both directions."""
    a, b = record("a", BEFORE, title="Ferry runs aground"), record("b", AFTER, title="Ferry  Runs Aground")
    changes = changes_between(a, b, (BEFORE, AFTER))
    texts = changes.texts

    assert texts is not None
    assert not changes.same_text and not changes.headline_changed
    assert texts.cut_figures == ("120",) and texts.added_figures == ("135",)
    assert any("eleven years" in passage for passage in texts.cut)
    assert any("treated for cold" in passage for passage in texts.added)
    assert 22 <= texts.cut_words <= 30 and 8 <= texts.added_words <= 12
    assert 0.4 < changes.kept < 0.6 and 0.2 < changes.own < 0.4
    assert describe(changes).startswith("keeps 4") or describe(changes).startswith("keeps 5")
    assert "figures: 1 left out, 1 new" in describe(changes)


def test_without_texts_the_changes_are_estimated() -> None:
    """Sketches give the shares, hashes the number of figures; no passages."""
    text = story(4, 30)
    a, b = record("a", text + " 17"), record("b", text[: len(text) // 2], title="Other words")
    changes = changes_between(a, b)

    assert changes.texts is None
    assert abs(changes.kept - 0.5) < 0.1 and changes.own < 0.1
    assert (changes.figures_cut, changes.figures_added) == (1, 0)
    assert changes.headline_changed
    assert describe(changes).startswith("keeps about ")


def test_equal_texts() -> None:
    """Word for word; under another headline that is known only from the texts."""
    a, b = record("a", BEFORE, title="One"), record("b", BEFORE, title="Two")
    changes = changes_between(a, b, (BEFORE, BEFORE.replace(" ", "  ")))

    assert changes.same_text and changes.kept == 1 and changes.own == 0
    assert describe(changes) == "the same text, another headline"
    assert not changes_between(a, b).same_text
    assert describe(changes_between(a, a)) == "the same text, word for word"


def test_long_passages_are_shortened() -> None:
    """A page shows a few lines, not the article."""
    long = story(5, 100)
    changes = changes_between(record("a", BEFORE), record("b", BEFORE + long), (BEFORE, BEFORE + " " + long))

    assert changes.texts is not None
    assert max(map(len, changes.texts.added)) == MAX_PASSAGE_CHARS
    assert changes.texts.added[0].endswith("…")


def test_scattered_edits_keep_most_of_the_wording() -> None:
    """Ten of 300 words replaced."""
    text = story(6, 30)
    changes = changes_between(record("a", text), record("b", edited(text, 1, 10)))

    assert changes.kept > 0.8
    assert 0 < changes.own < 0.2
