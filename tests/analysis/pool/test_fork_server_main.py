"""Wire form of analysis results."""

from __future__ import annotations

import pickle
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.pool.fork_server_main import MESSAGE_BYTES, length_prefixed
from aggregator.domain import Analysis, Sketch
from aggregator.errors import NoText

WORDS = st.text(max_size=20)
SKETCHES = st.builds(
    lambda size, sample: Sketch(
        size, np.array(sorted(sample), np.uint32), np.arange(len(sample), dtype=np.uint8)
    ),
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


@given(ANALYSES)
def test_an_analysis_survives_the_pipe(analysis: Analysis) -> None:
    """Every field of it does, the arrays of its sketch with their types."""
    received = pickle.loads(pickle.dumps(analysis, pickle.HIGHEST_PROTOCOL))

    for field in fields(Analysis):
        if field.name != "sketch":
            assert getattr(received, field.name) == getattr(analysis, field.name), field.name
    assert received.sketch.size == analysis.sketch.size
    for name in ("sample", "marks"):
        sent, found = getattr(analysis.sketch, name), getattr(received.sketch, name)
        assert (found.dtype, found.tolist()) == (sent.dtype, sent.tolist())


def test_an_error_survives_the_pipe() -> None:
    """The caller raises it for that article only."""
    error = NoText("html: no main text was found in it.", field="html")
    received = pickle.loads(pickle.dumps(error))

    assert isinstance(received, NoText)
    assert (str(received), received.field) == (str(error), "html")


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000])
def test_data_follows_its_length(size: int) -> None:
    """The reader knows where the message ends."""
    message = length_prefixed(b"x" * size)

    assert int.from_bytes(message[:MESSAGE_BYTES]) == size
    assert message[MESSAGE_BYTES:] == b"x" * size
