"""Append-only log of the embedded store: checked and repaired before the server starts.

Valkey starts empty without the manifest of its log, and drops the end of a log that was cut: a log shorter
than ``log-lengths.json`` says, or another one, is damage, which prevents the start. A record is saved
SAVE_INTERVAL_S after its lengths were seen: by then they are on disk, a power loss is no damage.

A power loss may leave an incomplete command at the end, or zeros, with which Valkey does not start. Both are
cut off and kept in a file next to the log: they were not acknowledged under ``appendfsync always``.

    python -m aggregator.store.append_log DATA_DIR    cut the log of a stopped store where it is damaged
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

import hiredis
import msgspec

from aggregator.errors import ConfigurationError
from aggregator.store.disk import exclude_service, flush_directory, open_private

LOG_DIRECTORY: Final = "appendonlydir"
RECORD_NAME: Final = "log-lengths.json"
TAIL_PREFIX: Final = "log-tail-"
SAVE_INTERVAL_S: Final = 10.0
MANIFEST_NAME: Final = "appendonly.aof.manifest"
# A server that ended during its very first start leaves a base file of about 100 bytes without a manifest.
EMPTY_LOG_BYTES: Final = 1024
_BLOCK_BYTES = 1 << 20
_BASE_BEGINNINGS = (b"REDIS", b"VALKE")  # of the file of a base, which only the server can read
_INCOMPLETE = object()  # returned by the parser for an incomplete command
_NAME = re.compile(r"appendonly\.aof\.(\d+)\.(.*)")

log = logging.getLogger("aggregator.store")

# Length of each file of a log, by name: the base file first, then those appended to, the newest last.
Lengths = dict[str, int]


class AppendLog:
    """The log in one data directory. ``monotonic``: clock in seconds."""

    def __init__(self, data_dir: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._data_dir = data_dir
        self._directory = data_dir / LOG_DIRECTORY
        self._record = data_dir / RECORD_NAME
        self._monotonic = monotonic
        self._lock = threading.Lock()  # the watchdog records in a thread
        self._unsaved: tuple[float, Lengths] | None = None

    def check(self) -> Lengths:
        """The files of the log. Raises ConfigurationError if it is damaged. Changes nothing."""
        saved = self._read_record()
        files = self._read_manifest(saved)
        for name, length in saved.items():
            if name not in files and not any(_is_later(other, name) for other in files):
                raise self._damage(f"{self._directory} is another log: {name} is not part of it")
            self._require_length(name, length, files.get(name, length))
        return files

    def verify(self) -> None:
        """``check``, and read every command: 30 MB/s. Raises ConfigurationError. Changes nothing."""
        for name in self.check():
            path = self._directory / name
            if name.endswith(".aof"):
                is_sound = _find_end(path, 0, force=False) is not None
            else:
                with open(path, "rb") as file:
                    is_sound = file.read(5) in _BASE_BEGINNINGS
            if not is_sound:
                raise self.damage_reported(f"{name} has bytes that the server cannot read")

    def prepare(self, *, force: bool = False) -> None:
        """``check``, then cut off what a power loss left at the end; call before each launch of the server.

        ``force``: cut the log at its first damage instead, whatever follows. Raises ConfigurationError.
        """
        self._unsaved = None
        files = self._read_manifest({}) if force else self.check()
        name = next(reversed(files), "")
        if not name.endswith(".aof"):  # no file, or the base file only
            return
        path, recorded = self._directory / name, 0 if force else self._read_record().get(name, 0)
        end = _find_end(path, recorded, force=force)
        if end is None or end == files[name]:
            return
        self._require_length(name, recorded, end)
        kept = self._cut(path, end)
        log.warning(
            "the log of the store ended with %d bytes that are no complete command, as a crash or a power "
            "loss leaves them; they were cut off %s and are kept in %s", files[name] - end, path, kept,
        )  # fmt: skip

    def record(self) -> None:
        """Note the lengths of now, and save those noted before. The server must have loaded its log."""
        with self._lock:
            now_s = self._monotonic()
            if self._unsaved is not None:
                if now_s < self._unsaved[0] + SAVE_INTERVAL_S:
                    return
                self._save(self._unsaved[1])
            self._unsaved = now_s, self._current()

    def finish(self) -> None:
        """Save the lengths of a log that nobody writes any more."""
        with self._lock:
            self._save(self._current())

    def damage_reported(self, message: str) -> ConfigurationError:
        """The error for damage that the server itself reports at its start."""
        return self._damage(f"the log in {self._directory} is damaged ({message})")

    def _current(self) -> Lengths:
        with contextlib.suppress(OSError, ConfigurationError):  # a file may vanish at the end of a rewrite
            return self._read_manifest({})
        return self._read_record()

    def _read_manifest(self, saved: Lengths) -> Lengths:
        """The files that the manifest names; all of them exist. ``saved``: what was recorded."""
        try:
            lines = (self._directory / MANIFEST_NAME).read_text(errors="replace").splitlines()
        except FileNotFoundError:
            self._require_empty(saved)
            return {}
        files = {}
        for line in lines:  # file NAME seq NUMBER type b, i or h (history: no longer part of the log)
            words = line.split()
            if len(words) < 6 or words[0] != "file" or words[5] not in "bi":
                continue
            path = self._directory / words[1]
            if not path.is_file():
                raise self._damage(f"{path} is missing, which {MANIFEST_NAME} names")
            files[words[1]] = path.stat().st_size
        return files

    def _require_empty(self, saved: Lengths) -> None:
        left = {p.name: p.stat().st_size for p in self._directory.glob("appendonly.aof.*") if p.is_file()}
        if sum(left.values()) > EMPTY_LOG_BYTES:
            raise self._damage(
                f"{self._directory} has log files ({', '.join(sorted(left))}) but no {MANIFEST_NAME}, so the "
                "store would start empty"
            )
        if sum(saved.values()) > EMPTY_LOG_BYTES:
            raise self._damage(f"the log in {self._directory} is gone, so the store would start empty")

    def _cut(self, path: Path, end: int) -> Path:
        kept = self._data_dir / time.strftime(f"{TAIL_PREFIX}%Y%m%dT%H%M%SZ", time.gmtime())
        with open(path, "r+b") as file, open(kept, "ab", opener=open_private) as copy:
            file.seek(end)
            while block := file.read(1 << 20):
                copy.write(block)
            copy.flush()
            os.fsync(copy.fileno())
            flush_directory(self._data_dir)
            file.truncate(end)
            os.fsync(file.fileno())
        return kept

    def _require_length(self, name: str, recorded: int, length: int) -> None:
        if length < recorded:
            raise self._damage(
                f"{self._directory / name} has lost its last {recorded - length:,} of {recorded:,} bytes, "
                "and with them acknowledged articles"
            )

    def _damage(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"data_dir: {what}; restore a backup, or accept the loss as docs/runbook.md describes under "
            f"'Damaged log' (`python -m aggregator.store.append_log {self._data_dir}`)."
        )

    def _read_record(self) -> Lengths:
        try:
            return msgspec.json.decode(self._record.read_bytes(), type=Lengths)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s cannot be read (%s): the log of the store is not verified", self._record, error)
            return {}

    def _save(self, files: Lengths) -> None:
        """Replace the record; a full disk keeps the former one, which remains true."""
        draft = self._record.with_suffix(".tmp")
        try:
            with open(draft, "wb", opener=open_private) as output:
                output.write(msgspec.json.encode(files))
            draft.replace(self._record)
        except OSError:
            draft.unlink(missing_ok=True)


def _is_later(name: str, recorded: str) -> bool:
    """Whether a rewrite replaced the file ``recorded`` by this one."""
    new, old = _NAME.fullmatch(name), _NAME.fullmatch(recorded)
    return bool(new and old and new[2] == old[2] and int(new[1]) > int(old[1]))


def _find_end(path: Path, start: int, *, force: bool) -> int | None:
    """Offset behind the last complete command (or transaction) of a file whose end may be cut or zeros.

    ``start``: a recorded length, from which the file is read if commands begin there (the server may have
    been writing one). None if other bytes follow the commands, which ``force`` cuts off, too.
    """
    with open(path, "rb") as file:
        written = _length_without_zeros(file)
        if 2 < start <= written:
            file.seek(start - 2)
            end, is_damaged = _scan(file, start, written) if file.read(2) == b"\r\n" else (0, True)
            if not is_damaged:
                return end
        file.seek(0)
        end, is_damaged = _scan(file, 0, written)
        return end if force or not is_damaged else None


def _length_without_zeros(file: BinaryIO) -> int:
    written = file.seek(0, os.SEEK_END)
    while written:
        size = min(_BLOCK_BYTES, written)
        file.seek(written - size)
        if kept := len(file.read(size).rstrip(b"\0")):
            return written - size + kept
        written -= size
    return 0


def _scan(file: BinaryIO, start: int, written: int) -> tuple[int, bool]:
    """End of the last complete command or transaction, and whether bytes that are no command follow it."""
    reader = hiredis.Reader(notEnoughData=_INCOMPLETE)
    end = position = start  # behind complete transactions, behind complete commands
    fed, in_transaction = start, False
    try:
        while fed < written:
            block = file.read(min(_BLOCK_BYTES, written - fed))
            fed += len(block)
            reader.feed(block)
            while (command := reader.gets()) is not _INCOMPLETE:
                if not isinstance(command, list):
                    return end, True
                position += len(hiredis.pack_command(tuple(command)))
                in_transaction = command[0] == b"MULTI" or (in_transaction and command[0] != b"EXEC")
                if not in_transaction:
                    end = position
    except (hiredis.HiredisError, TypeError, IndexError):  # not an array of strings
        return end, True
    return end, False


def main(data_dir: Path) -> None:
    """Cut the log of a stopped store at its first damage, and forget its recorded lengths."""
    logging.basicConfig(format="%(message)s")
    with exclude_service(data_dir):
        AppendLog(data_dir).prepare(force=True)
        (data_dir / RECORD_NAME).unlink(missing_ok=True)
    print(f"The store starts with what can be read of its log in {data_dir}.")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except (ConfigurationError, OSError) as error:
        sys.exit(str(error))
