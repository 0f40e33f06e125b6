"""reading.py: lines of files, whatever is wrong with them, and where verdict lines go."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aggregator.errors import InputTooLarge, InvalidInput
from aggregator.offline import jsonl


def read(path: Path, limit: int = 1000) -> list[jsonl.Line]:
    """All lines of one file."""
    return list(jsonl.read_lines([str(path)], max_line_bytes=limit))


def test_lines_are_numbered_as_an_editor_numbers_them(tmp_path: Path) -> None:
    """Blank lines count but are not given; a byte order mark and CR LF leave; the last line needs no end."""
    path = tmp_path / "articles.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"b": 2}')

    found = read(path)

    assert [(line.number, line.data) for line in found] == [(1, b'{"a": 1}'), (4, b'{"b": 2}')]
    assert found[1].location == f"{path}:4"


def test_gzip_is_known_by_content_not_by_name(tmp_path: Path) -> None:
    """A compressed file needs no .gz, and a plain file called .gz is read as it is."""
    zipped, plain = tmp_path / "zipped.jsonl", tmp_path / "plain.jsonl.gz"
    zipped.write_bytes(gzip.compress(b"{}\n[]\n"))
    plain.write_bytes(b"{}\n[]\n")

    assert [line.data for line in read(zipped)] == [line.data for line in read(plain)] == [b"{}", b"[]"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"title": "x"}\n'.encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04\n\n{}", "zip archive"),
        (lzma.compress(b"{}\n"), "xz"),
        (bz2.compress(b"{}\n"), "bzip2"),
        (gzip.compress(b"\xfe\xff" + '{"title": "x"}\n'.encode("utf-16-be")), "UTF-16"),
    ],
)
def test_a_file_of_another_kind_is_one_error(tmp_path: Path, content: bytes, said: str) -> None:
    """It says what the file is, once, and not that each of its lines is no JSON."""
    path = tmp_path / "articles.jsonl"
    path.write_bytes(content)

    (line,) = read(path)

    assert line.number == 1 and said in str(line.error)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_line_at_the_limit_is_read_and_one_above_is_an_error_in_its_place(
    tmp_path: Path, end: bytes
) -> None:
    """The limit is a property of the line; lines behind a long one are read as usual."""
    path = tmp_path / "articles.jsonl"
    path.write_bytes(b"x" * 10 + b"\n" + b"y" * 11 + b"\n" + b"z" * 5000 + b"\nend" + end)

    found = read(path, limit=10)

    assert [line.data for line in found] == [b"x" * 10, b"", b"", b"end"]
    assert [isinstance(line.error, InputTooLarge) for line in found] == [False, True, True, False]
    assert [line.number for line in found] == [1, 2, 3, 4]
    assert "10 bytes" in str(found[1].error)


def test_damaged_gzip_gives_what_was_readable_and_one_error(tmp_path: Path) -> None:
    """A file cut off while it was written loses only its end, and says so."""
    path = tmp_path / "cut.jsonl.gz"
    whole = gzip.compress(b"".join(b'{"n": %d}\n' % n for n in range(20_000)))
    path.write_bytes(whole[: len(whole) // 2])

    found = read(path)

    assert len(found) > 100
    assert [line.error is not None for line in found] == [False] * (len(found) - 1) + [True]
    assert "gzip" in str(found[-1].error)


def test_several_files_follow_one_another_with_their_own_numbers(tmp_path: Path) -> None:
    """Order is that of the command line; progress sums up to the bytes on disk."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"1\n2\n")
    second.write_bytes(b"3\n")
    told: list[int] = []
    files = [str(first), str(second)]

    found = list(jsonl.read_lines(files, max_line_bytes=10, progress=told.append))

    assert [(line.file, line.number, line.data) for line in found] == [
        (files[0], 1, b"1"),
        (files[0], 2, b"2"),
        (files[1], 1, b"3"),
    ]
    assert sum(told) == jsonl.total_bytes(files) == 6


