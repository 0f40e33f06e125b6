"""The short form of ``scripts/soak``: a few seconds of everything, and nothing stays open. And its arithmetic."""

import random

import pytest
from soak.endure import endure
from soak.trend import trend


@pytest.mark.services
@pytest.mark.timeout(240)
async def test_no_connection_file_or_task_is_left_behind() -> None:
    """Also of callers that hang up and listeners that leave."""
    account = await endure(0.1, rate=30)

    print(account.idle, account.answers)
    assert account.failures() == []
    assert account.answers["listener"] > 0 and account.answers["hung up"] > 0


def test_a_steady_rise_is_measured_exactly() -> None:
    """Two a minute, sampled twice a second."""
    at_s = [i / 2 for i in range(240)]

    found = trend(at_s, [100 + 2 * t / 60 for t in at_s])

    assert found.per_minute == pytest.approx(2)
    assert found.surely_rises_by == pytest.approx(2)


def test_noise_around_a_level_does_not_surely_rise_or_fall() -> None:
    """In about nineteen of twenty draws the interval holds zero."""
    at_s = [i / 2 for i in range(400)]
    hits = 0
    for seed in range(100):
        rng = random.Random(seed)
        found = trend(at_s, [100 + rng.gauss(0, 5) for _ in at_s])
        hits += abs(found.per_minute) <= found.margin

    assert 90 <= hits <= 99


def test_too_few_samples_are_refused() -> None:
    """Both numbers stand in the sentence."""
    with pytest.raises(ValueError, match="39 samples are too few for a trend; 40 are needed"):
        trend(range(39), range(39))
