"""Gzip decompression: content, chunk sizes, and CPU time linear in the bytes received."""

from __future__ import annotations

import gzip
import random
import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.http.gzip_decoding import CHUNK_BYTES, STEPS_PER_YIELD, GzipDecompressor

EMPTY_MEMBER = gzip.compress(b"")
CONTENTS = st.lists(st.binary(max_size=400), min_size=1, max_size=12)


def decompress(data: bytes, packet_bytes: int | None = None) -> bytes:
    """The whole content of ``data``, received in packets."""
    decompressor = GzipDecompressor()
    step = packet_bytes or len(data) or 1
    found = [
        c for start in range(0, len(data), step) for c in decompressor.decompress(data[start : start + step])
    ]
    decompressor.check_complete()
    assert all(len(chunk) <= CHUNK_BYTES for chunk in found)
    return b"".join(found)


def cpu_s(members: int) -> float:
    """CPU time to decompress a body of empty members in one packet; the least of three."""
    body, times = EMPTY_MEMBER * members, []
    for _ in range(3):
        started = time.thread_time()
        assert decompress(body) == b""
        times.append(time.thread_time() - started)
    return min(times)


@given(CONTENTS, st.integers(min_value=1, max_value=3000))
def test_members_and_packets_make_no_difference(contents: list[bytes], packet_bytes: int) -> None:
    """A body of several members is the concatenation of their contents."""
    body = b"".join(gzip.compress(content) for content in contents)

    assert decompress(body) == decompress(body, packet_bytes) == b"".join(contents)


@pytest.mark.parametrize("size", [CHUNK_BYTES - 1, 3 * CHUNK_BYTES, 5_000_000])
def test_large_members(size: int) -> None:
    """Compressible and incompressible content, followed by another member."""
    noise = random.Random(1).randbytes(size)
    for content in (b"a" * size, noise):
        assert decompress(gzip.compress(content, 1) + gzip.compress(b"end")) == content + b"end"


def test_empty_members_cost_linear_time() -> None:
    """Sixteen times the members take about sixteen times the CPU, not 256 times."""
    assert cpu_s(64_000) < 64 * cpu_s(4_000)


def test_members_without_content_yield() -> None:
    """The caller can run other tasks after every STEPS_PER_YIELD members."""
    chunks = list(GzipDecompressor().decompress(EMPTY_MEMBER * 10 * STEPS_PER_YIELD))

    assert chunks == [b""] * 10


def test_uncompressed_data_passes_unchanged() -> None:
    """Some clients send the header without compressing."""
    assert decompress(b'{"text": "x"}', 4) == b'{"text": "x"}'
    assert decompress(b"") == b""


@pytest.mark.parametrize(
    "damaged",
    [gzip.compress(b"abc")[:-1], b"\x1fx", gzip.compress(b"abc") + b"\0"],
    ids=["truncated", "no header", "extended"],  # gzip writes the time
)
def test_damaged_data(damaged: bytes) -> None:
    """Truncated, not gzip, or followed by something else."""
    with pytest.raises(zlib.error):
        decompress(damaged)
