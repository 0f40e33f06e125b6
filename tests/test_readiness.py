"""Readiness: failing checks are named, logged when they change, and never hide behind an error."""

from __future__ import annotations

import asyncio
import logging

import pytest

from aggregator import readiness
from aggregator.errors import DamagedValue, StoreUnavailable
from aggregator.readiness import Readiness


async def test_failing_checks_are_named_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Only failing checks are problems; a problem that stays is one log line, its end is another."""
    sentence: list[str | None] = ["It is 2026-11-30T03:51:21Z, 40.1 days ahead; correct it."]

    async def clock() -> str | None:
        return sentence[0]

    async def data() -> str | None:
        return None

    checks = Readiness({"clock": clock, "data": data})
    with caplog.at_level(logging.INFO):
        assert await checks.run() == {"clock": sentence[0]}
        sentence[0] = "It is 2026-11-30T03:51:23Z, 40.2 days ahead; correct it."
        assert await checks.run() == {"clock": sentence[0]} == checks.problems
        sentence[0] = None
        assert await checks.run() == {}

    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert checks.names == ("clock", "data")


async def test_a_check_that_fails_or_hangs_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that cannot be made is not a passed check."""
    monkeypatch.setattr(readiness, "CHECK_TIMEOUT_S", 0.01)

    async def fails() -> str | None:
        raise DamagedValue("A value is damaged.")

    async def unavailable() -> str | None:
        raise StoreUnavailable("Reported on its own: see StoreInfo.")

    async def hangs() -> str | None:
        await asyncio.Event().wait()
        return None

    assert await Readiness({"fails": fails, "unavailable": unavailable, "hangs": hangs}).run() == {
        "fails": "A value is damaged.",
        "hangs": "The check of the hangs did not finish within 0.01 s.",
    }


async def test_a_check_that_hangs_keeps_its_last_result_for_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One check without a result does not make the service unready; one without for long does."""
    monkeypatch.setattr(readiness, "CHECK_TIMEOUT_S", 0.01)
    hangs = False

    async def store() -> str | None:
        if hangs:
            await asyncio.Event().wait()
        return None

    checks = Readiness({"store": store})
    assert await checks.run() == {}
    hangs = True
    assert await checks.run() == {}
    assert not caplog.records

    monkeypatch.setattr(readiness, "MAX_RESULT_AGE_S", 0.0)
    assert await checks.run() == {"store": "The check of the store did not finish within 0.01 s."}
    hangs = False
    assert await checks.run() == {}


async def test_a_store_that_answers_with_an_error_is_named_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by a check that did not finish while the store hung before; what a check has found stays."""
    monkeypatch.setattr(readiness, "CHECK_TIMEOUT_S", 0.01)
    monkeypatch.setattr(readiness, "MAX_RESULT_AGE_S", 0.0)
    hangs = True

    async def store() -> str | None:
        if hangs:
            await asyncio.Event().wait()
        raise StoreUnavailable("The store rejects this password.")

    async def clock() -> str | None:
        if hangs:
            return "The clock is wrong; correct it."
        raise StoreUnavailable("The store rejects this password.")

    checks = Readiness({"store": store, "clock": clock})
    assert (await checks.run()).keys() == {"store", "clock"}
    hangs = False
    assert await checks.run() == {"clock": "The clock is wrong; correct it."}


async def test_a_run_that_hung_does_not_replace_the_result_of_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A check that waits for a broken connection ends after one on a new connection, which is newer."""
    monkeypatch.setattr(readiness, "CHECK_TIMEOUT_S", 0.05)
    first = asyncio.Event()

    async def store() -> str | None:
        if not first.is_set():
            first.set()
            await asyncio.Event().wait()
        return "The store holds articles that nobody reads."

    checks = Readiness({"store": store})
    hung = asyncio.create_task(checks.run())
    await first.wait()

    problems = dict(await checks.run())
    assert problems == {"store": "The store holds articles that nobody reads."}
    assert await hung == problems
