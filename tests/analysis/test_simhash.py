"""Fingerprints: pinned values, the arithmetic of the weighted simhash."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.simhash import (
    feature_hash,
    fingerprint_from_sums,
    hamming_distance,
    hash_signs,
    hashed_sums,
)

FINGERPRINTS = st.integers(0, 2**64 - 1)
WEIGHTS = st.dictionaries(st.text(max_size=8), st.floats(0.01, 10), min_size=1, max_size=30)
GOLDEN = {
    "flood": 1.5,
    "river": 1.25,
    "evacuate": 0.75,
    "洪水": 0.5,
}
GOLDEN_HEX = "b1746e51742509a8"
GOLDEN_HASHES = {
    "": "deac2a348a701699",
    "pca:0": "c3ed1006335ba981",
    "pca:63": "e2832a79e8e82737",
    "洪水": "b83e643bb0fb6a26",
}


def simhash(weights: dict[str, float]) -> int:
    """The fingerprint of weights by feature name."""
    return fingerprint_from_sums(hashed_sums(weights))


def test_golden_values() -> None:
    """Literal values: if these change, all stored fingerprints are invalid."""
    assert {name: f"{feature_hash(name):016x}" for name in GOLDEN_HASHES} == GOLDEN_HASHES
    assert f"{simhash(GOLDEN):016x}" == GOLDEN_HEX


@pytest.mark.integration
@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_golden_value_under_another_hash_seed(seed: str) -> None:
    """Fingerprints do not depend on PYTHONHASHSEED."""
    program = (
        "from aggregator.analysis.simhash import fingerprint_from_sums, hashed_sums\n"
        f"print(format(fingerprint_from_sums(hashed_sums(dict({list(GOLDEN.items())!a}))), '016x'))"
    )
    environment = os.environ | {"PYTHONHASHSEED": seed}
    answer = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)

    assert answer.stdout.decode().strip() == GOLDEN_HEX


def test_bit_k_is_the_sign_of_sum_k() -> None:
    """Bit k has the value 1 << k and is set where the sum is above zero, not at it."""
    v = np.zeros(64)
    v[[0, 2, 63]] = 0.1
    v[1] = -5.0

    assert fingerprint_from_sums(v) == 1 | 4 | 1 << 63
    assert fingerprint_from_sums(np.zeros(64)) == 0
    assert fingerprint_from_sums(np.full(64, np.nan)) == 0
    with pytest.raises(ValueError, match="64 sums"):
        fingerprint_from_sums([1.0, 2.0])


@given(WEIGHTS)
def test_simhash_is_the_signed_weighted_sum(weights: dict[str, float]) -> None:
    """Bit by bit as Charikar's definition writes it, in plain Python."""
    for k in range(64):
        total = 0.0
        for name, weight in weights.items():
            total += weight if feature_hash(name) >> k & 1 else -weight

        assert simhash(weights) >> k & 1 == (total > 0)


def test_weights_matter() -> None:
    """The heavier feature wins every bit in which two differ (the sum printed in the paper is unweighted)."""
    assert simhash({"rain": 2.0, "snow": 1.0}) == feature_hash("rain")
    assert simhash({"rain": 1.0, "snow": 2.0}) == feature_hash("snow")
    assert simhash({}) == 0


def test_no_names_give_an_empty_sign_array() -> None:
    """No names give an empty (0, 64) array, so that sums over it are zero."""
    assert hash_signs([]).shape == (0, 64)


def test_lone_surrogates_are_hashed() -> None:
    """A damaged term is hashed like any other instead of raising."""
    assert 0 <= feature_hash("\ud800") < 2**64


@given(FINGERPRINTS, FINGERPRINTS, FINGERPRINTS)
def test_distance_is_a_metric(a: int, b: int, c: int) -> None:
    """Zero only for equal fingerprints, symmetric, triangle inequality, at most 64."""
    assert (hamming_distance(a, b) == 0) == (a == b)
    assert hamming_distance(a, b) == hamming_distance(b, a) <= 64
    assert hamming_distance(a, c) <= hamming_distance(a, b) + hamming_distance(b, c)
