"""Checksums of the embedded store's log: nothing of it may be missing or changed at the next start unseen.

Valkey starts empty without the manifest of its log, drops the end of a log that was cut, and appends to files
without checksums. So the service records the length and XXH3 hash of each file of the log in
``log-checksums.json`` and compares before the server starts. The base file, which a rewrite writes, has a
CRC-64 that Valkey checks.

A record is saved SAVE_INTERVAL_S after the lengths in it were seen: by then they are on disk, so a power loss
is not taken for damage. The newest bytes, up to twice that interval, are not covered; after an orderly stop
all are. An incomplete last command, as a crash leaves it, is dropped by Valkey and logged.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec
import xxhash

from aggregator.errors import ConfigurationError
from aggregator.store.directory import open_private

LOG_DIRECTORY: Final = "appendonlydir"
RECORD_NAME: Final = "log-checksums.json"
SAVE_INTERVAL_S: Final = 10.0
_MANIFEST_NAME = "appendonly.aof.manifest"
# A server that ended during its very first start leaves a base file of about 100 bytes without a manifest.
EMPTY_LOG_BYTES: Final = 1024
_BLOCK_BYTES = 1 << 20

log = logging.getLogger("aggregator.store")


class LogFile(msgspec.Struct, frozen=True):
    """A file of the log: ``kind`` b (base) or i (appended to); hash of its first ``length`` bytes."""

    name: str
    sequence: int
    kind: str
    length: int = 0
    checksum: int = 0


_decoder = msgspec.json.Decoder(list[LogFile])


class _BlockHash:
    """Hash of the beginning of a file that grows: a chain over its blocks of 1 MiB, the last one partial."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0  # end of the complete blocks
        self._chain = 0  # hash of the complete blocks

    def advance(self, end: int | None = None) -> tuple[int, int]:
        """Length and hash of the file up to ``end`` (None: its end), which may not decrease."""
        with open(self._path, "rb", buffering=0) as file:
            file.seek(self._offset)
            while True:
                wanted = _BLOCK_BYTES if end is None else min(_BLOCK_BYTES, end - self._offset)
                block = file.read(wanted)
                hashed = xxhash.xxh3_64_intdigest(block, self._chain)
                if len(block) < _BLOCK_BYTES:
                    return self._offset + len(block), hashed
                self._offset, self._chain = self._offset + len(block), hashed


