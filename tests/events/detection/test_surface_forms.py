"""Terms are shown as words of the headlines."""

from __future__ import annotations

from tests.support.detector_stream import DetectorStream


def test_terms_are_shown_as_words_not_stems() -> None:
    """The most frequent spelling, preferably inside a headline; stems without a word are left out."""
    stream = DetectorStream()
    titles = ["Flooding: Thornby calls for help", "Thornby Floods again", "Help for flooded Thornby"]
    for i in range(18):
        terms = (("thornbi", 1.0), ("flood", 1.0), ("evacu", 1.0))
        stream.send(i, title=titles[i % 3], terms=terms, lang="en")

    (event,) = stream.fired
    assert set(event.terms) == {"Thornby", "flooded"}
    assert "Thornby" in event.reason and "thornbi" not in event.reason


def test_terms_of_a_script_without_spaces_are_shown_as_they_are() -> None:
    """A run of characters holds several terms; the whole clause is not shown."""
    stream = DetectorStream()
    for i in range(16):
        stream.send(
            i, title=f"白沙湾：三百只小海龟放归大海 {i}", terms=(("小海龟", 1.0), ("放归", 1.0)), lang="zh"
        )

    assert set(stream.fired[0].terms) == {"小海龟", "放归"}


def test_stems_are_shown_if_no_headline_contains_any_term() -> None:
    """Stems are better than no terms."""
    stream = DetectorStream()
    for i in range(16):
        stream.send(i, title=f"Help is near, part {i}", terms=(("thornbi", 1.0), ("evacu", 1.0)), lang="en")

    assert set(stream.fired[0].terms) == {"thornbi", "evacu"}
    assert "thornbi" in stream.fired[0].reason
