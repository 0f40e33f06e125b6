"""Two replicas of the service that share one store, which they reach through a faulty proxy."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

import redis.asyncio as redis

from aggregator.parent_death import parent_death_hook
from aggregator.store.embedded import EmbeddedServer
from tests.chaos import shifted_clock
from tests.chaos.api import Api
from tests.chaos.deployment import POLL_S, TIMEOUT_S, Deployment
from tests.chaos.faulty_proxy import FaultyProxy
from tests.support.cluster import free_ports
from tests.support.processes import wait_for_background_process

REPLICAS = 2


class Replica:
    """One service with a port and a clock file that it keeps over restarts."""

    def __init__(self, port: int, arguments: list[str], directory: Path) -> None:
        self._clock = directory / f"clock-{port}"
        self._clock.write_bytes(shifted_clock.encode_offset(0))
        self.api = Api(f"http://127.0.0.1:{port}")
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
                preexec_fn=parent_death_hook(signal.SIGTERM),
                env={**os.environ, "AGGREGATOR_DETECTOR_INTERVAL_SECONDS": "0.2"},
            )
        async with asyncio.timeout(TIMEOUT_S):
            while await self.api.not_ready_reason() is not None:
                self.raise_if_ended()
                await asyncio.sleep(POLL_S)

    def raise_if_ended(self) -> None:
        """Raise AssertionError if the process has exited."""
        assert self._process is not None
        assert self._process.returncode is None, self.log.read_text()[-2000:]

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


class Replicas(Deployment):
    """Store, proxy and two replicas, each of one web process."""

    def __init__(self, directory: Path, setting: str, rng: random.Random) -> None:
        super().__init__(directory, setting, rng)
        port, *self._ports = free_ports(1 + REPLICAS)
        extra = {"port": str(port), "bind": "127.0.0.1"}
        self.store = EmbeddedServer(directory / "store", appendfsync=self.appendfsync, config_overrides=extra)
        self.proxy = FaultyProxy(port, rng)
        self.replicas: list[Replica] = []

    async def start(self) -> None:
        """Start the store, the proxy and the replicas."""
        self.store.start()
        self.stack.callback(self.store.stop)
        self.direct = redis.Redis.from_url(self.store.url, socket_timeout=TIMEOUT_S)
        self.stack.push_async_callback(self.direct.aclose)
        await self.proxy.start()
        self.stack.push_async_callback(self.proxy.close)
        arguments = ["serve", f"--store-url=redis://127.0.0.1:{self.proxy.port}", "--log-level=ERROR"]
        for port in self._ports:
            replica = Replica(port, arguments, self.directory)
            self.replicas.append(replica)
            self.apis.append(replica.api)
            self.stack.push_async_callback(replica.end, signal.SIGTERM)
            self.stack.push_async_callback(replica.api.close)
        await asyncio.gather(*(replica.start() for replica in self.replicas))

    @property
    def store_url(self) -> str:
        """The store's own socket, past the proxy."""
        return self.store.url

    async def processes(self) -> list[int]:
        """Both services and their background processes."""
        return [pid for replica in self.replicas for pid in await replica.processes()]

    def logs(self) -> list[Path]:
        """One log per replica."""
        return [replica.log for replica in self.replicas]

    def raise_if_ended(self) -> None:
        """Raise AssertionError if a replica has exited."""
        for replica in self.replicas:
            replica.raise_if_ended()

    async def kill_store(self) -> None:
        """SIGKILL; returns when the process has ended."""
        assert self.store.pid is not None
        os.kill(self.store.pid, signal.SIGKILL)
        while self.store.pid is not None:  # noqa: ASYNC110  not a child of this event loop
            await asyncio.sleep(0.001)

    def newest_log(self) -> Path:
        """File that the store appends to."""
        return newest_log(self.directory / "store")


def newest_log(data_dir: Path) -> Path:
    """The append-only file that a store on ``data_dir`` writes."""
    logs = (data_dir / "appendonlydir").glob("*.incr.aof")
    return max(logs, key=lambda path: int(path.name.split(".")[-3]))
