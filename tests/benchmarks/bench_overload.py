"""Goodput and total time of requests at several times the capacity (``scripts/bench overload``).

    scripts/bench overload [--seconds 10] [--factors 1 3 10] [--connections 16 300 2500] [--repeat 1]

A new service with its embedded store and the default deadline. Before and after each row the capacity:
articles per second that 16 connections get answered, each with one request at a time; a row is compared with
the mean of both, since other programs may share the machine. In between two callers together:

    flood   factor times the capacity, each connection a Poisson process with one request at a time; a request
            that is due while the connection waits is sent when the answer is there
    other   another address with one connection and one request at a time, OTHER_RATE per second

Sending begins when all connections are accepted. Times count from the first byte sent to the last byte of the
answer. Load generator, service and store share the cores of this machine; the service has a session of its
own, so that Linux divides a busy processor between it and the generator as between any two programs. The
generator only writes prepared bytes to sockets, but with 2,500 connections it takes up to a third as much CPU
as the service; so next to the goodput stand the acknowledged articles per CPU second of the process that
answers, relative to those of the capacity.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import uvloop

from aggregator.settings import Settings
from tests.benchmarks.bench_http import request_bodies
from tests.benchmarks.bench_service import running_service
from tests.support.processes import Usage

POOL = 4000
CAPACITY_CONNECTIONS = 16
OTHER_ADDRESS = "127.0.0.2"
OTHER_RATE = 5.0
SETTLE_S = 20.0  # answers that take longer than this after the end are counted as missing
RECONNECT_S = 0.1
_ID = b"@" * 16


@dataclass(frozen=True, slots=True)
class Rows:
    """Which rows are measured: each factor with each number of connections, ``repeat`` times."""

    seconds: float = 10.0
    factors: Sequence[float] = (1, 3, 10)
    connections: Sequence[int] = (16, 300, 2500)
    repeat: int = 1


class Requests:
    """Endless requests from a pool of articles, each with a new id."""

    def __init__(self, pool: Iterable[Mapping[str, str]]) -> None:
        self._numbers = itertools.count()
        self._parts = []
        for row in pool:
            body = json.dumps({**row, "id": _ID.decode()}).encode()
            head = b"POST /v1/articles HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
            before, _, after = body.partition(_ID)
            self._parts.append((head + before, after))

    def __next__(self) -> bytes:
        number = next(self._numbers)
        before, after = self._parts[number % len(self._parts)]
        return b"%s%016d%s" % (before, number, after)


class Results:
    """Statuses and times in s of the answers; status 0: the connection ended without an answer."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, float]] = []
        self.waiting = 0

    def figures(self, seconds: float) -> dict[str, Any]:
        """Counts, rates, and times in ms."""
        good = [s for status, s in self.answers if status in (200, 201)]
        refused = [s for status, s in self.answers if status in (429, 503)]
        return {
            "acknowledged_per_second": round(len(good) / seconds, 1),
            "success": round(len(good) / max(1, len(self.answers) + self.waiting), 4),
            **_times("acknowledged", good),
            **_times("refused", refused),
            "statuses": dict(sorted(Counter(str(status) for status, _ in self.answers).items())),
            "unanswered": self.waiting,
        }


