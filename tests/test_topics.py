"""The terms that articles on one matter find one another under."""

import numpy as np

from aggregator import topics
from aggregator.store.entries import pack, weighed

TERMS = tuple((f"term{n}", 1 / (n + 1)) for n in range(20))


def test_hashes_are_what_they_were() -> None:
    """Stored: golden values. The lowest byte is the weight's."""
    assert topics.term_hash("ferry") == 17486009558040076288
    assert topics.indexed([("ferry", 0.5)]) == [17486009558040076288 | 128]
    assert topics.split(17486009558040076288 | 255) == (17486009558040076288, 1.0)


def test_the_heaviest_are_indexed_and_more_are_probed() -> None:
    """A term without any weight left still has one."""
    assert [topics.split(v)[0] for v in topics.indexed(TERMS)] == list(topics.probed(TERMS))[: topics.INDEXED]
    assert len(topics.probed(TERMS)) == topics.PROBED
    assert topics.indexed([("faint", 0.0001)])[0] & 0xFF == 1
    assert topics.indexed([]) == [] and topics.probed([]) == {}


def test_weighed() -> None:
    """Products are summed over buckets; of equals the newer comes first; strangers and old ones are left out."""
    sea, storm, stranger = (topics.term_hash(term) for term in ("sea", "storm", "stranger"))
    buckets = [
        b"".join(pack(sea | weight, number) for number, weight in ((1, 200), (5, 100), (7, 100), (3, 100))),
        pack(storm | 60, 3) + pack(stranger | 255, 9),
        None,
    ]

    assert weighed(buckets, {sea: 0.5, storm: 0.5}, 3).tolist() == [3, 7, 5]
    assert weighed(buckets, {}, 0).tolist() == []
    assert weighed([], {sea: 1.0}, 0).dtype == np.uint64
