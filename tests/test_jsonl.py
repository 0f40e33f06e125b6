"""JSON lines files: reading, errors per line, and output that appears only when complete."""

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

from aggregator import jsonl
from aggregator.errors import InputTooLarge, InvalidInput


def read(path: Path, limit: int = 1000) -> list[jsonl.Line]:
    """Every line of one file."""
    return list(jsonl.read_lines([str(path)], max_line_bytes=limit))


def test_line_numbers_are_those_of_an_editor(tmp_path: Path) -> None:
    """Blank lines count but are skipped; byte order mark and CR LF are removed; the last end is optional."""
    path = tmp_path / "articles.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"b": 2}')

    lines = read(path)

    assert [(line.number, line.data) for line in lines] == [(1, b'{"a": 1}'), (4, b'{"b": 2}')]
    assert lines[1].location == f"{path}:4"


def test_gzip_is_recognized_by_content(tmp_path: Path) -> None:
    """A compressed file needs no .gz suffix, and an uncompressed file may have one."""
    zipped, plain = tmp_path / "zipped.jsonl", tmp_path / "plain.jsonl.gz"
    zipped.write_bytes(gzip.compress(b"{}\n[]\n"))
    plain.write_bytes(b"{}\n[]\n")

    assert [line.data for line in read(zipped)] == [line.data for line in read(plain)] == [b"{}", b"[]"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"title": "x"}\n'.encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04\n\n{}", "zip archive"),
        (lzma.compress(b"{}\n"), "xz"),
        (bz2.compress(b"{}\n"), "bzip2"),
        (gzip.compress(b"\xfe\xff" + '{"title": "x"}\n'.encode("utf-16-be")), "UTF-16"),
        (b'<?xml version="1.0"?>\n<!-- a -->\n<rss version="2.0">\n', "`aggregator follow FEED`"),
        (b'\xef\xbb\xbf<feed xmlns="http://www.w3.org/2005/Atom">', "`aggregator follow FEED`"),
        (b'{\n "version": "https://jsonfeed.org/version/1.1",\n', "`aggregator follow FEED`"),
        (
            b'{"title": "D", "version":"https://jsonfeed.org/version/1","items":[]}',
            "`aggregator follow FEED`",
        ),
        (b'<?xml version="1.0"?><opml version="2.0">', "lists feeds"),
        (b"\n<!DOCTYPE html>\n<html><p>Hello</p>", "HTML or XML"),
        (b"WARC/1.1\r\nWARC-Type: response\r\n", "WARC"),
        (b"a.jsonl".ljust(257, b"\0") + b"ustar\x0000", "tar archive"),
        (b'\x1e{"title": "x"}\n', "RFC 7464"),
        (b'{\n  "title": "x"\n}\n', "`jq -c .`"),
        (b'[{"title": "x"},\n{"title": "y"}]\n', "over several lines"),
        (b'[{"title": "x"}, {"title": "y"}]\n', "or an array; write an object per line"),
        (b' [ {"title": "x"}]', "or an array; write an object per line"),
        (
            b"id,title,text\n1,A,B\n",
            "write JSON lines. `aggregator dedupe FILE.csv --out DIR` reads files named .csv",
        ),
        (b'\xef\xbb\xbf"Id";"Title"\r\n', "The file is CSV"),
        (b"published\ttext\turl\n", "The file is CSV"),
        (b"published|text|url\n", "The file is CSV"),
        (b"sep=;\r\nnumber;body\r\n", "The file is CSV"),
        (b'nr,"body"\r\n1,"The ferry, which runs again"\r\n', "The file is CSV"),
        (b"ARROW1\0\0\xff\xff\xff\xff", "The file is Feather"),
        (b"SQLite format 3\0", "or SQLite; write JSON lines"),
        (b"PAR1", "or `aggregator dedupe FILE --out DIR --load` reads it"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # gzip writes the time
)
def test_a_file_in_another_format_is_one_error(tmp_path: Path, content: bytes, message: str) -> None:
    """The error names the format; its lines are not reported one by one."""
    path = tmp_path / "articles.jsonl"
    path.write_bytes(content)

    (line,) = read(path)

    assert line.number == 1 and message in str(line.error)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_line_above_the_limit_is_an_error_in_its_position(tmp_path: Path, end: bytes) -> None:
    """A line at the limit is read, and so are the lines after a long one."""
    path = tmp_path / "articles.jsonl"
    path.write_bytes(b"x" * 10 + b"\n" + b"y" * 11 + b"\n" + b"z" * 5000 + b"\nend" + end)

    lines = read(path, limit=10)

    assert [line.data for line in lines] == [b"x" * 10, b"", b"", b"end"]
    assert [isinstance(line.error, InputTooLarge) for line in lines] == [False, True, True, False]
    assert [line.number for line in lines] == [1, 2, 3, 4]
    assert "10 bytes" in str(lines[1].error)