class Sender(asyncio.Protocol):
    """One connection; reconnects when it ends. Sends from ``start`` to ``stop``."""

    def __init__(
        self, address: tuple[str, int], rate: float, requests: Iterator[bytes] | Requests, results: Results,
        *, local: str = "",
    ) -> None:  # fmt: skip
        self._address = address
        self._local = (local, 0) if local else None
        self._interval_s = 1 / rate if rate else 0.0
        self._requests = requests
        self._results = results
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._sent_s = 0.0
        self._due_s = 0.0
        self._started = self._stopped = False
        self._task: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Open the connection."""
        if self._stopped:
            return
        try:
            await self._loop.create_connection(lambda: self, *self._address, local_addr=self._local)
        except OSError:
            self._results.answers.append((0, 0.0))
            self._loop.call_later(RECONNECT_S, self._reconnect)

    def start(self) -> None:
        """Send from now on."""
        self._started, self._due_s = True, self._loop.time()
        self._schedule()

    def stop(self) -> None:
        """Send no more."""
        self._stopped = True

    def close(self) -> None:
        """Close the connection."""
        self._stopped = True
        if self._transport is not None:
            self._transport.abort()

    def _reconnect(self) -> None:
        self._task = asyncio.create_task(self.connect())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._received = b""
        if self._started:
            self._schedule()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._sent_s and not self._stopped:
            self._finish(0)
        if not self._stopped:
            self._loop.call_later(RECONNECT_S, self._reconnect)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) >= length:
            self._received = b""
            self._finish(int(head[9:12]))
            if self._transport is not None and b"connection: close" not in head.lower():
                self._schedule()

    def _schedule(self) -> None:
        self._due_s += random.expovariate(1) * self._interval_s
        self._due_s = max(self._due_s, self._loop.time())
        self._loop.call_at(self._due_s, self._send)

    def _send(self) -> None:
        if self._transport is None or self._stopped or self._sent_s:
            return
        self._results.waiting += 1
        self._sent_s = self._loop.time()
        self._transport.write(next(self._requests))

    def _finish(self, status: int) -> None:
        if self._sent_s:
            self._results.waiting -= 1
            self._results.answers.append((status, self._loop.time() - self._sent_s))
            self._sent_s = 0.0


async def load(
    address: tuple[str, int],
    requests: Requests,
    rate: float,
    connections: int,
    seconds: float,
    usage: Callable[[], Usage],
) -> tuple[dict[str, Any], dict[str, Any], dict[str, float]]:
    """The figures of the flood and of the other caller, and CPU seconds until the last answer.

    ``rate`` 0: as fast as they are answered.
    """
    flood, other = Results(), Results()
    senders = [Sender(address, rate / connections, requests, flood) for _ in range(connections)]
    single = Sender(address, OTHER_RATE, requests, other, local=OTHER_ADDRESS)
    await asyncio.gather(*(sender.connect() for sender in [*senders, single]))
    await _wait_until_accepted(address)
    before = usage()
    for sender in [*senders, single]:
        sender.start()
    await asyncio.sleep(seconds)
    acknowledged = sum(status in (200, 201) for status, _ in flood.answers)
    for sender in [*senders, single]:
        sender.stop()
    ends_s = time.monotonic() + SETTLE_S
    while (flood.waiting or other.waiting) and time.monotonic() < ends_s:  # noqa: ASYNC110 (no event for it)
        await asyncio.sleep(0.05)
    after = usage()
    cpu_s = {**after.parts_since(before), **after.since(before)}
    figures = flood.figures(seconds), other.figures(seconds)
    figures[0]["acknowledged_per_second"] = round(acknowledged / seconds, 1)
    for sender in [*senders, single]:
        sender.close()
    await asyncio.sleep(1)
    return *figures, cpu_s


async def _wait_until_accepted(address: tuple[str, int]) -> None:
    """Connections are accepted in order, so when a further one is answered all are accepted."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    await reader.read()
    writer.close()


def _times(name: str, seconds: Sequence[float]) -> dict[str, float]:
    if not seconds:
        return {}
    found = np.percentile(np.array(seconds) * 1000, [50, 99, 100])
    return {
        f"{name}_{at}_ms": round(float(ms), 1) for at, ms in zip(("p50", "p99", "max"), found, strict=True)
    }


