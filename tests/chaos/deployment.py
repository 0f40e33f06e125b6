"""What the harness needs of a deployment: services to call, a direct connection to the store, processes.

``replicas.py`` and ``machine.py`` are the two deployments.
"""

from __future__ import annotations

import abc
import asyncio
import random
import re
import time
from contextlib import AsyncExitStack
from pathlib import Path

import redis.asyncio as redis

from tests.chaos.api import Api, Refused

TIMEOUT_S = 180.0
POLL_S = 0.02
READY_PROBES = 8  # in sequence: with two processes, one that is not ready is missed once in 256
LOG_RECORD = re.compile(r"\n(?=\d{4}-\d\d-\d\d )")


class Deployment(abc.ABC):
    """Running while its context (``async with``) is open.

    setting     one of those of the harness
    apis        the services that articles are posted to
    direct      connection to the store that no fault touches
    unreported  faults that the deployment should have reported and did not, one sentence each
    missing     kinds of faults that cannot be injected here, with the reason
    start_s     how long the first start took
    """

    direct: redis.Redis

    def __init__(self, directory: Path, setting: str, rng: random.Random) -> None:
        self.directory = directory
        self.setting = setting
        self.appendfsync = "everysec" if setting == "everysec" else "always"
        self.rng = rng
        self.unreported: list[str] = []
        self.stack = AsyncExitStack()
        self.apis: list[Api] = []
        self.missing: dict[str, str] = {}
        self.start_s = 0.0

    async def __aenter__(self) -> Deployment:
        started_s = time.monotonic()
        try:
            await self.start()
        except BaseException:
            await self.stack.aclose()
            raise
        self.start_s = time.monotonic() - started_s
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stack.aclose()

    @abc.abstractmethod
    async def start(self) -> None:
        """Start everything; what must be stopped is pushed on ``stack``."""

    @property
    @abc.abstractmethod
    def store_url(self) -> str:
        """URL of the store, past all faults."""

    @abc.abstractmethod
    async def processes(self) -> list[int]:
        """Process ids of all services; waits for those that are being replaced."""

    @abc.abstractmethod
    def logs(self) -> list[Path]:
        """Log files of all services."""

    @abc.abstractmethod
    def raise_if_ended(self) -> None:
        """Raise AssertionError if a service has exited although nobody stopped it."""

    def any_api(self) -> Api:
        """A random service."""
        return self.rng.choice(self.apis)

    async def until_ready(self) -> None:
        """Wait until all processes of all services are ready. Raises TimeoutError after ``TIMEOUT_S``.

        Each probe opens a new connection, so it may reach any process of a service.
        """
        async with asyncio.timeout(TIMEOUT_S):
            for api in self.apis:
                ready = 0
                while ready < READY_PROBES:
                    ready = ready + 1 if await api.not_ready_reason() is None else 0
                    self.raise_if_ended()
                    await asyncio.sleep(POLL_S)

    async def verdict_of(self, id_: str) -> str | None:
        """Verdict of an article from a random service; None if unknown.

        Raises TimeoutError if no service answers.
        """
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                try:
                    return await self.any_api().verdict_of(id_)
                except Refused:
                    await asyncio.sleep(POLL_S)

    async def expect_report(self, fault: str, word: str, timeout_s: float) -> None:
        """Wait until a service says at ``/readyz`` why it is not ready, naming ``word``.

        Otherwise, after ``timeout_s``, the fault is added to ``unreported``.
        """
        said = None
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    for api in self.apis:
                        said = await api.not_ready_reason() or said
                        if said and word in said.lower():
                            return
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            self.unreported.append(f"{fault}: /readyz did not name the {word} (last answer: {said})")

    def tracebacks(self) -> list[str]:
        """Log records of the services with a traceback."""
        texts = (log.read_text(errors="replace") for log in self.logs())
        return [record for text in texts for record in LOG_RECORD.split(text) if "Traceback" in record]
