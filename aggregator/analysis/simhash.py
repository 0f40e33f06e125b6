"""Simhash: from the weights of features to 64 sums, whose signs are the fingerprint.

The weighted simhash of Charikar (2002) as used by Hu & You (MECS 2017, section 3.2): every feature name is
hashed to 64 bits; with ``x_i`` the weight of feature i, ``V_k = sum(x_i * s_ik)`` where ``s_ik`` is +1 if bit
k of its hash is set and -1 otherwise; bit k of the fingerprint, of value ``1 << k``, is ``V_k > 0``. The
share of bits in which two fingerprints differ is about ``angle / pi``. Changing ``HASH_SEED``, the hash or
the order of bits invalidates all stored fingerprints.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

FINGERPRINT_BITS = 64
HASH_SEED = 0x5EED_2017

FloatArray = npt.NDArray[np.float64]


def fingerprint_from_sums(sums: npt.ArrayLike) -> int:
    """Return the fingerprint whose bit k is ``sums[k] > 0``; ``sums`` is (64,). Zero and NaN give a 0 bit.

    >>> fingerprint_from_sums([1.0, -1.0, 2.0] + [0.0] * 61)
    5
    """
    positive = np.asarray(sums) > 0
    if positive.shape != (FINGERPRINT_BITS,):
        raise ValueError(f"Expected an array of {FINGERPRINT_BITS} sums, got one of shape {positive.shape}.")
    return int.from_bytes(np.packbits(positive, bitorder="little").tobytes(), "little")


def hashed_sums(weights: Mapping[str, float]) -> FloatArray:
    """``V`` of weights by feature name, (64,), zeros without any; not normalized.

    Terms that occur once weigh exactly 1, or a multiple of 1/16, so that ties, common in short texts, are
    exactly 0 in any order of the terms.
    """
    hashes = np.array([feature_hash(name) for name in weights], np.uint64)
    return sums_of_hashes(hashes, np.fromiter(weights.values(), np.float64, len(weights)))


def sums_of_hashes(hashes: npt.NDArray[np.uint64], weights: FloatArray) -> FloatArray:
    """``hashed_sums`` of features given by their ``feature_hash``, (n,), and ``weights``, (n,)."""
    # Reducing the first axis adds row after row, in the order of the features, on every machine.
    sums: FloatArray = np.add.reduce(_signs(hashes) * weights[:, None], axis=0)
    return sums


def hash_signs(names: Iterable[str]) -> FloatArray:
    """Return (n, 64) of +1.0 and -1.0: column k of row i is the sign of bit k of the hash of name i."""
    return _signs(np.array([feature_hash(name) for name in names], np.uint64))


def _signs(hashes: npt.NDArray[np.uint64]) -> FloatArray:
    bits = np.unpackbits(hashes.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    return 2 * bits.astype(np.float64) - 1


def feature_hash(name: str) -> int:
    """The unsigned 64-bit hash of a feature name; lone surrogates are hashed like other characters."""
    return xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"), HASH_SEED)


def l2_normalize(vector: FloatArray) -> FloatArray:
    """A nonzero vector, (n,), divided by its L2 norm."""
    # fsum is correctly rounded; a numpy sum depends on the machine's vector instructions.
    return vector / math.sqrt(math.fsum((vector * vector).tolist()))


def hamming_distance(a: int, b: int) -> int:
    """Return the number of bits in which two fingerprints differ, 0..64."""
    return (a ^ b).bit_count()
