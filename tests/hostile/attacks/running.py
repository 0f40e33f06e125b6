"""A running service to attack, requests to it as bytes, and the count of attempts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

from aggregator.auth.api_keys import ROLE_PERMISSIONS, ApiKeys, Role
from aggregator.index.upkeep import format_version
from aggregator.settings import Settings
from aggregator.store.factory import open_store, with_running_store_url
from aggregator.time_units import wall_clock_ms
from tests.support.processes import descendants
from tests.support.server_fixture import ROOT, SERVE, ready

ROLES: tuple[Role, ...] = tuple(ROLE_PERMISSIONS)
BOUND_SOURCE = "Gazette"
KEY_REFRESH_S = 2.5


@dataclass
class Findings:
    """Attempts by kind, and those whose result was not the expected one."""

    attempts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)

    def check(self, kind: str, expected: bool, detail: object) -> None:
        """Count an attempt; one that is not as ``expected`` is a failure."""
        self.attempts[kind] += 1
        if not expected:
            self.failures.append(f"{kind}: {detail}")


@dataclass
class Target:
    """A service that requires keys (unless ``keys`` is empty), its log and its process id."""

    host: str
    port: int
    pid: int
    log: Path
    keys: dict[str, str]
    session: aiohttp.ClientSession
    findings: Findings

    @property
    def base(self) -> str:
        """Address without a final slash."""
        return f"http://{self.host}:{self.port}"

    def bearer(self, name: str) -> dict[str, str]:
        """The header of a key; none for "no key"."""
        return {"Authorization": f"Bearer {self.keys[name]}"} if name in self.keys else {}

    async def request(
        self, method: str, path: str, key: str = "no key", **options: Any
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body; the path is sent as it is. Status 0: the connection was closed."""
        headers = {**self.bearer(key), **(options.pop("headers", None) or {})}
        url = URL(self.base + path, encoded=True)
        try:
            async with self.session.request(
                method, url, headers=headers, allow_redirects=False, **options
            ) as response:
                return response.status, response.headers, await response.read()
        except (aiohttp.ClientError, ConnectionError, ValueError):
            return 0, {}, b""

    async def send(self, data: bytes, *, timeout_s: float = 5.0, pause_s: float = 0.3) -> bytes:
        """All that the service answers to these bytes: until it closes, or ``pause_s`` after the last."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        answer = b""
        try:
            writer.write(data)
            async with asyncio.timeout(timeout_s):
                while part := await asyncio.wait_for(reader.read(65536), pause_s if answer else timeout_s):
                    answer += part
        except (TimeoutError, ConnectionError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, OSError):
                await writer.wait_closed()
        return answer

    async def latency_s(self, path: str = "/healthz", key: str = "no key") -> float:
        """Time of one request on a new connection."""
        started = time.perf_counter()
        await self.request("GET", path, key, headers={"Connection": "close"})
        return time.perf_counter() - started

    def resident_mb(self) -> float:
        """Largest resident set of the service's processes, in MB."""
        sizes = [0.0]
        for pid in (self.pid, *descendants(self.pid)):
            with contextlib.suppress(OSError, ValueError):
                sizes.append(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6)
        return max(sizes)

    def cpu_s(self) -> float:
        """CPU time of the service's processes so far."""
        total = 0.0
        for pid in (self.pid, *descendants(self.pid)):
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return total


@asynccontextmanager
async def running(
    directory: Path, findings: Findings, *arguments: str, with_keys: bool = True
) -> AsyncIterator[Target]:
    """A service with its own data in ``directory``, and keys of every kind; SIGTERM ends it."""
    data, log = directory / "data", directory / "log"
    inherited = {k: value for k, value in os.environ.items() if not k.startswith(("AGGREGATOR_", "REDIS_"))}
    environment = {**inherited, "PYTHONPATH": str(ROOT), "AGGREGATOR_LOG_FORMAT": "text"}
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *SERVE, f"--data-dir={data}", *arguments,
            stdout=asyncio.subprocess.PIPE, stderr=errors, env=environment, cwd=directory,
        )  # fmt: skip
    try:
        url = URL(await ready(process))
        keys = await _create_keys(data) if with_keys else {}
        async with aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=60),
            auto_decompress=False,
        ) as session:
            yield Target(url.host or "", url.port or 0, process.pid, log, keys, session, findings)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.communicate()


async def _create_keys(data: Path) -> dict[str, str]:
    """One key per role, one bound to a source, an expired and a revoked one, and a wrong one."""
    settings = with_running_store_url(Settings(data_dir=str(data)))
    async with open_store(settings, format_version.write) as store:
        api_keys = ApiKeys(store, wall_clock_ms)
        keys: dict[str, str] = {role: (await api_keys.add(role, role))[1] for role in ROLES}
        keys["bound"] = (await api_keys.add("bound", "crawler", sources=(BOUND_SOURCE,)))[1]
        keys["expired"] = (await api_keys.add("expired", "admin", expires_ms=wall_clock_ms() - 1000))[1]
        revoked, keys["revoked"] = await api_keys.add("revoked", "admin")
        await api_keys.revoke(revoked.id)
    keys["wrong"] = keys["admin"][:-4] + "AAAA"
    await asyncio.sleep(KEY_REFRESH_S)  # until the service has read them
    return keys


Attack = Callable[[Target], Coroutine[Any, Any, None]]


def status_of(answer: bytes) -> int:
    """Status of the first response in these bytes; 0 for none."""
    parts = answer.split(b" ", 2)
    return int(parts[1]) if answer.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")) and parts[1].isdigit() else 0


def responses_in(answer: bytes) -> int:
    """Number of responses in these bytes."""
    return answer.count(b"HTTP/1.1 ") + answer.count(b"HTTP/1.0 ")
