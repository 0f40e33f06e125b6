"""Halves of surrogate pairs are replaced, everything else stays."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from aggregator_client.surrogates import whole_json, whole_text

any_text = st.text(st.characters(codec=None))


@given(any_text)
def test_a_text_without_halves_can_be_written(text: str) -> None:
    """It keeps its length in UTF-16, and stays as it is the second time."""
    whole = whole_text(text)

    assert whole_text(whole) == whole == whole.encode().decode()
    assert len(whole.encode("utf-16")) == len(text.encode("utf-16", "surrogatepass"))


@given(any_text, st.booleans())
def test_json_is_repaired_as_its_texts_are(text: str, ascii_only: bool) -> None:
    """As escapes and as bytes; text that looks like an escape is none."""
    data = json.dumps([text, "\\ud83d"], ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")

    assert json.loads(whole_json(data)) == [whole_text(text), "\\ud83d"]


@given(st.binary())
def test_other_bytes_do_not_raise(data: bytes) -> None:
    """What is not UTF-8 stays as it is, for the reader that has to report it."""
    assert whole_json(b"\xff" + data) == b"\xff" + data
    whole_json(data)
