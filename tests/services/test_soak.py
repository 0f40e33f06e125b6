"""Short form of ``scripts/soak``, and tests of its statistics."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.soak.soak import SLACK, SoakReport, soak
from tests.soak.trend import trend


@pytest.mark.services
async def test_no_connection_file_or_task_leaks() -> None:
    """Also from clients that disconnect and event streams that are closed.

    At this speed the reports of an event arrive within 4 h of the service's clock on any machine.
    """
    report = await soak(0.1, rate=30, speed=20)

    print(report.idle, report.responses)
    assert report.failures() == []
    assert report.responses["listener"] > 0 and report.responses["hung up"] > 0


def test_a_steady_rise_is_measured_exactly() -> None:
    """2 per minute, sampled twice per second."""
    at_s = [i / 2 for i in range(240)]

    found = trend(at_s, [100 + 2 * t / 60 for t in at_s])

    assert found.per_minute == pytest.approx(2)
    assert found.min_rise_per_minute == pytest.approx(2)


def test_noise_around_a_constant_is_no_significant_trend() -> None:
    """In about 95 % of the draws the confidence interval contains 0."""
    at_s = [i / 2 for i in range(400)]
    hits = 0
    for seed in range(100):
        rng = random.Random(seed)
        found = trend(at_s, [100 + rng.gauss(0, 5) for _ in at_s])
        hits += abs(found.per_minute) <= found.margin

    assert 90 <= hits <= 99


def soak_failures(kb_at: Callable[[float], float]) -> list[str]:
    """Failures of a soak of 30 minutes; ``kb_at``: memory of the background process at each minute."""
    idle: dict[str, float] = dict.fromkeys([*SLACK, "events"], 1)
    report = SoakReport(30, at_s=[i / 2 for i in range(3600)], idle=[idle] * 2)
    rng = random.Random(5)
    report.samples = {
        "memory_kb": [250_000.0] * 3600,
        "background_memory_kb": [kb_at(t / 60) + rng.choice((0, 1000)) for t in report.at_s],
    }
    return report.failures()


def test_a_slow_leak_fails_and_a_step_does_not() -> None:
    """0.12 % of 80 MB per minute, in addition to a checkpoint's buffer, fails; one step of 1 MB does not."""
    (found,) = soak_failures(lambda minute: 80_000 + 96 * minute)

    assert found.startswith("background_memory_kb rises by at least")
    assert soak_failures(lambda minute: 80_000 + 1000 * (minute > 20)) == []


def test_too_few_samples_are_an_error() -> None:
    """The message names both numbers."""
    with pytest.raises(ValueError, match="39 samples are too few for a trend; 40 are needed"):
        trend(range(39), range(39))