async def measure(requests: Requests, wanted: Rows, serve: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One row for each repetition, number of connections and factor. ``serve``: options of the service."""
    rows: list[dict[str, Any]] = []
    async with running_service(
        f"--request-timeout-seconds={Settings().request_timeout_seconds}", *serve, new_session=True
    ) as running:
        parts = urlsplit(running.url)
        address = (parts.hostname or "", parts.port or 0)

        async def loaded(rate: float, connections: int, seconds: float) -> dict[str, Any]:
            flood, other, cpu_s = await load(address, requests, rate, connections, seconds, running.usage)
            answered = sum(flood["statuses"].get(status, 0) for status in ("200", "201"))
            per_cpu_second = answered / max(0.01, cpu_s["requests"])
            return {"flood": flood, "other": other, "cpu_s": cpu_s, "per_cpu_second": per_cpu_second}

        await loaded(0, CAPACITY_CONNECTIONS, 3)  # warm-up
        calm = await loaded(0, CAPACITY_CONNECTIONS, wanted.seconds / 2)
        for _, connections, factor in itertools.product(
            range(wanted.repeat), wanted.connections, wanted.factors
        ):
            before = calm
            rate = factor * before["flood"]["acknowledged_per_second"]
            row = await loaded(rate, connections, wanted.seconds)
            calm = await loaded(0, CAPACITY_CONNECTIONS, wanted.seconds / 2)
            capacity = _mean(c["flood"]["acknowledged_per_second"] for c in (before, calm))
            per_cpu_second = _mean(c["per_cpu_second"] for c in (before, calm))
            rows.append(
                {
                    "factor": factor,
                    "connections": connections,
                    "capacity": capacity,
                    "goodput_share": round(row["flood"]["acknowledged_per_second"] / capacity, 2),
                    "cpu_share": round(row["per_cpu_second"] / per_cpu_second, 2),
                    **row,
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table: medians over the repetitions, in brackets the range, and maxima."""
    lines = [
        "| x capacity, connections | goodput, share of the capacity | per CPU second, share "
        "| acknowledged p50 / p99 / max, s | refused p50 / p99 / max, s "
        "| other caller: success, p50 / p99 / max, s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    repeated: dict[tuple[int, float], list[dict[str, Any]]] = {}
    for row in rows:
        repeated.setdefault((row["connections"], row["factor"]), []).append(row)
    for (connections, factor), found in repeated.items():
        shares = sorted(row["goodput_share"] for row in found)
        success = min(row["other"]["success"] for row in found)
        lines.append(
            f"| {factor:g}, {connections} | {median(shares):.2f} ({shares[0]:.2f} to {shares[-1]:.2f}) "
            f"| {median(row['cpu_share'] for row in found):.2f} "
            f"| {_cells([row['flood'] for row in found], 'acknowledged')} "
            f"| {_cells([row['flood'] for row in found], 'refused')} "
            f"| {success:.2f}, {_cells([row['other'] for row in found], 'acknowledged')} |"
        )
    return "\n".join(lines)


def _cells(figures: Sequence[dict[str, Any]], name: str) -> str:
    found = [f for f in figures if f"{name}_p50_ms" in f]
    if not found:
        return "-"
    p50, p99 = (median(f[f"{name}_{at}_ms"] for f in found) / 1000 for at in ("p50", "p99"))
    return f"{p50:.2f} / {p99:.2f} / {max(f[f'{name}_max_ms'] for f in found) / 1000:.2f}"


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usual = Rows()
    options.add_argument("--seconds", type=float, default=usual.seconds, help="duration of each row")
    options.add_argument("--factors", type=float, nargs="+", default=usual.factors)
    options.add_argument("--connections", type=int, nargs="+", default=usual.connections)
    options.add_argument("--repeat", type=int, default=usual.repeat, help="repetitions of each row")
    options.add_argument("--serve", nargs="*", default=[], metavar="OPTION", help="options of the service")
    options.add_argument("--json", help="also write the rows to this file")
    args = options.parse_args()
    requests = Requests(itertools.islice(request_bodies("en"), POOL))
    wanted = Rows(args.seconds, args.factors, args.connections, args.repeat)
    rows = uvloop.run(measure(requests, wanted, args.serve))
    print(table(rows))
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
