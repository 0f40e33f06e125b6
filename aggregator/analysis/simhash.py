"""Which 64 bits stand for a weighted set of features?

The weighted simhash of Charikar (2002) as Hu & You (MECS 2017, section 3.2) use it: every feature
name is hashed to 64 bits; with ``x_i`` the weight of feature i, ``V_k = sum(x_i * s_ik)`` where
``s_ik`` is +1 if bit k of its hash is set and -1 otherwise; bit k of the fingerprint is
``V_k > 0``. The angle between two weight vectors decides the share of bits in which their
fingerprints differ, about ``angle / pi``. (The paper prints the unweighted sum, which is the same
for all dense vectors.)

Conventions, stated here once: a fingerprint is an unsigned 64-bit ``int``; **bit k has the value
``1 << k``** and column k of every (n, 64) array; on the wire a fingerprint is 16 lower-case hex
digits, most significant bit (k = 63) first.

The hash is xxh3_64 of the UTF-8 name with a fixed seed: the same in every process, on every
machine, whatever PYTHONHASHSEED. Changing ``SEED``, the hash or the order of bits makes all stored
fingerprints worthless; the tests pin literal values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from aggregator.errors import InvalidInput

FINGERPRINT_BITS = 64
HASH_SEED = 0x5EED_2017
_HEX_DIGITS = frozenset("0123456789abcdef")


def fingerprint_from_sums(sums: npt.ArrayLike) -> int:
    """The fingerprint whose bit k is ``v[k] > 0``; ``v`` is (64,). Zero and NaN give a 0 bit.

    >>> bits_of([1.0, -1.0, 2.0] + [0.0] * 61)
    5
    """
    positive = np.asarray(sums) > 0
    if positive.shape != (FINGERPRINT_BITS,):
        raise ValueError(
            f"A fingerprint is made of {FINGERPRINT_BITS} sums, not of an array of shape {positive.shape}."
        )
    return int.from_bytes(np.packbits(positive, bitorder="little").tobytes(), "little")


def simhash(weights: Mapping[str, float]) -> int:
    """The fingerprint of named weights (Charikar); no weights at all give 0."""
    if not weights:
        return 0
    x = np.fromiter(weights.values(), np.float64, len(weights))
    # Reduced along the first axis, so in the order of the mapping, on every machine.
    return fingerprint_from_sums(np.add.reduce(x[:, None] * hash_signs(weights), axis=0))


def hash_signs(names: Iterable[str]) -> npt.NDArray[np.float64]:
    """(n, 64) of +1.0 and -1.0: row i is the hash of name i, bit by bit (column k = bit k)."""
    hashes = np.array([feature_hash(name) for name in names], dtype="<u8")
    bits = np.unpackbits(hashes.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    return 2 * bits.astype(np.float64) - 1


def feature_hash(name: str) -> int:
    """The unsigned 64-bit hash of a feature's name."""
    # A lone surrogate is a name like any other: refusing it is the business of the edges.
    return xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"), HASH_SEED)


def hyperplanes(count: int) -> npt.NDArray[np.float64]:
    """(count, 64) of +-1.0: the hashes of the features ``pca:0`` .. ``pca:<count - 1>``.

    Column k is the normal of the hyperplane that bit k of a vector of ``count`` PCA components
    tells the side of: ``simhash({"pca:0": x[0], ...}) == bits_of(x @ hyperplanes(count))``.
    """
    return hash_signs(f"pca:{j}" for j in range(count))


def hamming_distance(a: int, b: int) -> int:
    """In how many of the 64 bits two fingerprints differ, 0..64."""
    return (a ^ b).bit_count()


def to_hex(fingerprint: int) -> str:
    """16 lower-case hex digits, most significant bit first.

    >>> to_hex(5)
    '0000000000000005'
    """
    if not 0 <= fingerprint < 1 << FINGERPRINT_BITS:
        raise ValueError(f"A fingerprint is an unsigned 64-bit number, which {fingerprint} is not.")
    return f"{fingerprint:016x}"


def from_hex(digits: str) -> int:
    """The fingerprint written as 16 lower-case hex digits; raises BadInput for anything else."""
    if len(digits) != FINGERPRINT_BITS // 4 or not _HEX_DIGITS.issuperset(digits):
        shown = digits if len(digits) <= 40 else digits[:40] + "..."
        raise InvalidInput(
            f"fingerprint: {shown!r} is not 16 hex digits (0-9, a-f), most significant first.",
            field="fingerprint",
        )
    return int(digits, 16)
