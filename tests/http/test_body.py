"""Bodies: lines, forms, gzip."""

from __future__ import annotations

import gzip
import random
import time
import zlib
from urllib.parse import parse_qsl, quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import InputTooLarge, InvalidInput
from aggregator.http.body import (
    CHUNK_BYTES,
    STEPS_PER_YIELD,
    BatchLine,
    GzipDecompressor,
    LineSplitter,
    parse_form,
)
from aggregator.http.pages.search import CompareQuery

BODY_PIECES = st.lists(st.sampled_from([b"a", b"bb", b" ", b"\t", b"\r", b"\n", b"{}", b"\xff", b"\0"]))


def split(chunks: list[bytes], max_bytes: int = 100) -> list[BatchLine]:
    """All lines of a body that arrives as ``chunks``."""
    splitter = LineSplitter(max_bytes)
    return [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.flush()


def shown(lines: list[BatchLine]) -> list[tuple[int, bytes, str]]:
    """Lines with the names of their errors, since errors do not compare."""
    return [(line.number, line.data, type(line.error).__name__) for line in lines]


@given(BODY_PIECES, st.integers(min_value=1, max_value=6))
def test_packet_boundaries_make_no_difference(pieces: list[bytes], max_bytes: int) -> None:
    """Byte by byte, in pieces or at once: the same lines, numbers and errors."""
    body = b"".join(pieces)
    at_once = shown(split([body], max_bytes))

    assert shown(split(pieces, max_bytes)) == at_once
    assert shown(split([body[i : i + 1] for i in range(len(body))], max_bytes)) == at_once


@given(BODY_PIECES)
def test_lines_are_those_of_the_body_without_blank_ones(pieces: list[bytes]) -> None:
    """Numbers count blank lines too; white space at the ends is removed."""
    body = b"".join(pieces)
    expected = [(i, line.strip(b" \t\r")) for i, line in enumerate(body.split(b"\n"), 1)]

    found = split([body], max_bytes=len(body))

    assert [(line.number, line.data) for line in found] == [(i, line) for i, line in expected if line]
    assert all(line.error is None for line in found)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"abcd", [(1, b"abcd", "NoneType")]),
        (b"abcd\r\n", [(1, b"abcd", "NoneType")]),
        (b"abcde\n", [(1, b"", "InputTooLarge")]),
        (b"abcdefgh", [(1, b"", "InputTooLarge")]),
        (b"abcdefgh\nok\n", [(1, b"", "InputTooLarge"), (2, b"ok", "NoneType")]),
        (b"\n\n\nok", [(4, b"ok", "NoneType")]),
        (b"", []),
        (b"\n \t\r\n", []),
    ],
)
def test_a_line_has_at_most_four_bytes_here(body: bytes, expected: list[tuple[int, bytes, str]]) -> None:
    """The limit is exact, excludes the line end, and spares the lines after a long one."""
    assert shown(split([body], max_bytes=4)) == expected


def test_the_error_of_a_long_line_names_the_setting() -> None:
    """The caller learns the limit and how to raise it."""
    (line,) = split([b"abcde\n"], max_bytes=4)

    assert isinstance(line.error, InputTooLarge)
    assert str(line.error) == "line: larger than 4 bytes (setting max_body_bytes)."


def test_a_line_without_end_is_not_buffered() -> None:
    """Beyond the limit, data is counted and dropped."""
    splitter = LineSplitter(4)
    for _ in range(1000):
        assert splitter.feed(b"x" * 1000) == []

    assert sum(map(len, splitter._partial_line)) <= 5
    assert shown(splitter.feed(b"\nok\n")) == [(1, b"", "InputTooLarge"), (2, b"ok", "NoneType")]


def test_the_line_that_is_being_read_is_not_counted_yet() -> None:
    """A failure of the body is reported as the line after."""
    splitter = LineSplitter(100)
    splitter.feed(b"one\ntwo\nthr")

    assert splitter.line_number == 2


@given(st.text(), st.text())
def test_form_fields_are_those_that_were_encoded(a: str, b: str) -> None:
    """Any text, escaped as browsers do, with plus signs for spaces or without."""
    a, b = (text.encode("utf-8", "replace").decode() for text in (a, b))
    for body in (urlencode({"a": a, "b": b}), urlencode({"a": a, "b": b}, quote_via=quote)):
        assert parse_form(body.encode(), CompareQuery) == CompareQuery(a=a, b=b)


@given(st.lists(st.sampled_from(["%C3%A9", "%3D", "%25", "=", "+", "&", "a", "\r\n", " ", "_", "%0a", "b="])))
def test_form_fields_are_read_as_by_urllib(parts: list[str]) -> None:
    """Also those that no browser sends."""
    body = "a=" + "".join(parts)
    fields = parse_qsl(body, keep_blank_values=True)
    try:
        found = parse_form(body.encode(), CompareQuery)
    except InvalidInput:
        assert (
            len(fields) > len(dict(fields))
            or not {name for name, _ in fields} <= {"a", "b"}
            or (body.count("&") >= 8)
        )
    else:
        assert found == CompareQuery(**dict(fields))


@pytest.mark.parametrize("body", [b"a=%", b"a=%2", b"a=%zz", b"a=%ff", b"a=\xc3\xa9", b"a=1&a=2", b"&" * 24])
def test_a_form_that_no_browser_sends_is_refused(body: bytes) -> None:
    """Escapes without two digits or not of UTF-8, bytes beyond ASCII, repeated or too many fields."""
    with pytest.raises(InvalidInput):
        parse_form(body, CompareQuery)


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
