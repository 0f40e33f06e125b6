"""Deployment on loopback: a store with its log, a faulty proxy, and two replicas of the service."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import redis.asyncio as redis

from aggregator.clients import Client
from aggregator.clients.decision import Unavailable
from aggregator.errors import NotFound
from aggregator.store.embedded import EmbeddedServer, _parent_death_hook
from tests.chaos import shifted_clock
from tests.chaos.faulty_proxy import FaultyProxy
from tests.support.cluster import free_ports
from tests.support.processes import wait_for_background_process

TIMEOUT_S = 120.0
REPLICAS = 2
DEADLINE_S = 2.0
LOG_RECORD = re.compile(r"\n(?=\d{4}-\d\d-\d\d )")


class Replica:
    """One service with a port and a clock file that it keeps over restarts."""

    def __init__(self, port: int, arguments: list[str], directory: Path) -> None:
        self._clock = directory / f"clock-{port}"
        self._clock.write_bytes(shifted_clock.encode_offset(0))
        self.url = f"http://127.0.0.1:{port}"
        self.client = Client(self.url, deadline_s=DEADLINE_S, on_failure="closed")
        self.log = directory / f"service-{port}.log"
        self._arguments = [str(self._clock), *arguments, f"--port={port}"]
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """Process id of the running service."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start the service and wait until it is ready."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                shifted_clock.__file__,
                *self._arguments,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
                preexec_fn=_parent_death_hook(),
                env={**os.environ, "AGGREGATOR_DETECTOR_INTERVAL_SECONDS": "0.2"},
            )
        await self.until_ready()

    async def until_ready(self) -> None:
        """Poll until it is ready."""
        async with asyncio.timeout(TIMEOUT_S):
            while not await self.client.ready():
                assert self._process is not None
                assert self._process.returncode is None, self.log.read_text()[-2000:]
                await asyncio.sleep(0.02)

    async def processes(self) -> tuple[int, int]:
        """Process ids of the service and of its background process; waits for the latter."""
        return self.pid, await wait_for_background_process(self.pid)

    async def end(self, number: signal.Signals) -> None:
        """Send a signal and wait for the exit."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)
            await self._process.wait()

    def move_clock(self, offset_ms: int) -> None:
        """Set the offset of its clock."""
        with self._clock.open("r+b") as file:
            file.write(shifted_clock.encode_offset(offset_ms))


class Deployment:
    """Store, proxy and replicas, running while its context (``async with``) is open."""

    def __init__(self, directory: Path, appendfsync: str, rng: random.Random) -> None:
        self.rng = rng
        self._directory = directory
        port, *ports = free_ports(1 + REPLICAS)
        extra = {"port": str(port), "bind": "127.0.0.1"}
        self.store = EmbeddedServer(directory / "store", appendfsync=appendfsync, config_overrides=extra)
        self.proxy = FaultyProxy(port, rng)
        self._ports = ports
        self._stack = AsyncExitStack()
        self.replicas: list[Replica] = []

    async def __aenter__(self) -> Deployment:
        self.store.start()
        self._stack.callback(self.store.stop)
        self.direct = redis.Redis.from_url(self.store.url, socket_timeout=TIMEOUT_S)
        self._stack.push_async_callback(self.direct.aclose)
        await self.proxy.start()
        self._stack.push_async_callback(self.proxy.close)
        url = f"--store-url=redis://127.0.0.1:{self.proxy.port}"
        arguments = ["serve", url, "--log-level=ERROR"]
        for port in self._ports:
            replica = Replica(port, arguments, self._directory)
            self.replicas.append(replica)
            self._stack.push_async_callback(replica.end, signal.SIGTERM)
            self._stack.push_async_callback(replica.client.close)
        await asyncio.gather(*(replica.start() for replica in self.replicas))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def kill_store(self) -> None:
        """SIGKILL; returns when the process has ended."""
        assert self.store.pid is not None
        os.kill(self.store.pid, signal.SIGKILL)
        while self.store.pid is not None:  # noqa: ASYNC110  not a child of this event loop
            await asyncio.sleep(0.001)

    def newest_log(self) -> Path:
        """File that the store appends to."""
        logs = (self._directory / "store" / "appendonlydir").glob("*.incr.aof")
        return max(logs, key=lambda path: int(path.name.split(".")[-3]))

    async def until_ready(self) -> None:
        """Wait until all replicas are ready."""
        await asyncio.gather(*(replica.until_ready() for replica in self.replicas))

    async def verdict_of(self, id_: str) -> str | None:
        """Verdict of an article from a random replica; None if unknown.

        Raises TimeoutError if no replica answers.
        """
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                try:
                    return (await self.rng.choice(self.replicas).client.get(id_)).verdict
                except NotFound:
                    return None
                except Unavailable:
                    await asyncio.sleep(0.05)

    def tracebacks(self) -> list[str]:
        """Log records of the replicas with a traceback."""
        logs = (replica.log.read_text(errors="replace") for replica in self.replicas)
        return [record for log in logs for record in LOG_RECORD.split(log) if "Traceback" in record]
