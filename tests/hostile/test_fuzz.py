"""The short form of ``tests/hostile/fuzz.py``: a fiftieth of its executions."""

from tests.hostile.fuzz import fuzzed

SHARE = 0.02


def test_mutated_bytes_meet_no_error_that_is_none_of_ours() -> None:
    """Tokenizers, extractor, model loader, buckets, records, streams, and answers of the store."""
    ran, wrong = fuzzed(SHARE, seed=1)

    assert wrong == []
    assert min(count for count, _ in ran.values()) >= 20
    assert {"extractor", "model loader", "bucket", "article stream", "tokenizer zh"} <= ran.keys()
