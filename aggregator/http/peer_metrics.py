"""Prometheus metrics of all processes of a service: one scrape of any process returns the series of all.

Each process serves its own exposition at a Unix socket, ``NAME.sock`` in a directory that only the service's
user can enter: workers under their number, the background process as BACKGROUND_PROCESS. The process that is
scraped at ``/metrics`` reads the others and labels each series with ``worker``; a single process has no name
and no such label. Series are not summed: a sum would decrease whenever a worker is replaced, as by a
reset. The process that supervises the others serves the counts of their restarts as SUPERVISOR.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from aggregator.errors import AggregatorError

SCRAPE_TIMEOUT_S = 1.0
SINGLE_PROCESS, BACKGROUND_PROCESS, SUPERVISOR = "", "scheduler", "supervisor"
RESTARTS_NAME, RESTARTS_LABEL = "aggregator_process_restarts", "process"
RESTARTS_HELP = "Processes started again after they had died or hung: worker, background, store or analysis."
_SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{.*\})? (?P<value>\S+)$")
_METRIC_NAME = re.compile(rb"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{?)")

Supervised = Literal["worker", "background", "store"]  # processes whose restarts are counted
RenderMetrics = Callable[[], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class PeerMetrics:
    """Metrics of the processes that share ``directory``; this process has the given ``name``."""

    directory: Path
    name: str

    async def listen(self, own: RenderMetrics) -> asyncio.Server:
        """Serve ``own`` to the other processes. Raises AggregatorError if the service is gone."""

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                writer.write(await own())
                await writer.drain()
            writer.close()

        unpublished = self.directory / f"{self.name}.{os.getpid()}"
        try:
            server = await asyncio.start_unix_server(answer, unpublished)
            unpublished.rename(self._socket_path(self.name))
        except FileNotFoundError:
            raise AggregatorError(
                f"The directory {self.directory} of this process's service is gone: the service was killed "
                "while this process started, which therefore ends."
            ) from None
        return server

    async def scrape_all(self, own: RenderMetrics) -> bytes:
        """The merged exposition of all processes; a process that does not answer is omitted."""
        others = sorted({path.stem for path in self.directory.glob("*.sock")} - {self.name})
        texts = await asyncio.gather(own(), *map(self.scrape, others))
        return merge_expositions(
            {name: text for name, text in zip([self.name, *others], texts, strict=True) if text}
        )

    async def scrape(self, name: str) -> bytes:
        """The exposition of another process; empty if it does not answer within SCRAPE_TIMEOUT_S."""
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


class RestartCounts:
    """Restarts by kind of process since the start of this process."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(get_args(Supervised), 0)

    def add(self, kind: Supervised) -> None:
        """Count one restart."""
        self._counts[kind] += 1

    async def render(self) -> bytes:
        """The exposition in Prometheus text format, written here: a supervisor loads no metrics library."""
        name = f"{RESTARTS_NAME}_total"
        lines = [f"# HELP {name} {RESTARTS_HELP}", f"# TYPE {name} counter"]
        lines += [f'{name}{{{RESTARTS_LABEL}="{kind}"}} {count}.0' for kind, count in self._counts.items()]
        return ("\n".join(lines) + "\n").encode()


def merge_expositions(text_by_process: Mapping[str, bytes]) -> bytes:
    """Merge expositions by metric family; samples of a named process get the label ``worker``."""
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


class Totals:
    """Samples of an exposition in Prometheus text format; unknown series are 0."""

    def __init__(self, exposition: bytes) -> None:
        self._samples: dict[str, list[float]] = {}
        for line in exposition.decode("utf-8", "replace").splitlines():
            found = _SAMPLE.match(line)
            if found is not None:
                self._samples.setdefault(found["name"], []).append(float(found["value"]))

    def sum(self, name: str) -> int:
        """Sum of all series of a metric."""
        return round(sum(self._samples.get(name, ())))

    def least(self, name: str) -> float | None:
        """The smallest value of a metric; None without one."""
        return min(self._samples.get(name, ()), default=None)
