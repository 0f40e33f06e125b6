"""Wire form of analysis results."""

from __future__ import annotations

import pickle
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.pool.fork_server_main import (
    MESSAGE_BYTES,
    decode_result,
    encode_result,
    length_prefixed,
)
from aggregator.domain import NO_SKETCH, Analysis, Article, Sketch
from aggregator.errors import NoText

WORDS = st.text(max_size=20)
ARTICLES = st.builds(Article, id=st.just("a1"), title=WORDS, text=WORDS, html=WORDS)
SKETCHES = st.builds(
    lambda size, sample: Sketch(size, np.array(sorted(sample), np.uint32), np.arange(len(sample)) % 2 == 0),
    st.integers(min_value=0, max_value=10**6),
    st.sets(st.integers(min_value=0, max_value=2**32 - 1), max_size=8),
)
ANALYSES = st.builds(
    Analysis,
    lang=st.sampled_from(["en", "zh"]),
    space=st.just("en.0000"),
    fingerprint=st.integers(min_value=0, max_value=2**64 - 1),
    text_hash=st.binary(min_size=16, max_size=16),
    short=st.booleans(),
    sketch=SKETCHES,
    terms=st.lists(st.tuples(WORDS, st.floats(min_value=0, max_value=1)), max_size=3).map(tuple),
    figures=st.lists(st.integers(min_value=0, max_value=2**32 - 1), max_size=3).map(tuple),
    title=WORDS,
    text=WORDS,
)


@given(ANALYSES, ARTICLES)
def test_decoding_inverts_encoding(analysis: Analysis, article: Article) -> None:
    """Every field survives the pipe, whether the text is the article's or was extracted."""
    decoded = decode_result(pickle.loads(pickle.dumps(encode_result(analysis, article))), article)

    assert isinstance(decoded, Analysis)
    for field in fields(Analysis):
        if field.name != "sketch":
            assert getattr(decoded, field.name) == getattr(analysis, field.name), field.name
    assert decoded.sketch.size == analysis.sketch.size
    assert decoded.sketch.sample.dtype == np.uint32
    assert decoded.sketch.sample.tolist() == analysis.sketch.sample.tolist()


def test_the_text_that_the_caller_has_is_not_sent() -> None:
    """The size of the encoding does not depend on it; an extracted text is sent."""
    article = Article("a1", title="Ferry late" * 100, text="x" * 100_000)
    analysis = Analysis(
        "en", "en.0000", 1, b"h" * 16, False, NO_SKETCH,
        title=article.title, text=article.text,
    )  # fmt: skip

    assert len(pickle.dumps(encode_result(analysis, article))) < 500
    assert len(pickle.dumps(encode_result(analysis, Article("a1", html="<p>x")))) > 100_000


def test_an_error_stays_an_error() -> None:
    """The caller raises it for that article only."""
    error, article = NoText("html: no main text was found in it.", field="html"), Article("a1", html="<p>")

    assert decode_result(encode_result(error, article), article) is error


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000])
def test_data_follows_its_length(size: int) -> None:
    """The reader knows where the message ends."""
    message = length_prefixed(b"x" * size)

    assert int.from_bytes(message[:MESSAGE_BYTES]) == size
    assert message[MESSAGE_BYTES:] == b"x" * size
