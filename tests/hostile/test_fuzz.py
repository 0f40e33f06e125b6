"""Short form of ``tests/hostile/fuzz.py``: 1/50 of its executions."""

from tests.hostile.fuzz import fuzz

SHARE = 0.02


def test_mutated_bytes_raise_only_expected_errors() -> None:
    """Tokenizers, extractor, model loader, buckets, records, streams, and store replies."""
    executions, failures = fuzz(SHARE, seed=1)

    assert failures == []
    assert min(count for count, _ in executions.values()) >= 20
    assert {"extractor", "model loader", "bucket", "article stream", "tokenizer zh"} <= executions.keys()
