"""Stored texts: any text survives compression."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.index.codec.stored_text import compress_text, decompress_text


@given(st.text(st.characters(exclude_categories=())), st.integers(1, 300))
def test_any_text_round_trips(text: str, times: int) -> None:
    """Lone surrogates included, which crawlers deliver in broken JSON."""
    assert decompress_text(compress_text(text * times)) == text * times


def test_the_stored_form_is_zlib_over_utf8() -> None:
    """Texts of earlier versions are read, whatever level they were compressed with."""
    text = "Grüße aus dem Hafen"

    assert zlib.decompress(compress_text(text)) == text.encode()
    assert decompress_text(zlib.compress(text.encode(), 1)) == text


def test_a_truncated_text_is_rejected() -> None:
    """It never yields the beginning of the text."""
    with pytest.raises(zlib.error):
        decompress_text(compress_text("Two ships waited for the tide.")[:-1])
