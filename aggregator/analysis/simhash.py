"""Simhash: the 64-bit fingerprint of a weighted set of features.

The weighted simhash of Charikar (2002) as used by Hu & You (MECS 2017, section 3.2): every feature
name is hashed to 64 bits; with ``x_i`` the weight of feature i, ``V_k = sum(x_i * s_ik)`` where
``s_ik`` is +1 if bit k of its hash is set and -1 otherwise; bit k of the fingerprint is
``V_k > 0``. The share of bits in which two fingerprints differ is about ``angle / pi``, with the
angle between the two weight vectors. (The paper prints the unweighted sum, which is the same
for all dense vectors.)

Conventions: a fingerprint is an unsigned 64-bit ``int``; **bit k has the value ``1 << k``** and is
column k of every (n, 64) array; in JSON a fingerprint is 16 lower-case hex digits, most significant
bit (k = 63) first.

The hash is xxh3_64 of the UTF-8 name with a fixed seed: equal in every process and on every machine,
independent of PYTHONHASHSEED. Changing ``HASH_SEED``, the hash or the order of bits invalidates all
stored fingerprints; the tests pin literal values.
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
    """Return (count, 64) of +-1.0: the hash signs of the features ``pca:0`` .. ``pca:<count - 1>``.

    Column k is the normal of the hyperplane whose side is bit k of a vector ``x`` of PCA components:
    ``simhash({"pca:0": x[0], ...}) == fingerprint_from_sums(x @ hyperplanes(count))``.
    """
    return hash_signs(f"pca:{j}" for j in range(count))


def hamming_distance(a: int, b: int) -> int:
    """Return the number of bits in which two fingerprints differ, 0..64."""
    return (a ^ b).bit_count()


def to_hex(fingerprint: int) -> str:
    """Return a fingerprint as 16 lower-case hex digits, most significant bit first.

    >>> to_hex(5)
    '0000000000000005'
    """
    if not 0 <= fingerprint < 1 << FINGERPRINT_BITS:
        raise ValueError(f"A fingerprint is an unsigned 64-bit number, not {fingerprint}.")
    return f"{fingerprint:016x}"