def test_truncated_gzip_gives_the_readable_lines_and_one_error(tmp_path: Path) -> None:
    """A file that was truncated while it was written loses only its end."""
    path = tmp_path / "cut.jsonl.gz"
    whole = gzip.compress(b"".join(b'{"n": %d}\n' % n for n in range(20_000)))
    path.write_bytes(whole[: len(whole) // 2])

    lines = read(path)

    assert len(lines) > 100
    assert [line.error is not None for line in lines] == [False] * (len(lines) - 1) + [True]
    assert "gzip" in str(lines[-1].error)


def test_several_files_are_read_in_order_with_their_own_line_numbers(tmp_path: Path) -> None:
    """The order is that of the arguments; progress adds up to the bytes on disk."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"1\n2\n")
    second.write_bytes(b"3\n")
    progress: list[int] = []
    files = [str(first), str(second)]

    lines = list(jsonl.read_lines(files, max_line_bytes=10, progress=progress.append))

    assert [(line.file, line.number, line.data) for line in lines] == [
        (files[0], 1, b"1"),
        (files[0], 2, b"2"),
        (files[1], 1, b"3"),
    ]
    assert sum(progress) == jsonl.total_bytes(files) == 6


@pytest.mark.parametrize("content", [b"1\n2\n", gzip.compress(b"1\n2\n")], ids=["plain", "gzip"])
def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Plain or compressed; its size is unknown."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))

    lines = list(jsonl.read_lines(["-"], max_line_bytes=10))

    assert [line.data for line in lines] == [b"1", b"2"]
    assert lines[0].location == "standard input:1"
    assert jsonl.total_bytes(["-"]) is None


def test_one_error_names_every_unreadable_file(tmp_path: Path) -> None:
    """A mistyped second file name is found before any work is done."""
    with pytest.raises(InvalidInput) as error:
        jsonl.check_readable(["-", str(tmp_path / "absent.jsonl"), str(tmp_path)])

    assert "absent.jsonl cannot be read: No such file or directory." in str(error.value)
    assert f"{tmp_path} is a directory" in str(error.value)


def test_output_gets_its_name_only_when_complete(tmp_path: Path) -> None:
    """An interrupted run leaves its lines in .part and does not change an older result."""
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


def test_gz_output_is_compressed_and_a_device_is_written_directly(tmp_path: Path) -> None:
    """/dev/null is not replaced by a file."""
    with jsonl.open_output(str(tmp_path / "verdicts.jsonl.gz")) as write:
        write(b"one")
    with jsonl.open_output("/dev/null") as write:
        write(b"one")

    assert gzip.decompress((tmp_path / "verdicts.jsonl.gz").read_bytes()) == b"one\n"
    assert Path("/dev/null").is_char_device()


def test_output_in_a_missing_directory_is_refused(tmp_path: Path) -> None:
    """The error comes before any line is written."""
    with (
        pytest.raises(InvalidInput, match="cannot be written: No such file or directory"),
        jsonl.open_output(str(tmp_path / "absent" / "out")),
    ):
        pass


@given(st.lists(st.binary(max_size=40).filter(lambda b: b"\n" not in b), max_size=20), st.booleans())
def test_lines_survive_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], zipped: bool
) -> None:
    """All bytes except line ends survive; blank lines are skipped; the limit includes the longest line.

    Content that begins like a file in another format is excluded; other tests cover it.
    """
    path = tmp_path_factory.mktemp("round") / "lines"
    content = b"\n".join(lines)
    path.write_bytes(gzip.compress(content) if zipped else content)
    expected = [line.rstrip(b"\r") for line in content.removeprefix(jsonl.BOM).split(b"\n")]
    assume(not jsonl.other_format(content) and (zipped or not content.startswith(jsonl.GZIP_MAGIC)))

    assert [line.data for line in read(path, limit=40)] == [line for line in expected if line.strip()]
