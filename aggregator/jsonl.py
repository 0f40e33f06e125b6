"""Reader and writer of JSON lines files (``.jsonl``, ``.jsonl.gz``, standard input and output).

Input is read line by line, whatever its size; gzip is recognized by content, not by name. An unusable line is
reported with its file and number, and reading continues with the next one; only damage that makes the rest
unreadable (a truncated gzip file) ends a file early.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, cast

from aggregator.errors import InputTooLarge, InvalidInput

STDIN = "-"
GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
LINES_PER_PROGRESS = 64
HEAD_BYTES = 1024
# Patterns of the first bytes of files in other formats, and what to do with them.
UNSUPPORTED_FORMATS = {
    rb"\xff\xfe|\xfe\xff": "The file is UTF-16 or UTF-32; write it as UTF-8.",
    rb"PK\x03\x04|.{257}ustar": "The file is a zip archive, tar archive or workbook; unpack it, or save CSV.",
    rb"\xfd7zXZ|BZh|\x28\xb5\x2f\xfd": "Decompress the file first (xz, bzip2, zstd; gzip is read).",
    rb"ARROW1|FEA1|ORC|Obj\x01|SQLite": "The file is Feather, ORC, Avro or SQLite; write JSON lines.",
    rb"PAR1": "The file is Parquet; write JSON lines, or `aggregator dedupe FILE --out DIR --load` reads it.",
    rb"WARC/": "The file is a web archive (WARC); write each page as a line of JSON with url and html.",
    rb"\x1e": "The file is a sequence of JSON texts (RFC 7464); remove the record separators.",
    rb"\s*(<[!?].{,400}?)?<opml\b": "The file lists feeds; post their items by `aggregator follow FEED`.",
    rb"\s*(<[!?].{,400}?)?<(rss|feed|rdf:rdf)\b|\s*\{.{,400}?jsonfeed\.org/version": (
        "The file is a feed; post its items by `aggregator follow FEED`."
    ),
    rb"\s*<": "The file is HTML or XML; write each page as a line of JSON with url and html.",
    rb"\s*\{\s*\n|\s*\[\s*[\n{]": (
        "The file is JSON over several lines or an array; write an object per line: `jq -c .`, `jq -c '.[]'`."
    ),
    rb"sep=.\r?\n|(?=[^\n{]*[,;\t|][^\n{]*\n)[^\n{]*\b(id|title|headline|text|body|url)\b\"?[,;\t|\r\n]": (
        "The file is CSV; write JSON lines. `aggregator dedupe FILE.csv --out DIR` reads files named .csv."
    ),
}
_UNSUPPORTED = [
    (re.compile(rb"(?is)(?:%b)?(?:%b)" % (re.escape(BOM), pattern)), problem)
    for pattern, problem in UNSUPPORTED_FORMATS.items()
]


@dataclass(frozen=True, slots=True)
class Line:
    """One input line, ``number`` from 1: its bytes without the line end, or the error that replaces it."""

    file: str
    number: int
    data: bytes = b""
    error: InvalidInput | None = None

    @property
    def location(self) -> str:
        """``file:number``, the format of compiler messages."""
        return f"{'standard input' if self.file == STDIN else self.file}:{self.number}"


def check_readable(files: Sequence[str], *, as_lines: bool = False) -> None:
    """Raise InvalidInput that names every file that cannot be opened or, ``as_lines``, has another format."""
    problems = []
    for file in files:
        if file == STDIN:
            continue
        if Path(file).is_dir():
            problems.append(f"{file} is a directory; give the files in it.")
            continue
        try:
            with open(file, "rb") as raw:
                if as_lines and (problem := other_format(raw.peek(HEAD_BYTES))):
                    problems.append(f"{file}: {problem}")
        except OSError as error:
            problems.append(f"{file} cannot be read: {error.strerror}.")
    if problems:
        raise InvalidInput(" ".join(problems))


def other_format(head: bytes) -> str:
    """Which other format a file with these first bytes has, and what to do, in one sentence; or empty."""
    head = head[:HEAD_BYTES]
    return next((problem for pattern, problem in _UNSUPPORTED if pattern.match(head)), "")


def total_bytes(files: Sequence[str]) -> int | None:
    """Total size of the files on disk (compressed size of compressed ones), None with standard input."""
    return None if STDIN in files else sum(map(os.path.getsize, files))


def read_lines(
    files: Sequence[str], *, max_line_bytes: int, progress: Callable[[int], None] | None = None
) -> Iterator[Line]:
    """Yield every line of ``files`` in order that is not blank.

    ``progress`` is called with the number of bytes on disk read since its last call. A line longer than
    ``max_line_bytes`` is a Line with InputTooLarge; damaged gzip data, or a file in another encoding or
    format (``UNSUPPORTED_FORMATS``), gives a last Line with InvalidInput.
    """
    for file in files:
        with contextlib.nullcontext(sys.stdin.buffer) if file == STDIN else open(file, "rb") as raw:
            reported = 0
            for line in _lines_of_file(file, raw, max_line_bytes):
                if progress and line.number % LINES_PER_PROGRESS == 0:
                    reported = report_progress(raw, reported, progress)
                yield line
            if progress:
                report_progress(raw, reported, progress)


@contextlib.contextmanager
def open_output(file: str | None) -> Iterator[Callable[[bytes], None]]:
    """Context with a function that writes one line (without its end) to ``file``; None: standard output.

    A regular file gets its name only when it is complete; until then, and after a failure, its lines are in
    ``file.part``. A name ending in ``.gz`` is compressed. Raises InvalidInput if it cannot be created.
    """
    if file is None or file == STDIN:
        yield _line_writer(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    is_device = path.exists() and not path.is_file()  # or a pipe; written directly
    part = path if is_device else path.with_name(path.name + ".part")
    try:
        opened = gzip.open(part, "wb") if path.suffix == ".gz" else open(part, "wb")  # noqa: SIM115  # `with` below
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}.") from None
    with opened as out:
        yield _line_writer(cast(IO[bytes], out))
    if not is_device:
        os.replace(part, path)


def _line_writer(out: IO[bytes]) -> Callable[[bytes], None]:
    return lambda line: out.writelines((line, b"\n"))


def _lines_of_file(file: str, raw: BinaryIO, max_line_bytes: int) -> Iterator[Line]:
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))
    zipped = buffered.peek(2)[:2] == GZIP_MAGIC
    content = io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=buffered))) if zipped else buffered
    number = 0
    try:
        if problem := other_format(content.peek(HEAD_BYTES)):
            yield Line(file, 1, error=InvalidInput(problem))
            return
        while data := content.readline(max_line_bytes + 2):
            number += 1
            if number == 1:
                data = data.removeprefix(BOM)
            ended = data.endswith(b"\n")
            data = data.rstrip(b"\r\n")
            if len(data) > max_line_bytes:
                while not ended and (piece := content.readline(1 << 20)):
                    ended = piece.endswith(b"\n")
                message = f"The line is longer than {max_line_bytes} bytes"
                yield Line(
                    file, number, error=InputTooLarge(f"{message}; raise max_body_bytes or shorten it.")
                )
            elif data.strip():
                yield Line(file, number, data)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        damage = InvalidInput("The gzip data is damaged or truncated from here on.")
        yield Line(file, number + 1, error=damage)


def report_progress(raw: BinaryIO, reported: int, report: Callable[[int], None]) -> int:
    """Report the bytes of a file on disk that were read since the last report; the position of this one."""
    try:
        position = raw.tell()
    except OSError:  # a pipe has no position
        return reported
    report(position - reported)
    return position
