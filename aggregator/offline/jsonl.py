"""Files of articles in, verdict lines out: the lines, not their meaning.

Reads ``.jsonl``, ``.jsonl.gz`` (recognised by content, not by name) and standard input (``-``) one line at
a time, whatever their size. A line that cannot be used is reported with its file and number and
the next one is read; only what makes the rest unreadable (a damaged gzip file) ends a file early.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from aggregator.errors import InputTooLarge, InvalidInput

STDIN = "-"
GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
# How files begin that are no lines of UTF-8, and what to do with them.
UNSUPPORTED_FORMATS = {
    b"\xff\xfe": "The file is UTF-16 or UTF-32; write it as UTF-8.",
    b"\xfe\xff": "The file is UTF-16; write it as UTF-8.",
    b"PK\x03\x04": "The file is a zip archive; unpack it first.",
    b"\xfd7zXZ": "The file is compressed by xz; unpack it first (gzip is read as it is).",
    b"BZh": "The file is compressed by bzip2; unpack it first (gzip is read as it is).",
    b"\x28\xb5\x2f\xfd": "The file is compressed by zstd; unpack it first (gzip is read as it is).",
    b"PAR1": "The file is Parquet; write its rows as lines of JSON (`aggregator dedupe` reads it as it is).",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One input line: its bytes without the line end, or the error that stands in its place.

    ``file`` is as the user wrote it; ``number`` counts from 1, blank lines included.
    """

    file: str
    number: int
    data: bytes = b""
    error: InvalidInput | None = None

    @property
    def location(self) -> str:
        """``file:number``, as compilers write it."""
        return f"{'standard input' if self.file == STDIN else self.file}:{self.number}"


def check_readable(files: Sequence[str]) -> None:
    """Raise BadInput naming every file that cannot be opened, before any work is done."""
    problems = []
    for file in files:
        if file == STDIN:
            continue
        if Path(file).is_dir():
            problems.append(f"{file} is a directory; name the files in it.")
            continue
        try:
            with open(file, "rb"):
                pass
        except OSError as error:
            problems.append(f"{file} cannot be read: {error.strerror}.")
    if problems:
        raise InvalidInput(" ".join(problems))


def total_bytes(files: Sequence[str]) -> int | None:
    """Bytes on disk of all files together (compressed as they are), None with standard input."""
    if STDIN in files:
        return None
    return sum(os.path.getsize(file) for file in files)


def read_lines(
    files: Sequence[str], *, max_line_bytes: int, progress: Callable[[int], None] | None = None
) -> Iterator[Line]:
    """Every line of ``files`` in order that is not blank.

    ``progress`` is told how many bytes on disk were read since it was last told. A line longer than
    ``max_line_bytes`` comes as a Line with TooLarge; damaged gzip data, and a whole file in another
    encoding or of another kind (``FOREIGN``), as a last Line with BadInput.
    """
    for file in files:
        with _open_input(file) as raw:
            reader = _ReadProgress(raw, progress) if progress else None
            for line in _lines_of_file(file, raw, max_line_bytes):
                if reader and line.number % 64 == 0:
                    reader.update()
                yield line
            if reader:
                reader.update()


def read_rows(files: Sequence[str], *, max_line_bytes: int = 64 * 1024 * 1024) -> Iterator[dict[str, Any]]:
    """Every line as a JSON object, for files that must be whole: the first bad line raises BadInput."""
    for line in read_lines(files, max_line_bytes=max_line_bytes):
        if line.error is not None:
            raise InvalidInput(f"{line.location}: {line.error}")
        try:
            row = json.loads(line.data)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(
                f"{line.location}: not JSON ({error}); expected one JSON object per line."
            ) from None
        if not isinstance(row, dict):
            raise InvalidInput(f"{line.location}: expected a JSON object, found {type(row).__name__}.")
        yield row


@contextlib.contextmanager
def open_output(file: str | None) -> Iterator[Callable[[bytes], None]]:
    """A function that writes one line (without its end) to ``file``, or to standard output when None.

    A regular file appears under its name only when it is complete; until then, and after a failure, its
    lines are in ``file.part``. A name ending in ``.gz`` is compressed. Raises BadInput if it cannot be made.
    """
    if file is None or file == STDIN:
        yield _line_writer(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    special = path.exists() and not path.is_file()
    part = path if special else path.with_name(path.name + ".part")
    try:
        out = cast(IO[bytes], gzip.open(part, "wb") if path.suffix == ".gz" else open(part, "wb"))  # noqa: SIM115
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}.") from None
    with out:
        yield _line_writer(out)
    if not special:
        os.replace(part, path)


def _line_writer(out: IO[bytes]) -> Callable[[bytes], None]:
    def write(line: bytes) -> None:
        out.write(line + b"\n")

    return write


@contextlib.contextmanager
def _open_input(file: str) -> Iterator[BinaryIO]:
    if file == STDIN:
        yield sys.stdin.buffer
        return
    with open(file, "rb") as raw:
        yield raw


def _lines_of_file(file: str, raw: BinaryIO, max_line_bytes: int) -> Iterator[Line]:
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))
    zipped = buffered.peek(2)[:2] == GZIP_MAGIC
    content = io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=buffered))) if zipped else buffered
    number = 0
    try:
        if foreign := _unsupported_format(content):
            yield Line(file, 1, error=InvalidInput(foreign))
            return
        while data := content.readline(max_line_bytes + 2):
            number += 1
            if number == 1:
                data = data.removeprefix(BOM)
            ended = data.endswith(b"\n")
            data = data.rstrip(b"\r\n")
            if len(data) > max_line_bytes:
                if not ended:
                    _skip_line(content)
                yield Line(file, number, error=_line_too_long(max_line_bytes))
            elif data.strip():
                yield Line(file, number, data)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        yield Line(file, number + 1, error=InvalidInput("The gzip data is damaged or cut off from here on."))


def _unsupported_format(content: io.BufferedReader) -> str | None:
    """What keeps a file from being read line by line, by how it begins."""
    head = content.peek(8)
    return next((said for magic, said in UNSUPPORTED_FORMATS.items() if head.startswith(magic)), None)


def _skip_line(content: BinaryIO) -> None:
    while (piece := content.readline(1 << 20)) and not piece.endswith(b"\n"):
        pass


def _line_too_long(max_line_bytes: int) -> InputTooLarge:
    return InputTooLarge(
        f"The line is longer than {max_line_bytes} bytes; raise max_body_bytes or shorten it."
    )


class _ReadProgress:
    """Reports how far the file on disk has been read."""

    def __init__(self, raw: BinaryIO, report: Callable[[int], None]) -> None:
        self._raw, self._report, self._reported_bytes = raw, report, 0

    def update(self) -> None:
        try:
            position = self._raw.tell()
        except OSError:  # a pipe
            return
        self._report(position - self._reported_bytes)
        self._reported_bytes = position