class LogChecksums:
    """Records the checksums of the log in one data directory, and compares the log with them.

    ``monotonic``: clock in seconds.
    """

    def __init__(self, data_dir: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._directory = data_dir / LOG_DIRECTORY
        self._record = data_dir / RECORD_NAME
        self._monotonic = monotonic
        self._lock = threading.Lock()  # the watchdog records in a thread
        self._files: dict[str, LogFile] = {}
        self._hashes: dict[str, _BlockHash] = {}
        self._sizes: dict[str, int] = {}  # at the launch of the server
        self._unsaved: tuple[float, list[LogFile]] | None = None

    def verify(self) -> None:
        """Compare the log with the record; reads all of it. Raises ConfigurationError if it is damaged."""
        saved = self._read_record()
        current = {file.name: file for file in self.check_files(saved)}
        for file in saved:
            if file.name in current:
                self._verify_file(file)
            elif not any(f.kind == file.kind and f.sequence > file.sequence for f in current.values()):
                raise self._damage(f"{self._directory} is another log: {file.name} is not part of it")

    def check_files(self, saved: Iterable[LogFile] = ()) -> list[LogFile]:
        """The files that the manifest names; all of them exist. Raises ConfigurationError otherwise."""
        self._unsaved, self._sizes = None, {}
        named = _read_manifest(self._directory / _MANIFEST_NAME)
        if named is None:
            left = [path for path in self._directory.glob("appendonly.aof.*") if path.is_file()]
            if sum(path.stat().st_size for path in left) > EMPTY_LOG_BYTES:
                raise self._damage(
                    f"{self._directory} has log files ({', '.join(sorted(path.name for path in left))}) but "
                    f"no {_MANIFEST_NAME}, so the store would start empty"
                )
            if sum(file.length for file in saved) > EMPTY_LOG_BYTES:
                raise self._damage(f"the log in {self._directory} is gone, so the store would start empty")
            return []
        for file in named:
            path = self._directory / file.name
            if not path.is_file():
                raise self._damage(f"{path} is missing, which {_MANIFEST_NAME} names")
            self._sizes[file.name] = path.stat().st_size
        return named

    def report_dropped_commands(self) -> None:
        """Log what the server dropped at its launch, once it has loaded the log."""
        for name, size in self._sizes.items():
            with contextlib.suppress(OSError):
                dropped = size - (self._directory / name).stat().st_size
                if dropped > 0:
                    log.warning(
                        "the store dropped an incomplete command at the end of its log: %d bytes of %s; "
                        "after a crash this is an unacknowledged write",
                        dropped,
                        self._directory / name,
                    )
                    self._hashes.pop(name, None)
        self._sizes = {}

    def advance(self) -> None:
        """Add what was appended since the last call; save when it is time. The server must have loaded."""
        with self._lock:
            self._read_appended()
            now_s = self._monotonic()
            if self._unsaved is None:
                self._unsaved = now_s, list(self._files.values())
            elif now_s >= self._unsaved[0] + SAVE_INTERVAL_S:
                self._save(self._unsaved[1])
                self._unsaved = now_s, list(self._files.values())

    def finish(self) -> None:
        """Save the state of a log that nobody writes any more."""
        with self._lock:
            self._read_appended()
            self._save(list(self._files.values()))

    def _read_appended(self) -> None:
        with contextlib.suppress(OSError):  # a file may vanish at the end of a rewrite
            files = _read_manifest(self._directory / _MANIFEST_NAME) or []
            self._files = {file.name: self._advance_file(file) for file in files}
            self._hashes = {name: self._hashes[name] for name in self._files if name in self._hashes}

    def _advance_file(self, file: LogFile) -> LogFile:
        path = self._directory / file.name
        if file.kind == "b":
            return msgspec.structs.replace(file, length=path.stat().st_size)
        hashed = self._hashes.setdefault(file.name, _BlockHash(path))
        length, checksum = hashed.advance()
        return msgspec.structs.replace(file, length=length, checksum=checksum)

    def _verify_file(self, file: LogFile) -> None:
        path = self._directory / file.name
        size = path.stat().st_size
        if size < file.length:
            raise self._damage(
                f"{path} has lost its last {file.length - size:,} of {file.length:,} bytes, and with them "
                "acknowledged articles"
            )
        if file.kind == "b":
            return
        hashed = self._hashes[file.name] = _BlockHash(path)
        if hashed.advance(file.length) != (file.length, file.checksum):
            raise self._damage(f"{path} has changed within its first {file.length:,} bytes")

    def _damage(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"data_dir: {what}; restore a backup, or accept the loss as docs/runbook.md describes under "
            f"'Damaged log' (without {self._record} the store starts with what is readable)."
        )

    def _read_record(self) -> list[LogFile]:
        try:
            return _decoder.decode(self._record.read_bytes())
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s cannot be read (%s): the log of the store is not verified", self._record, error)
            return []

    def _save(self, files: list[LogFile]) -> None:
        """Replace the record; a full disk keeps the former one, which remains true."""
        draft = self._record.with_suffix(".tmp")
        try:
            with open(draft, "wb", opener=open_private) as output:
                output.write(msgspec.json.encode(files))
            draft.replace(self._record)
        except OSError:
            draft.unlink(missing_ok=True)


def _read_manifest(path: Path) -> list[LogFile] | None:
    """The base file and the files appended to, in order; None without a manifest."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return None
    files = []
    for line in lines:  # file NAME seq NUMBER type b, i or h (history: no longer part of the log)
        words = line.split()
        if len(words) >= 6 and words[0] == "file" and words[3].isdigit() and words[5] in "bi":
            files.append(LogFile(words[1], int(words[3]), words[5]))
    return files
