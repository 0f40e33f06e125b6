"""Times, CPU and memory of one layout: every sample counts."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np
import redis

from tests.support.processes import server_cpu_s

WARM_UP = 20
MOMENTS = 16


@dataclass(frozen=True, slots=True)
class Latency:
    """Of one kind of look-up; times in ms, CPU in microseconds per look-up."""

    radius: int
    queries: int
    p50_ms: float
    p99_ms: float
    redis_cpu_us: float | None
    client_cpu_us: float
    recall: float | None
    found: float


class Server:
    """What a server says of itself; ``client`` None stands for an index in this process."""

    def __init__(self, client: redis.Redis | None) -> None:
        self._client = client

    def cpu_s(self) -> float | None:
        """CPU seconds its threads have used so far."""
        if self._client is None:
            return None
        return server_cpu_s(self._client)

    def memory_bytes(self) -> int:
        """What its data takes, by its own account, once buffers of this connection and of the log are let go."""
        assert self._client is not None
        self._client.connection_pool.disconnect()
        sizes = [0, 1]
        while sizes[-1] != sizes[-2] and len(sizes) < MOMENTS:
            time.sleep(0.25)
            sizes.append(int(self._client.info("memory")["used_memory"]))
        return min(sizes[2:])

    def settle(self) -> None:
        """Wait until no rewrite of the log runs beside the measurement."""
        while self._client is not None:
            state = self._client.info("persistence")
            if not state["aof_rewrite_in_progress"] and not state["aof_rewrite_scheduled"]:
                return
            time.sleep(0.1)


async def latency(
    near: Callable[[int, int], Awaitable[Sequence[int]]],
    asked: Sequence[int],
    radius: int,
    server: Server,
    truth: Sequence[frozenset[int]],
) -> Latency:
    """Ask one by one; ``truth``: the right numbers for the first of them."""
    for fingerprint in asked[:WARM_UP]:
        await near(fingerprint, radius)
    server.settle()
    taken = np.empty(len(asked))
    answers = []
    redis_s, client_s = server.cpu_s(), time.process_time()
    for i, fingerprint in enumerate(asked):
        started = time.perf_counter()
        found = await near(fingerprint, radius)
        taken[i] = time.perf_counter() - started
        answers.append(found)
    client_s, after_s = time.process_time() - client_s, server.cpu_s()
    return Latency(
        radius=radius,
        queries=len(asked),
        p50_ms=float(np.percentile(taken, 50)) * 1e3,
        p99_ms=float(np.percentile(taken, 99)) * 1e3,
        redis_cpu_us=None if redis_s is None or after_s is None else (after_s - redis_s) / len(asked) * 1e6,
        client_cpu_us=client_s / len(asked) * 1e6,
        recall=_recall(answers, truth),
        found=sum(map(len, answers)) / len(asked),
    )


def _recall(answers: Sequence[Sequence[int]], truth: Sequence[frozenset[int]]) -> float | None:
    if not truth:
        return None
    hits = sum(len(right & {int(n) for n in answer}) for right, answer in zip(truth, answers, strict=False))
    wrong = any({int(n) for n in a} - right for right, a in zip(truth, answers, strict=False))
    assert not wrong, "a look-up returned what is not within the radius"
    return hits / max(1, sum(map(len, truth)))
