"""What the other processes of this service have counted: a scrape meets one of them, and tells of all.

Each answers with its own figures at a socket of its own, ``NAME.sock`` in a directory that only this user can enter:
workers under their number, the process of the scheduled work as ``SCHEDULER``. Whoever is asked at ``/metrics`` asks the
others and marks every series with its ``worker``; one that serves alone has no name, and its series no such label.
Adding them up here would look as if counters fell whenever a worker is replaced; as series of their own Prometheus sees
where each begins.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SCRAPE_TIMEOUT_S = 1.0
SINGLE_PROCESS, BACKGROUND_PROCESS = "", "scheduler"
_METRIC_NAME = re.compile(rb"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{?)")

RenderMetrics = Callable[[], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class PeerMetrics:
    """The processes that share ``directory``; this one is called ``name`` there."""

    directory: Path
    name: str

    async def listen(self, own: RenderMetrics) -> asyncio.Server:
        """Tell the others what ``own`` says. Takes the place of a process that had the same name."""

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                writer.write(await own())
                await writer.drain()
            writer.close()

        made = self.directory / f"{self.name}.{os.getpid()}"
        server = await asyncio.start_unix_server(answer, made)
        made.rename(self._socket_path(self.name))
        return server

    async def scrape_all(self, own: RenderMetrics) -> bytes:
        """The figures of all of them, each series marked; a process that does not answer is left out."""
        others = sorted({path.stem for path in self.directory.glob("*.sock")} - {self.name})
        told = await asyncio.gather(own(), *map(self.scrape, others))
        return merge_expositions(
            {name: text for name, text in zip([self.name, *others], told, strict=True) if text}
        )

    async def scrape(self, name: str) -> bytes:
        """The figures of one of the others; nothing when it does not answer."""
        try:
            async with asyncio.timeout(SCRAPE_TIMEOUT_S):
                reader, writer = await asyncio.open_unix_connection(self._socket_path(name))
                text = await reader.read()
                writer.close()
        except (OSError, TimeoutError):
            return b""
        return text

    def _socket_path(self, name: str) -> Path:
        return self.directory / f"{name}.sock"


def merge_expositions(text_by_process: Mapping[str, bytes]) -> bytes:
    """One exposition of several: families once, and in each the samples of all with a label ``worker`` where it has a name."""
    families: dict[bytes, list[bytes]] = {}
    for name in sorted(text_by_process):
        family: list[bytes] = []
        for line in text_by_process[name].splitlines():
            if line.startswith(b"# HELP "):
                family = families.setdefault(line, [])
            elif line.startswith(b"#"):
                if line not in family:
                    family.append(line)
            else:
                family.append(_add_label(line, b'worker="%b"' % name.encode()) if name else line)
    return b"".join(b"\n".join([head, *lines]) + b"\n" for head, lines in families.items())


def _add_label(sample: bytes, label: bytes) -> bytes:
    found = _METRIC_NAME.match(sample)
    if found is None:
        return sample
    rest = sample[found.end() :]
    return found[1] + b"{" + label + (b"," + rest if found[2] else b"}" + rest)
