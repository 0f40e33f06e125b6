"""Text diff: every character is kept, and equal passages have equal numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.dedup.diff import MAX_COMPARED_CHARS, DiffSpan, diff_texts, missing_figures

A = "The harbour bridge was closed on Friday, the port said. Nobody was hurt. Ferries run until 22."
B = "On Monday the port spoke. The Harbour Bridge was closed on Friday; ferries run until 23."


def shared_passages(spans: list[DiffSpan]) -> dict[int, str]:
    """Return passage number -> its text."""
    found: dict[int, str] = {}
    for span in spans:
        if span.passage is not None:
            found[span.passage] = found.get(span.passage, "") + span.text
    return found


def test_equal_passages_have_equal_numbers() -> None:
    """Case and punctuation do not matter; text of only one side has no number."""
    a, b = diff_texts(A, B, "en", "en")

    assert shared_passages(a) == {0: "The harbour bridge was closed on Friday,", 1: "Ferries run until"}
    assert shared_passages(b) == {0: "The Harbour Bridge was closed on Friday;", 1: "ferries run until"}


def test_different_figures_are_marked() -> None:
    """22 in the first text, 23 in the second."""
    a, b = diff_texts(A, B, "en", "en")

    assert [p.text for p in a if p.figure] == ["22."]
    assert [p.text for p in b if p.figure] == ["23."]


def test_a_number_word_is_its_figure() -> None:
    """Thirty is 30, in whichever text; forty is another one."""
    digits, words = "Some 30 boats sank off Wenlow.", "Thirty boats sank off Wenlow."

    assert missing_figures(digits, words, "en", "en") == ([], [])
    assert missing_figures(words, digits, "en", "en") == ([], [])
    assert missing_figures(digits, "Forty boats sank off Wenlow.", "en", "en") == (["30"], [])
    assert not any(span.figure for side in diff_texts(digits, words, "en", "en") for span in side)


@pytest.mark.parametrize("headlines", [False, True])
def test_different_number_words_are_marked(headlines: bool) -> None:
    """In words or digits; equal ones are not, in whatever form, nor is an article."""
    for first, second, marked in (
        (
            "Kareth port fees rise by three per cent",
            "Kareth port fees rise by five per cent",
            "three five",
        ),
        ("Kareth port fees rise by three per cent", "Kareth port fees rise by 5 per cent", "three 5"),
        ("Two thousand leave one pier", "2,000 leave a pier", ""),
        ("Three of two thousand leave", "Five of two thousand leave", "Three Five"),
    ):
        sides = diff_texts(first, second, "en", "en", headlines=headlines)
        assert " ".join(span.text for side in sides for span in side if span.figure) == marked, first


def test_chinese_is_compared_by_words() -> None:
    """Shingles of three words of the segmenter, as in the index; a shorter common run is not marked."""
    a, b = diff_texts("港口大桥因暴风雨关闭。大桥关闭", "记者说，港口大桥因暴风雨受损。大桥受损", "zh", "zh")

    assert shared_passages(a) == shared_passages(b) == {0: "港口大桥因暴风雨"}


def test_traditional_characters_match_simplified_ones() -> None:
    """Each side is shown in its own characters."""
    a, b = diff_texts("港口大橋因暴風雨關閉。", "港口大桥因暴风雨关闭。", "zh", "zh")

    assert shared_passages(a) == {0: "港口大橋因暴風雨關閉"}
    assert shared_passages(b) == {0: "港口大桥因暴风雨关闭"}


def test_japanese_is_compared_by_characters_and_korean_by_syllables() -> None:
    """Spacing in Korean varies; a printed word is marked as a whole."""
    a, _ = diff_texts("港の大橋は強風のため閉鎖された。", "港の大橋は強風のため通れない。", "ja", "ja")
    first, second = diff_texts("항구를 다시 열수 있다", "항구를 다시 열 수 있다", "ko", "ko")

    assert shared_passages(a) == {0: "港の大橋は強風のため"}
    assert shared_passages(first) == {0: "항구를 다시 열수 있다"}
    assert shared_passages(second) == {0: "항구를 다시 열 수 있다"}


def test_umlauts_may_be_written_out() -> None:
    """As in the comparison of the sketches."""
    a, b = diff_texts("Die Fähre nach Köln", "Die Faehre nach Koeln", "de", "de")

    assert shared_passages(a) == {0: "Die Fähre nach Köln"}
    assert shared_passages(b) == {0: "Die Faehre nach Koeln"}


def test_two_common_words_are_not_a_passage() -> None:
    """A shingle has three."""
    a, b = diff_texts("harbour bridge closed", "harbour bridge open", "en", "en")

    assert shared_passages(a) == shared_passages(b) == {}


def test_a_passage_that_moved_keeps_its_number() -> None:
    """Two sentences in the other order."""
    first, second = "alpha beta gamma delta.", "red green blue white."
    a, b = diff_texts(f"{first} {second}", f"{second} {first}", "en", "en")

    assert shared_passages(a) == shared_passages(b) == {0: first, 1: second}


texts = st.text(st.sampled_from("ab 12.,\n'大桥 é"), max_size=80)


@given(texts, texts)
def test_joined_spans_are_the_text(a: str, b: str) -> None:
    """No character is lost, doubled or changed."""
    for spans, text in zip(diff_texts(a, b, "en", "zh"), (a, b), strict=True):
        assert "".join(p.text for p in spans) == text
        assert all(p.text for p in spans)


def test_long_texts_are_truncated() -> None:
    """The size of the comparison page is bounded."""
    a, _ = diff_texts("x" * (MAX_COMPARED_CHARS + 5), "", "en", "en")

    assert sum(len(p.text) for p in a) == MAX_COMPARED_CHARS


@given(texts)
def test_a_text_compared_with_itself(text: str) -> None:
    """Both sides are equal, without different figures."""
    a, b = diff_texts(text, text, "en", "en")

    assert a == b
    assert not any(p.figure for p in a)


def test_common_words_of_headlines_are_marked_in_any_order() -> None:
    """Inflected ones too, and no stop words; Chinese by words, Japanese by runs of characters."""
    lines = "Port of Kareth's ferries stop", "The ferry of the Kareth line"
    a, b = diff_texts(*lines, "en", "en", headlines=True)
    zh, _ = diff_texts("大橋因暴風雨關閉", "暴风雨过后的大桥", "zh", "zh", headlines=True)
    ja, _ = diff_texts("港の大橋は強風のため閉鎖", "大橋は強風のため通れない", "ja", "ja", headlines=True)

    assert list(shared_passages(a).values()) == ["Kareth's", "ferries"]
    assert list(shared_passages(b).values()) == ["ferry", "Kareth"]
    assert list(shared_passages(zh).values()) == ["大橋", "暴風雨"]
    assert list(shared_passages(ja).values()) == ["大橋は強風のため"]
