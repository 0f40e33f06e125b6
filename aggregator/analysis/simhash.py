"""Simhash: the 64-bit fingerprint of a weighted set of features.

The weighted simhash of Charikar (2002) as used by Hu & You (MECS 2017, section 3.2): every feature name is
hashed to 64 bits; with ``x_i`` the weight of feature i, ``V_k = sum(x_i * s_ik)`` where ``s_ik`` is +1 if bit
k of its hash is set and -1 otherwise; bit k of the fingerprint, of value ``1 << k``, is ``V_k > 0``. The
share of bits in which two fingerprints differ is about ``angle / pi``. Changing ``HASH_SEED``, the hash or
the order of bits invalidates all stored fingerprints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

FINGERPRINT_BITS = 64
HASH_SEED = 0x5EED_2017


def fingerprint_from_sums(sums: npt.ArrayLike) -> int:
    """Return the fingerprint whose bit k is ``sums[k] > 0``; ``sums`` is (64,). Zero and NaN give a 0 bit.

    >>> fingerprint_from_sums([1.0, -1.0, 2.0] + [0.0] * 61)
    5
    """
    positive = np.asarray(sums) > 0
    if positive.shape != (FINGERPRINT_BITS,):
        raise ValueError(f"Expected an array of {FINGERPRINT_BITS} sums, got one of shape {positive.shape}.")
    return int.from_bytes(np.packbits(positive, bitorder="little").tobytes(), "little")


def simhash(weights: Mapping[str, float]) -> int:
    """Return the fingerprint of weights by feature name; no weights give 0."""
    if not weights:
        return 0
    x = np.fromiter(weights.values(), np.float64, len(weights))
    # Reducing the first axis sums in the order of the mapping, on every machine.
    return fingerprint_from_sums(np.add.reduce(x[:, None] * hash_signs(weights), axis=0))


def hash_signs(names: Iterable[str]) -> npt.NDArray[np.float64]:
    """Return (n, 64) of +1.0 and -1.0: column k of row i is the sign of bit k of the hash of name i."""
    hashes = np.array([feature_hash(name) for name in names], dtype="<u8")
    bits = np.unpackbits(hashes.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    return 2 * bits.astype(np.float64) - 1


def feature_hash(name: str) -> int:
    """Return the unsigned 64-bit hash of a feature name."""
    # Lone surrogates are hashed like other characters; rejecting them is up to input validation.
    return xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"), HASH_SEED)


def hyperplanes(count: int) -> npt.NDArray[np.float64]:
    """The normals, (count, 64) of +-1.0: the hash signs of the features ``pca:0``, ``pca:1``, ..."""
    return hash_signs(f"pca:{j}" for j in range(count))


def hamming_distance(a: int, b: int) -> int:
    """Return the number of bits in which two fingerprints differ, 0..64."""
    return (a ^ b).bit_count()


def to_hex(fingerprint: int) -> str:
    """Return a fingerprint as 16 lower-case hex digits, most significant bit first."""
    if not 0 <= fingerprint < 1 << FINGERPRINT_BITS:
        raise ValueError(f"A fingerprint is an unsigned 64-bit number, not {fingerprint}.")
    return f"{fingerprint:016x}"
