"""The terms that articles on one matter find one another under."""

import numpy as np

from aggregator.index import keys, term_index
from aggregator.index.codec.postings import pack_topic, weighed

TERMS = tuple((f"term{n}", 1 / (n + 1)) for n in range(20))


def test_hashes_are_what_they_were() -> None:
    """Stored: golden values. The lowest byte is the weight's; key and entry together say all of a value."""
    assert term_index.term_hash("ferry") == 4269045302255872
    assert term_index.indexed([("ferry", 0.5)]) == [4269045302255872 | 128]
    assert term_index.split(4269045302255872 | 255) == (4269045302255872, 1.0)
    assert keys.topic(b"", 4269045302255872 | 128) == b"tf2aac"
    assert pack_topic(4269045302255872 | 128, 2) == bytes.fromhex("8061c590") + b"\x02" + bytes(7)


def test_the_heaviest_are_indexed_and_more_are_probed() -> None:
    """A term without any weight left still has one."""
    assert [term_index.split(v)[0] for v in term_index.indexed(TERMS)] == list(term_index.probed(TERMS))[
        : term_index.INDEXED
    ]
    assert len(term_index.probed(TERMS)) == term_index.PROBED
    assert term_index.indexed([("faint", 0.0001)])[0] & 0xFF == 1
    assert term_index.indexed([]) == [] and term_index.probed([]) == {}


def test_weighed() -> None:
    """Products are summed over buckets and layers; of equals the newer is first; strangers and old ones are left out."""
    sea, storm, stranger = (term_index.term_hash(term) for term in ("sea", "storm", "stranger"))
    layer = [
        b"".join(pack_topic(sea | weight, number) for number, weight in ((1, 200), (5, 100), (7, 100))),
        pack_topic(storm | 60, 3) + pack_topic(stranger | 255, 9),
    ]
    above = [pack_topic(sea | 100, 3), None]

    assert weighed(layer + above, {sea: 0.5, storm: 0.5}, 3).tolist() == [3, 7, 5]
    assert weighed([None, None], {sea: 0.5, storm: 0.5}, 3).tolist() == []
    assert weighed([], {}, 0).tolist() == []
    assert weighed([b""], {sea: 1.0}, 0).dtype == np.uint64
