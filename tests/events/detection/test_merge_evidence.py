"""Key terms that two stories must share before they are merged."""

from __future__ import annotations

import pytest

from aggregator.events.detection import merge_evidence
from tests.support.detector_stream import DetectorStream

LANDING = [
    "engine runway passengers",
    "emergency runway pilot",
    "engine pilot smoke",
    "emergency passengers smoke",
]
CRASH = [
    "mountain victims search",
    "valley victims wreck",
    "mountain wreck families",
    "valley search families",
]


@pytest.mark.parametrize(("times_a_week", "events"), [(0, 1), (7, 0)])
def test_a_shared_word_merges_two_topics_only_if_it_is_rare(times_a_week: int, events: int) -> None:
    """Nine items on each of two planes; only an otherwise unused word would connect them."""
    stream = DetectorStream()
    for i in range(times_a_week):
        stream.send((i - 7) * 24 * 60, f"plane timetable{i} route{i}")
    for i in range(9):
        stream.send(i * 6, f"plane {LANDING[i % 4]}")
        stream.send(i * 6 + 3, f"plane {CRASH[i % 4]}")
    stream.tick(60)

    assert len(stream.fired) == events


@pytest.mark.parametrize(
    ("other_terms", "supported"),
    [
        ("plane engine", False),  # one common word
        ("plane crash", True),
        ("thornby fire", True),  # an otherwise unused place name
        ("summerton fire", False),  # exactly 0.05 per window is not rare
        ("engine runway", False),
    ],
)
def test_two_common_terms_or_one_rare_term_support_a_merge(other_terms: str, supported: bool) -> None:
    """A term is rare below 0.05 expected documents per window."""
    expected = {"plane": 1.2, "crash": 0.9, "thornby": 0.049, "summerton": 0.05}

    terms = ["plane", "crash", "thornby", "summerton"]

    assert (
        merge_evidence.terms_support_merge(terms, other_terms.split(), lambda term: expected.get(term, 0.0))
        is supported
    )
