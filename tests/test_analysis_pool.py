"""Analyses in other processes say what they say in this one."""

import asyncio
import os
import subprocess
import sys

import pytest
from newsroom import story

from aggregator import analysis_pool
from aggregator.analyse import Analyser
from aggregator.analysis_pool import BATCH, LONG_CHARACTERS, AnalysisPool
from aggregator.domain import Analysis, Article
from aggregator.errors import BadInput, NoText
from aggregator.features import HashedModel

ANALYSER = Analyser({"xx": HashedModel()})


def told(results: list) -> list:
    """What can be compared of analyses and errors."""
    return [(r.fingerprint, r.text_hash) if isinstance(r, Analysis) else str(r) for r in results]


async def test_batches_and_heavy_articles_elsewhere() -> None:
    """A batch over two processes, and HTML or long texts beside plain ones, keep their order."""
    html = (
        "<html><body><article>"
        + "".join(f"<p>{story(9, 4)}</p>" for _ in range(3))
        + "</article></body></html>"
    )
    articles = [Article(id=str(i), text=story(i, 3)) for i in range(3 * BATCH)]
    articles[5] = Article(id="nothing")
    articles[7] = Article(id="html", html=html)
    articles[9] = Article(id="long", text="harbour " * (LONG_CHARACTERS // 8 + 1))
    expected = told(ANALYSER.analyse_many(articles))

    pool = AnalysisPool(ANALYSER, processes=2)
    try:
        assert told(await pool.analyse_many(articles)) == expected
        assert told(await pool.analyse_many(articles[:10])) == expected[:10]
        broken = (await pool.analyse_many([Article(id="x", html="<html></html>")]))[0]
        assert isinstance(broken, NoText)
    finally:
        pool.close()
        pool.close()


class Traps(HashedModel):
    """A model that some articles explode in: by their time, their memory, or their process."""

    def project(self, tokens):  # type: ignore[no-untyped-def]
        """As ``HashedModel``, but for three words."""
        words = " ".join(tokens)
        while "qspinq" in words:
            pass
        if "qgreedq" in words:
            return bytearray(3 << 30)
        if "qdeadq" in words:
            os._exit(1)
        return super().project(tokens)


def page(word: str) -> Article:
    """A page about something, and ``word``."""
    return Article(
        id=word, html=f"<html><body><article><p>{story(3, 5)} {word} {word}</p></article></body></html>"
    )


async def test_what_explodes_costs_its_own_answer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time, memory, a dead process: 400 each, while its neighbours in pool and batch are answered."""
    monkeypatch.setattr(analysis_pool, "ARTICLE_TIMEOUT_S", 4.0)
    pool = AnalysisPool(Analyser({"xx": Traps()}), processes=2, memory_bytes=256 << 20)
    words = ["harmless", "qspinq", "peaceful", "qgreedq"]
    batch = [Article(id=str(i), text=story(i, 3)) for i in range(2 * BATCH)]
    batch[3] = page("qdeadq")
    try:
        single = await asyncio.gather(*(pool.analyse_many([page(word)]) for word in words))
        together = await pool.analyse_many(batch)
    finally:
        pool.close()

    for word, (result,) in zip(words, single, strict=True):
        assert isinstance(result, BadInput if word in ("qspinq", "qgreedq") else Analysis), word
    assert [i for i, result in enumerate(together) if not isinstance(result, Analysis)] == [3]


async def test_the_last_few_lines_of_a_batch_are_analysed_elsewhere_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What came together never takes this process's time; what came alone is not sent around."""
    here = Analyser({"xx": HashedModel()})
    pool = AnalysisPool(here, processes=1)
    seen: list[str] = []
    analyse_many = Analyser.analyse_many
    monkeypatch.setattr(
        Analyser,
        "analyse_many",
        lambda self, some: seen.extend(a.id for a in some) or analyse_many(self, some),
    )
    few = [Article(id=str(i), text=story(i, 3)) for i in range(3)]
    try:
        together = await pool.analyse_many(few)
        alone = [(await pool.analyse_many([one]))[0] for one in few]
    finally:
        pool.close()

    assert told(together) == told(alone)
    assert seen == ["0", "1", "2"]


def test_a_worker_that_may_not_step_back_works_all_the_same() -> None:
    """Some hardening forbids it to lower its own priority (systemd: SystemCallFilter=~@resources)."""
    program = """
import os

def nice(by):
    raise PermissionError(1, "Operation not permitted")

os.nice = nice

from aggregator import analysis_worker
from aggregator.analyse import Analyser
from aggregator.features import HashedModel

analysis_worker._prepare(Analyser({"xx": HashedModel()}), 1 << 30)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert (ended.returncode, ended.stderr) == (0, "")
