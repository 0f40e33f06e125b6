"""Code that runs in the fork server and in its workers, not in the process that uses them.

Forking it takes milliseconds, and pages that are only read stay shared: killing a worker is cheap.

Control protocol, messages of ``MESSAGE_BYTES`` bytes, big-endian: a request with a file descriptor forks a
worker on that socket (the number is its nice increment) and is answered with the worker's process id; one
without kills the worker with that process id, and is answered with its wait status if ``STATUS_WANTED`` is
added. A server that was spawned, not forked, first gets the pickled analyzer and answers 0: ready. A request
to a worker is the processor time that it may use, in seconds, and the articles.
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
from typing import BinaryIO

from aggregator.analysis.analyzer import Analyzer, warm_up
from aggregator.concurrency import lower_priority
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, AnalysisLimitExceeded
from aggregator.parent_death import close_inherited_files, parent_death_hook

BASE_NICE_INCREMENT = 5  # workers get batches and pages; the service itself answers single posts
MESSAGE_BYTES = 8
STATUS_WANTED = 1 << 32

AnalysisResult = Analysis | AggregatorError


def encode_message(number: int) -> bytes:
    """One message of the control protocol."""
    return number.to_bytes(MESSAGE_BYTES)


def length_prefixed(data: bytes) -> bytes:
    """``data`` after its length as one message."""
    return encode_message(len(data)) + data


def load(analyzer: Analyzer) -> None:
    """Load what analysis needs into this process, to be shared with the processes forked later."""
    warm_up(analyzer)
    gc.collect()
    gc.freeze()  # the collector would write to the objects that it traverses, and so copy their pages


def serve_spawned(control: socket.socket, memory_bytes: int) -> None:
    """``serve`` with the analyzer that the other side sends. Never returns."""
    with contextlib.suppress(OSError):
        with control.makefile("rb") as stream:
            pickled = _read_message(stream)
        if pickled is not None:  # else the other side is gone
            analyzer: Analyzer = pickle.loads(pickled)
            load(analyzer)
            control.sendall(encode_message(0))
            serve(control, analyzer, memory_bytes)
    os._exit(0)


def serve(control: socket.socket, analyzer: Analyzer, memory_bytes: int) -> None:
    """Fork and kill workers until ``control`` is closed by the other side. Never returns.

    Other inherited files and sockets are closed: others must see when their owner closes them.
    """
    workers: set[int] = set()
    for signal_number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends these to the whole process group
        signal.signal(signal_number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(_kill_workers(workers)))
    close_inherited_files(control.fileno())
    lower_priority(BASE_NICE_INCREMENT)  # only now: the start of a web process waits for what was loaded
    with contextlib.suppress(OSError):
        while (message := socket.recv_fds(control, MESSAGE_BYTES, 1))[0]:
            number, pipes = int.from_bytes(message[0]), message[1]
            if pipes:
                workers.add(pid := _fork_worker(control, pipes[0], analyzer, number, memory_bytes))
                control.sendall(encode_message(pid))
                continue
            status = _kill_worker(workers, number & ~STATUS_WANTED)
            if number & STATUS_WANTED:
                control.sendall(encode_message(status))
    os._exit(_kill_workers(workers))


def _fork_worker(
    control: socket.socket, pipe: int, analyzer: Analyzer, nice_increment: int, memory_bytes: int
) -> int:
    die_with_parent = parent_death_hook(signal.SIGKILL)
    if pid := os.fork():
        os.close(pipe)
        return pid
    control.close()
    if die_with_parent is not None:  # without its fork server nobody could kill a worker
        die_with_parent()
    _run_worker(socket.socket(fileno=pipe), analyzer, nice_increment, memory_bytes)
    raise AssertionError("A worker never returns.")


def _kill_worker(workers: set[int], pid: int) -> int:
    """Kill a worker, unless it has ended; return its wait status, which says what ended it."""
    if pid not in workers:
        return 0
    workers.discard(pid)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def _kill_workers(workers: set[int]) -> int:
    for pid in list(workers):
        _kill_worker(workers, pid)
    return 0


# -- in a worker -------------------------------------------------------------------------------


def _run_worker(pipe: socket.socket, analyzer: Analyzer, nice_increment: int, memory_bytes: int) -> None:
    """Answer requests until the other side is closed. Never returns into the code of the fork server."""
    try:
        for signal_number in (signal.SIGTERM, signal.SIGPROF):
            signal.signal(signal_number, signal.SIG_DFL)
        lower_priority(nice_increment)
        statm = Path("/proc/self/statm")  # Linux only; elsewhere the time limit must suffice
        if statm.exists():
            data_pages = int(statm.read_text(encoding="ascii").split()[5])
            limit = data_pages * resource.getpagesize() + memory_bytes
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        with pipe, pipe.makefile("rb") as stream:
            while (request := _read_message(stream)) is not None:
                cpu_limit_s, articles = pickle.loads(request)
                signal.setitimer(signal.ITIMER_PROF, cpu_limit_s)
                results = _analyze(analyzer, articles, memory_bytes)
                signal.setitimer(signal.ITIMER_PROF, 0)
                pipe.sendall(length_prefixed(pickle.dumps(results, pickle.HIGHEST_PROTOCOL)))
    except OSError:  # the other side is closed
        pass
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(0)


def _read_message(stream: BinaryIO) -> bytes | None:
    """The next message; None if the other side is gone, even in the middle of one."""
    head = stream.read(MESSAGE_BYTES)
    message = stream.read(size := int.from_bytes(head))
    return message if len(head) == MESSAGE_BYTES and len(message) == size else None


def _analyze(analyzer: Analyzer, articles: Sequence[Article], memory_bytes: int) -> list[AnalysisResult]:
    results: list[AnalysisResult] = []
    for article in articles:
        try:
            results += analyzer.analyze_many([article])
        except MemoryError:
            limit = f"{memory_bytes >> 20:,} MiB of memory"
            message = f"Analyzing this article takes more than {limit}; send its plain text, or split it."
            results.append(AnalysisLimitExceeded(message))
    return results
