"""The terms that articles on one matter find one another under."""

import numpy as np

from aggregator.index import keys, term_index
from aggregator.index.codec.postings import encode_term_posting, top_by_terms

TERMS = tuple((f"term{n}", 1 / (n + 1)) for n in range(20))


def test_hashes_are_what_they_were() -> None:
    """Stored: golden values. The lowest byte is the weight's; key and entry together say all of a value."""
    assert term_index.term_hash("ferry") == 4269045302255872
    assert term_index.index_keys([("ferry", 0.5)]) == [4269045302255872 | 128]
    assert term_index.split_index_key(4269045302255872 | 255) == (4269045302255872, 1.0)
    assert keys.term_bucket(b"", 4269045302255872 | 128) == b"tf2aac"
    assert encode_term_posting(4269045302255872 | 128, 2) == bytes.fromhex("8061c590") + b"\x02" + bytes(7)


def test_the_heaviest_are_indexed_and_more_are_probed() -> None:
    """A term without any weight left still has one."""
    assert [term_index.split_index_key(v)[0] for v in term_index.index_keys(TERMS)] == list(
        term_index.query_weights(TERMS)
    )[: term_index.INDEXED_TERMS]
    assert len(term_index.query_weights(TERMS)) == term_index.QUERY_TERMS
    assert term_index.index_keys([("faint", 0.0001)])[0] & 0xFF == 1
    assert term_index.index_keys([]) == [] and term_index.query_weights([]) == {}


def test_weighed() -> None:
    """Products are summed over buckets and layers; of equals the newer is first; strangers and old ones are left out."""
    sea, storm, stranger = (term_index.term_hash(term) for term in ("sea", "storm", "stranger"))
    layer = [
        b"".join(
            encode_term_posting(sea | weight, number) for number, weight in ((1, 200), (5, 100), (7, 100))
        ),
        encode_term_posting(storm | 60, 3) + encode_term_posting(stranger | 255, 9),
    ]
    above = [encode_term_posting(sea | 100, 3), None]

    assert top_by_terms(layer + above, {sea: 0.5, storm: 0.5}, 3).tolist() == [3, 7, 5]
    assert top_by_terms([None, None], {sea: 0.5, storm: 0.5}, 3).tolist() == []
    assert top_by_terms([], {}, 0).tolist() == []
    assert top_by_terms([b""], {sea: 1.0}, 0).dtype == np.uint64
