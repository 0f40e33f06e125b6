"""Latency, CPU and memory of one index layout; percentiles are over all samples."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np
import redis

from tests.support.processes import server_cpu_s

WARM_UP = 20
MAX_SAMPLES = 16


@dataclass(frozen=True, slots=True)
class Latency:
    """Look-ups within one radius: times in ms, CPU in microseconds per look-up."""

    radius: int
    queries: int
    p50_ms: float
    p99_ms: float
    redis_cpu_us: float | None
    client_cpu_us: float
    recall: float | None
    found: float


class Server:
    """CPU and memory of a server, as it reports them; ``client`` is None for an index in this process."""

    def __init__(self, client: redis.Redis | None) -> None:
        self._client = client

    def cpu_s(self) -> float | None:
        """CPU seconds of its threads so far; None without a server."""
        if self._client is None:
            return None
        return server_cpu_s(self._client)

    def memory_bytes(self) -> int:
        """Its used_memory after the buffers of this connection and of the log are freed."""
        assert self._client is not None
        self._client.connection_pool.disconnect()
        sizes = [0, 1]
        while sizes[-1] != sizes[-2] and len(sizes) < MAX_SAMPLES:
            time.sleep(0.25)
            sizes.append(int(self._client.info("memory")["used_memory"]))
        return min(sizes[2:])

    def settle(self) -> None:
        """Wait until no rewrite of the log is in progress or scheduled."""
        while self._client is not None:
            state = self._client.info("persistence")
            if not state["aof_rewrite_in_progress"] and not state["aof_rewrite_scheduled"]:
                return
            time.sleep(0.1)


async def latency(
    near: Callable[[int, int], Awaitable[Sequence[int]]],
    queries: Sequence[int],
    radius: int,
    server: Server,
    expected: Sequence[frozenset[int]],
) -> Latency:
    """Query one at a time; ``expected`` are the correct numbers of the first queries."""
    for fingerprint in queries[:WARM_UP]:
        await near(fingerprint, radius)
    server.settle()
    taken = np.empty(len(queries))
    answers = []
    redis_s, client_s = server.cpu_s(), time.process_time()
    for i, fingerprint in enumerate(queries):
        started = time.perf_counter()
        found = await near(fingerprint, radius)
        taken[i] = time.perf_counter() - started
        answers.append(found)
    client_s, after_s = time.process_time() - client_s, server.cpu_s()
    return Latency(
        radius=radius,
        queries=len(queries),
        p50_ms=float(np.percentile(taken, 50)) * 1e3,
        p99_ms=float(np.percentile(taken, 99)) * 1e3,
        redis_cpu_us=None if redis_s is None or after_s is None else (after_s - redis_s) / len(queries) * 1e6,
        client_cpu_us=client_s / len(queries) * 1e6,
        recall=_recall(answers, expected),
        found=sum(map(len, answers)) / len(queries),
    )


def _recall(answers: Sequence[Sequence[int]], expected: Sequence[frozenset[int]]) -> float | None:
    if not expected:
        return None
    hits = sum(
        len(correct & {int(n) for n in answer}) for correct, answer in zip(expected, answers, strict=False)
    )
    wrong = any({int(n) for n in a} - correct for correct, a in zip(expected, answers, strict=False))
    assert not wrong, "a look-up returned a number that is not within the radius"
    return hits / max(1, sum(map(len, expected)))
