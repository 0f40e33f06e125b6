"""Two workers whose store fails over: by Sentinel, by an address that moves, or in a cluster.

The setting ``replicated`` acknowledges what every replica has; without it, what the promoted server lacks is
lost. Each fault returns when every server runs and follows its primary again.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import redis

from aggregator.store.embedded import EmbeddedServer
from tests.chaos.faulty_proxy import FaultyProxy
from tests.chaos.machine import Machine
from tests.support.cluster import Cluster, free_ports, running_cluster, until

SERVERS = 3
HELD_S = 1.5  # longer than a server that new connections do not reach is left


class Failover(Machine):
    """A primary and its replicas, by port."""

    replicas = SERVERS - 1

    def __init__(self, directory: Path, setting: str, rng: random.Random) -> None:
        super().__init__(directory, setting, rng)
        self.config = {"appendfsync": self.appendfsync}
        self.option = f"?replicated={self.replicas}" if setting == "replicated" else ""
        self.servers: dict[int, EmbeddedServer] = {}
        self.address = ""  # what the service is given

    async def start(self) -> None:
        """Start the servers, then the service."""
        self.data_dir.mkdir()
        await asyncio.to_thread(self.start_servers)
        self.direct = redis.asyncio.Redis(port=next(iter(self.servers)))
        await self.start_service(f"--store-url={self.address}")

    @property
    def store_url(self) -> str:
        """The primary itself."""
        return f"redis://127.0.0.1:{self.primary()}"

    def start_servers(self) -> None:
        """Start the servers; the first one is the primary."""
        for port in free_ports(SERVERS):
            config = {"port": str(port), "bind": "127.0.0.1", "repl-diskless-sync-delay": "0"} | self.config
            server = EmbeddedServer(self.directory / str(port), config_overrides=config)
            server.start()
            self.stack.callback(server.stop)
            self.servers[port] = server
        self.follow(next(iter(self.servers)))

    def primary(self) -> int:
        """The port of the server that takes the writes."""
        raise NotImplementedError

    def signal(self, port: int, number: signal.Signals) -> None:
        """Send a signal to a server; returns when it has ended, if it has to."""
        server = self.servers[port]
        os.kill(server.pid or 0, number)
        if number == signal.SIGKILL:
            until(lambda: server.pid is None, "the server did not end")

    def follow(self, primary: int) -> None:
        """Start what does not run; all other servers are replicas of the primary, and in step."""
        for port, server in self.servers.items():
            server.restart_if_dead()
            if port != primary:
                execute(port, "REPLICAOF", "127.0.0.1", primary)
        until(lambda: self._is_followed(primary), "the replicas do not follow")

    def _is_followed(self, primary: int) -> bool:
        with redis.Redis(port=primary) as client:
            found = client.info("replication")
        replicas = [found.get(f"slave{i}", {}) for i in range(SERVERS - 1)]
        return all(each.get("state") == "online" and each["lag"] <= 1 for each in replicas)


class WithSentinel(Failover):
    """One Sentinel, which promotes a replica after 1 s."""

    def start_servers(self) -> None:
        super().start_servers()
        (self._sentinel,) = free_ports(1)
        self.address = f"redis+sentinel://127.0.0.1:{self._sentinel}/news/0{self.option}"
        path = self.directory / "sentinel.conf"
        path.write_text(
            f"port {self._sentinel}\nbind 127.0.0.1\n"
            f"sentinel monitor news 127.0.0.1 {next(iter(self.servers))} 1\n"
            "sentinel down-after-milliseconds news 1000\nsentinel failover-timeout news 3000\n"
        )
        self._command = [shutil.which("redis-server") or "redis-server", str(path), "--sentinel"]
        self.start_sentinel()
        self.stack.callback(self.stop_sentinel)

    def start_sentinel(self) -> None:
        """Start it; returns when it knows the replicas."""
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        until(
            lambda: len(execute(self._sentinel, "SENTINEL REPLICAS", "news") or ()) == 2, "no replicas known"
        )

    def stop_sentinel(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def primary(self) -> int:
        """As the Sentinel names it."""
        return int(execute(self._sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME", "news")[1])

    def promote(self, turn: int, stop: signal.Signals | None) -> None:
        """The primary stops, or the failover is planned (None)."""
        old = self.primary()
        if stop is None:
            until(lambda: execute(self._sentinel, "SENTINEL FAILOVER", "news") is not None, "no failover")
        else:
            self.signal(old, stop)
        until(lambda: self.primary() != old, "no replica was promoted")
        if stop == signal.SIGSTOP:
            self.signal(old, signal.SIGCONT)
        self.follow(self.primary())

    def lose_replicas(self, turn: int, count: int) -> None:
        """Kill replicas; without any, ``replicated`` refuses until one is back."""
        primary = self.primary()
        for port in self.rng.sample([port for port in self.servers if port != primary], count):
            self.signal(port, signal.SIGKILL)
        self.follow(primary)

    def lose_sentinel(self, turn: int) -> None:
        """Kill the Sentinel: nothing else changes."""
        self.stop_sentinel()
        self.start_sentinel()


class BehindAddress(Failover):
    """An address that is moved to another server; connections that are open stay where they are."""

    def start_servers(self) -> None:
        super().start_servers()
        self.proxy = FaultyProxy(next(iter(self.servers)), self.rng)

    async def start_service(self, *arguments: str) -> None:
        await self.proxy.start()
        self.stack.push_async_callback(self.proxy.close)
        await super().start_service(f"--store-url=redis://127.0.0.1:{self.proxy.port}{self.option}")

    def primary(self) -> int:
        """Where the address leads."""
        return self.proxy.target

    def move(self, turn: int, former: str) -> None:
        """Promote a replica and move the address; the former server hangs, is demoted, or takes writes."""
        old = self.primary()
        new = self.rng.choice([port for port in self.servers if port != old])
        if former == "hangs":
            self.signal(old, signal.SIGSTOP)
        execute(new, "REPLICAOF", "NO", "ONE")
        for port in self.servers.keys() - {old, new} | ({old} if former == "demoted" else set()):
            execute(port, "REPLICAOF", "127.0.0.1", new)
        self.proxy.target = new
        if former != "demoted":
            time.sleep(HELD_S)
        if former == "hangs":
            self.signal(old, signal.SIGCONT)
        self.follow(new)


class InCluster(Failover):
    """Three primaries with a replica each."""

    cluster: Cluster
    replicas = 1

    def start_servers(self) -> None:
        self.cluster = self.stack.enter_context(running_cluster(self.directory, config=self.config))
        self.servers, self.address = self.cluster.servers, self.cluster.url + self.option

    @property
    def store_url(self) -> str:
        """One node; the client finds the others."""
        return self.cluster.url

    def promote(self, turn: int, stop: signal.Signals | None) -> None:
        """A primary stops, or its replica takes over as planned (None)."""
        old = self.rng.choice(self.cluster.primaries())
        if stop is None:
            execute(execute(old, "ROLE")[2][0][1].decode(), "CLUSTER FAILOVER")
        else:
            self.signal(old, stop)
        until(lambda: len(set(self._masters(old)) - {old}) == 3, "no replica was promoted")
        if stop == signal.SIGSTOP:
            self.signal(old, signal.SIGCONT)
        self.cluster.heal()

    def reshard(self, turn: int) -> None:
        """Move slots from one primary to another."""
        ports = self.rng.sample(self.cluster.primaries(), 2)
        source, target = (execute(port, "CLUSTER MYID").decode() for port in ports)
        options = {"from": source, "to": target, "slots": "1000"}
        moved = [part for name, value in options.items() for part in (f"--cluster-{name}", value)]
        command = ["redis-cli", "--cluster", "reshard", f"127.0.0.1:{ports[0]}", *moved, "--cluster-yes"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.cluster.heal()

    def _masters(self, old: int) -> list[int]:
        """The primaries with slots, by another node."""
        other = next(port for port in self.servers if port != old)
        return [int(primary[1]) for _, _, primary, *_ in execute(other, "CLUSTER SLOTS")]


def execute(port: int, *command: object) -> Any:
    """The answer of a server; None if it gives none or an error."""
    try:
        with redis.Redis(port=port) as client:
            return client.execute_command(*command)
    except redis.RedisError:
        return None


def in_thread(fault: Callable[..., None], *arguments: object) -> Callable[[Failover, int], Awaitable[None]]:
    """A fault whose calls block."""
    return lambda deployment, turn: asyncio.to_thread(fault, deployment, turn, *arguments)


FAILOVER_FAULTS = {
    "sentinel": {
        "Sentinel: primary killed": in_thread(WithSentinel.promote, signal.SIGKILL),
        "Sentinel: primary hangs": in_thread(WithSentinel.promote, signal.SIGSTOP),
        "Sentinel: planned": in_thread(WithSentinel.promote, None),
        "Sentinel killed": in_thread(WithSentinel.lose_sentinel),
        "a replica killed": in_thread(WithSentinel.lose_replicas, 1),
        "all replicas killed": in_thread(WithSentinel.lose_replicas, 2),
    },
    "address": {
        "address: old server demoted": in_thread(BehindAddress.move, "demoted"),
        "address: old server hangs": in_thread(BehindAddress.move, "hangs"),
        "address: old takes writes": in_thread(BehindAddress.move, "alive"),
    },
    "cluster": {
        "cluster: primary killed": in_thread(InCluster.promote, signal.SIGKILL),
        "cluster: primary hangs": in_thread(InCluster.promote, signal.SIGSTOP),
        "cluster: planned": in_thread(InCluster.promote, None),
        "cluster: slots move": in_thread(InCluster.reshard),
    },
}