@pytest.mark.parametrize("content", [b"1\n2\n", gzip.compress(b"1\n2\n")])
def test_standard_input_is_a_file_called_dash(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Plain or compressed; its size is not known beforehand."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))

    found = list(jsonl.read_lines(["-"], max_line_bytes=10))

    assert [line.data for line in found] == [b"1", b"2"]
    assert found[0].location == "standard input:1"
    assert jsonl.total_bytes(["-"]) is None


def test_every_file_that_cannot_be_read_is_named_at_once(tmp_path: Path) -> None:
    """Nothing is half done because the second file name was mistyped."""
    with pytest.raises(InvalidInput) as refusal:
        jsonl.check_readable(["-", str(tmp_path / "absent.jsonl"), str(tmp_path)])

    assert "absent.jsonl cannot be read: No such file or directory." in str(refusal.value)
    assert f"{tmp_path} is a directory" in str(refusal.value)


@pytest.mark.parametrize(
    ("bad", "said"),
    [(b"{", "not JSON"), (b"[]", "found list"), (b"[" * 100_000, "not JSON"), (b"\xff", "not JSON")],
)
def test_rows_stop_at_the_first_bad_line(tmp_path: Path, bad: bytes, said: str) -> None:
    """Files that must be whole: the error names file and line."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id": "a"}\n' + bad + b"\n")
    rows = jsonl.read_rows([str(path)])

    assert next(rows) == {"id": "a"}
    with pytest.raises(InvalidInput, match=r"rows\.jsonl:2: .*" + said):
        next(rows)


def test_verdict_lines_appear_under_their_name_only_when_complete(tmp_path: Path) -> None:
    """An interrupted run leaves what it had in .part and touches no older result."""
    out = tmp_path / "verdicts.jsonl"
    out.write_text("older\n")

    with pytest.raises(KeyboardInterrupt), jsonl.open_output(str(out)) as write:
        write(b"half")
        raise KeyboardInterrupt

    assert out.read_text() == "older\n"
    assert (tmp_path / "verdicts.jsonl.part").read_text() == "half\n"

    with jsonl.open_output(str(out)) as write:
        write(b"one")
        write(b"two")

    assert out.read_text() == "one\ntwo\n"
    assert not (tmp_path / "verdicts.jsonl.part").exists()


def test_output_named_gz_is_compressed_and_a_device_is_written_directly(tmp_path: Path) -> None:
    """/dev/null is not replaced by a file."""
    with jsonl.open_output(str(tmp_path / "verdicts.jsonl.gz")) as write:
        write(b"one")
    with jsonl.open_output("/dev/null") as write:
        write(b"one")

    assert gzip.decompress((tmp_path / "verdicts.jsonl.gz").read_bytes()) == b"one\n"
    assert Path("/dev/null").is_char_device()


def test_output_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    """A missing directory is found before any work."""
    with (
        pytest.raises(InvalidInput, match="cannot be written: No such file or directory"),
        jsonl.open_output(str(tmp_path / "absent" / "out")),
    ):
        pass


@given(st.lists(st.binary(max_size=40).filter(lambda b: b"\n" not in b), max_size=20), st.booleans())
def test_what_was_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], zipped: bool
) -> None:
    """Any bytes but line ends survive; white space only is no line; no limit is hit at the largest line.

    What begins like another kind of file is refused as one, which other tests are about.
    """
    path = tmp_path_factory.mktemp("round") / "lines"
    content = b"\n".join(lines)
    path.write_bytes(gzip.compress(content) if zipped else content)
    expected = [line.rstrip(b"\r") for line in content.removeprefix(jsonl.BOM).split(b"\n")]
    assume(
        not content.startswith(tuple(jsonl.UNSUPPORTED_FORMATS))
        and (zipped or not content.startswith(jsonl.GZIP_MAGIC))
    )

    assert [line.data for line in read(path, limit=40)] == [line for line in expected if line.strip()]
