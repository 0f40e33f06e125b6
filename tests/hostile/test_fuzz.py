"""Short form of ``tests/hostile/fuzz.py``: 1/50 of its executions."""

import pytest

from tests.hostile.fuzz import fuzz

SHARE = 0.02


@pytest.mark.integration
def test_mutated_bytes_raise_only_expected_errors_in_bounded_time() -> None:
    """Requests, bodies, tokenizers, extractor, models, buckets, records, streams, and store replies.

    Nor does an input take more CPU time per byte than the bound of its target.
    """
    executions, failures = fuzz(SHARE, seed=1)

    assert failures == []
    assert min(done.count for done in executions.values()) >= 20
    assert {"extractor", "model loader", "bucket", "article stream", "tokenizer zh"} <= executions.keys()
    assert {"gzip", "http requests", "headers", "query", "form", "batch lines"} <= executions.keys()
