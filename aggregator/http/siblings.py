"""What the other workers on this port have counted: a scrape meets one of them, and tells of all.

Each worker answers with its own figures at a socket of its own, ``INDEX.sock`` in a directory that only this user can
enter. Whoever is asked at ``/metrics`` asks the others and marks every series with its ``worker``. Adding them up here
would look as if counters fell whenever a worker is replaced; as series of their own Prometheus sees where each begins.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ANSWER_S = 1.0
_NAME = re.compile(rb"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{?)")

Exposition = Callable[[], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Siblings:
    """The workers that share ``directory``; this one has the place ``index``."""

    directory: Path
    index: int

    async def listen(self, own: Exposition) -> asyncio.Server:
        """Tell the others what ``own`` says. Takes the place of a worker that had the same index."""

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                writer.write(await own())
                await writer.drain()
            writer.close()

        made = self.directory / f"{self.index}.{os.getpid()}"
        server = await asyncio.start_unix_server(answer, made)
        made.rename(self.directory / f"{self.index}.sock")
        return server

    async def exposition(self, own: Exposition) -> bytes:
        """The figures of all workers, each series marked; a worker that does not answer is left out."""
        there = sorted(int(path.stem) for path in self.directory.glob("*.sock"))
        others = [index for index in there if index != self.index]
        told = await asyncio.gather(own(), *(self._ask(index) for index in others))
        return marked({index: text for index, text in zip([self.index, *others], told, strict=True) if text})

    async def _ask(self, index: int) -> bytes:
        try:
            async with asyncio.timeout(ANSWER_S):
                reader, writer = await asyncio.open_unix_connection(self.directory / f"{index}.sock")
                text = await reader.read()
                writer.close()
        except (OSError, TimeoutError):
            return b""
        return text


def marked(told: Mapping[int, bytes]) -> bytes:
    """One exposition of several: families once, and in each the samples of all with a label ``worker``."""
    families: dict[bytes, list[bytes]] = {}
    for index in sorted(told):
        family: list[bytes] = []
        for line in told[index].splitlines():
            if line.startswith(b"# HELP "):
                family = families.setdefault(line, [])
            elif line.startswith(b"#"):
                if line not in family:
                    family.append(line)
            else:
                family.append(_with_label(line, b'worker="%d"' % index))
    return b"".join(b"\n".join([head, *lines]) + b"\n" for head, lines in families.items())


def _with_label(sample: bytes, label: bytes) -> bytes:
    found = _NAME.match(sample)
    if found is None:
        return sample
    rest = sample[found.end() :]
    return found[1] + b"{" + label + (b"," + rest if found[2] else b"}" + rest)
