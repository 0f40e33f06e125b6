"""Term index: hashes, index keys and ranking by shared terms."""

import numpy as np

from aggregator.index import keys, term_index
from aggregator.index.codec.postings import encode_term_postings, top_by_terms

TERMS = tuple((f"term{n}", 1 / (n + 1)) for n in range(30))


def test_stored_hashes_are_unchanged() -> None:
    """Golden values. The lowest byte is the weight; bucket key and posting together hold the index key."""
    assert term_index.term_hash("ferry") == 4269045302255872
    assert term_index.index_keys([("ferry", 0.5)]) == [4269045302255872 | 128]
    assert keys.term_buckets(b"", [4269045302255872 | 128]) == [b"tf2aac"]
    posting = bytes.fromhex("8061c590") + b"\x02" + bytes(7)
    assert encode_term_postings([4269045302255872 | 128], 2) == [posting]


def test_the_heaviest_terms_are_indexed_and_more_are_queried() -> None:
    """A term whose weight rounds to zero keeps the smallest weight."""
    hashes = [index_key & ~0xFF for index_key in term_index.index_keys(TERMS)]
    assert hashes == list(term_index.query_weights(TERMS))[: term_index.INDEXED_TERMS]
    assert len(term_index.query_weights(TERMS)) == term_index.QUERY_TERMS
    assert term_index.index_keys([("faint", 0.0001)])[0] & 0xFF == 1
    assert term_index.index_keys([]) == [] and term_index.query_weights([]) == {}


def test_articles_are_ranked_by_the_weight_of_shared_terms() -> None:
    """Products are summed over buckets and segments; ties: newer first."""
    sea, storm, other = (term_index.term_hash(term) for term in ("sea", "storm", "other"))

    def posting(index_key: int, number: int) -> bytes:
        return encode_term_postings([index_key], number)[0]

    frozen = [
        b"".join(posting(sea | weight, number) for number, weight in ((1, 200), (5, 100), (7, 100))),
        posting(storm | 60, 3) + posting(other | 255, 9),
    ]
    writable = [posting(sea | 100, 3), None]

    assert top_by_terms(frozen + writable, {sea: 0.5, storm: 0.5}, 3).tolist() == [3, 7, 5]
    assert top_by_terms([None, None], {sea: 0.5, storm: 0.5}, 3).tolist() == []
    assert top_by_terms([], {}, 0).tolist() == []
    assert top_by_terms([b""], {sea: 1.0}, 0).dtype == np.uint64
