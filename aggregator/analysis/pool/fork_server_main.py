"""Code that runs in the fork server and in its workers, not in the process that uses them.

The fork server has the libraries and the models loaded and forks one worker per request. Starting a process
takes seconds (imports, models); forking a loaded one takes milliseconds, and pages that are only read stay
shared. So killing a worker that exceeds its limits is cheap.

Control protocol, messages of ``MESSAGE_BYTES`` bytes, big-endian: a request with a file descriptor forks a
worker on that socket (the number is its nice increment) and is answered with the worker's process id; a
request without one kills the worker with that process id, without answer. The first message from the server
is 0: ready.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import signal
import socket
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.pool.codec import LENGTH_BYTES, AnalysisResult, encode_result, length_prefixed
from aggregator.concurrency.process_priority import lower_priority
from aggregator.domain import Article
from aggregator.errors import AnalysisLimitExceeded

BASE_NICE_INCREMENT = 5  # workers get batches and pages; the service itself answers single posts
MESSAGE_BYTES = 8

_WARMUP_ARTICLE = Article(
    id="",
    html="<html><body><p>Die Brücke über den Fluss bleibt wegen des Sturmes geschlossen.</p></body></html>",
)


def encode_message(number: int) -> bytes:
    """One message of the control protocol."""
    return number.to_bytes(MESSAGE_BYTES)


def serve(control: socket.socket, analyzer: Analyzer, memory_bytes: int) -> None:
    """Fork and kill workers until ``control`` is closed by the other side. Never returns."""
    workers: set[int] = set()
    for signal_number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends these to the whole process group
        signal.signal(signal_number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(_kill_workers(workers)))
    _warm_up(analyzer)
    with contextlib.suppress(OSError):
        control.sendall(encode_message(0))
        while (message := socket.recv_fds(control, MESSAGE_BYTES, 1))[0]:
            number, pipes = int.from_bytes(message[0]), message[1]
            if pipes:
                workers.add(pid := _fork_worker(control, pipes[0], analyzer, number, memory_bytes))
                control.sendall(encode_message(pid))
            elif number in workers:
                workers.discard(number)
                _kill_workers({number})
    os._exit(_kill_workers(workers))


def _fork_worker(
    control: socket.socket, pipe: int, analyzer: Analyzer, nice_increment: int, memory_bytes: int
) -> int:
    if pid := os.fork():
        os.close(pipe)
        return pid
    control.close()
    _run_worker(socket.socket(fileno=pipe), analyzer, nice_increment, memory_bytes)
    raise AssertionError("A worker never returns.")


def _kill_workers(workers: set[int]) -> int:
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return 0


def _warm_up(analyzer: Analyzer) -> None:
    lower_priority(BASE_NICE_INCREMENT)
    # Lazily loaded modules (HTML extraction, language statistics) must not count against the first article.
    analyzer.analyze_many([_WARMUP_ARTICLE])
    gc.collect()
    gc.freeze()  # keeps the collector from touching, and so unsharing, the pages of models and modules


# -- in a worker -------------------------------------------------------------------------------


def _run_worker(pipe: socket.socket, analyzer: Analyzer, nice_increment: int, memory_bytes: int) -> None:
    """Answer requests until the other side is closed. Never returns into the code of the fork server."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        lower_priority(nice_increment)
        _limit_memory(memory_bytes)
        with pipe, pipe.makefile("rb") as stream:
            while (request := _read_request(stream)) is not None:
                articles = pickle.loads(request)
                answer: list[Any] = [
                    encode_result(result, article)
                    for result, article in zip(_analyze(analyzer, articles), articles, strict=True)
                ]
                pipe.sendall(length_prefixed(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)))
    except OSError:  # the other side is closed
        pass
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(0)


def _limit_memory(memory_bytes: int) -> None:
    statm = Path("/proc/self/statm")  # Linux only; elsewhere the time limit must suffice
    if statm.exists():
        data_pages = int(statm.read_text(encoding="ascii").split()[5])
        limit = data_pages * resource.getpagesize() + memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _read_request(stream: BinaryIO) -> bytes | None:
    head = stream.read(LENGTH_BYTES)
    return stream.read(int.from_bytes(head)) if len(head) == LENGTH_BYTES else None


def _analyze(analyzer: Analyzer, articles: Sequence[Article]) -> list[AnalysisResult]:
    try:
        return analyzer.analyze_many(articles)
    except MemoryError:
        return [resource_limit_error() for _ in articles]


def resource_limit_error() -> AnalysisLimitExceeded:
    """The error of an article whose analysis exceeds the time or memory limit."""
    return AnalysisLimitExceeded(
        "Analyzing this article took too much time or memory; send its plain text instead."
    )
