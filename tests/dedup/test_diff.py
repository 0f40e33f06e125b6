"""Shared wording in its place: every character stays, equal passages carry equal numbers."""

from hypothesis import given
from hypothesis import strategies as st

from aggregator.dedup.diff import MAX_COMPARED_CHARS, DiffSpan, align

A = "The harbour bridge was closed on Friday, the port said. Nobody was hurt. Ferries run until 22."
B = "On Monday the port spoke. The Harbour Bridge was closed on Friday; ferries run until 23."


def shared(pieces: list[DiffSpan]) -> dict[int, str]:
    """Passage number -> its text."""
    found: dict[int, str] = {}
    for piece in pieces:
        if piece.passage is not None:
            found[piece.passage] = found.get(piece.passage, "") + piece.text
    return found


def test_equal_passages_carry_equal_numbers():
    """Case and punctuation do not count; what stands in one text only has no number."""
    a, b = align(A, B, "en", "en")

    assert shared(a) == {0: "The harbour bridge was closed on Friday,", 1: "Ferries run until"}
    assert shared(b) == {0: "The Harbour Bridge was closed on Friday;", 1: "ferries run until"}


def test_figures_that_the_other_lacks_are_marked():
    """22 here, 23 there."""
    a, b = align(A, B, "en", "en")

    assert [p.text for p in a if p.figure] == ["22."]
    assert [p.text for p in b if p.figure] == ["23."]


def test_chinese_is_compared_by_characters():
    """Five characters in a row, as the shingles of the index."""
    a, b = align("港口大桥因暴风雨关闭。", "记者说，港口大桥因暴风雨受损。", "zh", "zh")

    assert shared(a) == shared(b) == {0: "港口大桥因暴风雨"}


def test_two_words_in_common_are_no_passage():
    """A shingle has three."""
    a, b = align("harbour bridge closed", "harbour bridge open", "en", "en")

    assert shared(a) == shared(b) == {}


def test_a_passage_that_moved_keeps_its_number():
    """Two sentences in the other order."""
    one, two = "alpha beta gamma delta.", "red green blue white."
    a, b = align(f"{one} {two}", f"{two} {one}", "en", "en")

    assert shared(a) == shared(b) == {0: one, 1: two}


texts = st.text(st.sampled_from("ab 12.,\n'大桥 é"), max_size=80)


@given(texts, texts)
def test_joined_the_pieces_are_the_text(a: str, b: str):
    """Nothing is lost, doubled or changed by the marks; empty and very long texts too."""
    for pieces, text in zip(align(a, b, "en", "zh"), (a, b), strict=True):
        assert "".join(p.text for p in pieces) == text
        assert all(p.text for p in pieces)


def test_long_texts_are_cut():
    """So that a page stays a page."""
    a, _ = align("x" * (MAX_COMPARED_CHARS + 5), "", "en", "en")

    assert sum(len(p.text) for p in a) == MAX_COMPARED_CHARS


@given(texts)
def test_a_text_shares_all_its_shingles_with_itself(text: str):
    """Both sides look alike."""
    a, b = align(text, text, "en", "en")

    assert a == b
    assert not any(p.figure for p in a)
