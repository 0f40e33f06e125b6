"""One process that analyses articles, and the pipe to it.

The event loop writes articles and reads analyses itself: an executor would do so in threads of its own, and each
of them waits for the interpreter whenever this process is busy. Analyses travel as tuples, without the text that
the caller has, at a third of the time that pickled objects take.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import os
import pickle
import resource
import signal
import socket
from collections.abc import Sequence
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from aggregator.analyse import Analyser
from aggregator.domain import Analysis, Article, Sketch
from aggregator.errors import AggregatorError, BadInput

START_TIMEOUT_S = 60.0  # a worker imports the libraries and gets the models
END_S = 5.0
_LENGTH_BYTES = 8
_BUFFER_BYTES = 1 << 20

_FIRST = Article(
    id="",
    html="<html><body><p>Die Brücke über den Fluss bleibt wegen des Sturmes geschlossen.</p></body></html>",
)

Result = Analysis | AggregatorError


class WorkerGone(Exception):
    """The process ended, or did not answer in time: it is of no more use."""


class AnalysisWorker:
    """A process of its own, started by the first ``run``. One piece of work at a time.

    ``memory_bytes``: what it may take beyond what it has once the models are there.
    """

    def __init__(self, analyser: Analyser, memory_bytes: int) -> None:
        self._analyser = analyser
        self._memory_bytes = memory_bytes
        self._process: SpawnProcess | None = None
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def run(self, articles: list[Article], timeout_s: float) -> list[Result]:
        """One result per article. Raises WorkerGone."""
        try:
            if self._process is None:
                async with asyncio.timeout(START_TIMEOUT_S):
                    await self._start()
            async with asyncio.timeout(timeout_s):
                packed = await self._ask(articles)
        except (OSError, EOFError, TimeoutError) as error:
            raise WorkerGone from error
        return [_unpacked(one, article) for one, article in zip(packed, articles, strict=True)]

    def kill(self) -> None:
        """End it whatever it does. Idempotent. One that is only being started ends by itself: its pipe is closed."""
        if self._process is None:
            return
        self._writer.close()
        if self._process.pid is not None:
            self._process.kill()
            self._process.join(END_S)

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=_BUFFER_BYTES)
            # "spawn": a forked child would inherit the event loop's sockets and threads' locks.
            self._process = multiprocessing.get_context("spawn").Process(
                target=_serve, args=(theirs, self._analyser, self._memory_bytes), daemon=True
            )
            await asyncio.to_thread(self._process.start)  # it hands the models over, which takes a while
        await self._ask([])

    async def _ask(self, articles: list[Article]) -> list[Any]:
        self._writer.write(_framed(pickle.dumps(articles, pickle.HIGHEST_PROTOCOL)))
        await self._writer.drain()
        size = int.from_bytes(await self._reader.readexactly(_LENGTH_BYTES))
        return cast(list[Any], pickle.loads(await self._reader.readexactly(size)))


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(_LENGTH_BYTES) + data


NICE = 5  # what comes here are batches and pages; the service beside it answers single posts


# -- in the other process ----------------------------------------------------------------------


def _serve(pipe: socket.socket, analyser: Analyser, memory_bytes: int) -> None:
    """Answer until the other side is gone."""
    for number in (signal.SIGINT, signal.SIGHUP):  # a terminal tells them all of us
        signal.signal(number, signal.SIG_IGN)
    _prepare(analyser, memory_bytes)
    with pipe, pipe.makefile("rb") as reading:
        while (request := _read(reading)) is not None:
            articles = pickle.loads(request)
            packed = [_packed(one, a) for one, a in zip(_analyse(analyser, articles), articles, strict=True)]
            pipe.sendall(_framed(pickle.dumps(packed, pickle.HIGHEST_PROTOCOL)))


def _prepare(analyser: Analyser, memory_bytes: int) -> None:
    # Where that is forbidden (by a filter of system calls) it works beside us as an equal.
    with contextlib.suppress(OSError):
        os.nice(NICE)
    # What is loaded when first needed (extraction, languages) is not the first article's time and memory.
    analyser.analyse_many([_FIRST])
    gc.collect()
    gc.freeze()  # dictionaries and models stay: no need to look through them again and again
    statm = Path("/proc/self/statm")  # Linux; elsewhere there is only the limit of time
    if statm.exists():
        data_pages = int(statm.read_text(encoding="ascii").split()[5])
        limit = data_pages * resource.getpagesize() + memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _read(reading: BinaryIO) -> bytes | None:
    head = reading.read(_LENGTH_BYTES)
    return reading.read(int.from_bytes(head)) if len(head) == _LENGTH_BYTES else None


def _analyse(analyser: Analyser, articles: Sequence[Article]) -> list[Result]:
    try:
        return analyser.analyse_many(articles)
    except MemoryError:
        return [too_much() for _ in articles]


def too_much() -> BadInput:
    """What is said of an article that explodes."""
    return BadInput("Analysing this article took too much time or memory; send its plain text instead.")


# -- on the way back ---------------------------------------------------------------------------


def _packed(found: Result, article: Article) -> Any:
    """An analysis as a tuple in the order of its fields; title and text None where the article's own are meant."""
    if not isinstance(found, Analysis):
        return found
    return (
        found.lang, found.space, found.fingerprint, found.text_hash, found.short,
        found.sketch.size, found.sketch.sample.tobytes(), found.terms, found.figures,
        None if found.title == article.title else found.title,
        None if found.text == article.text else found.text,
    )  # fmt: skip


def _unpacked(packed: Any, article: Article) -> Result:
    if not isinstance(packed, tuple):
        return cast(AggregatorError, packed)
    lang, space, fingerprint, text_hash, short, size, sample, terms, figures, title, text = packed
    return Analysis(
        lang,
        space,
        fingerprint,
        text_hash,
        short,
        Sketch(size, np.frombuffer(sample, np.uint32)),
        terms,
        figures,
        article.title if title is None else title,
        article.text if text is None else text,
    )
