"""Which of what a look-up found is examined? The nearest, those that share most wording, a few that share little."""

from __future__ import annotations

import numpy as np

from aggregator.index.lookup import MAX_CANDIDATES, MAX_SINGLE_KEY_MATCHES, LookupResult


def found(near: dict[int, int], alike: dict[int, int]) -> LookupResult:
    """Numbers with their distances, and with the bands that they share."""
    return LookupResult(
        *(
            (np.array(sorted(of), np.uint64), np.array([of[n] for n in sorted(of)], np.int64))
            for of in (near, alike)
        )
    )


def test_of_those_that_share_a_single_band_the_latest_are_examined() -> None:
    """A turn of phrase is in ever more articles; a copy comes soon after what it repeats."""
    singles = dict.fromkeys(range(1000, 1200), 1)

    assert found({}, singles).ranked_numbers == list(range(1199, 1199 - MAX_SINGLE_KEY_MATCHES, -1))


def test_those_that_share_more_come_first_and_are_not_crowded_out() -> None:
    """Most bands first, of equals the earlier one, then the single ones."""
    alike = {7: 2, 5: 2, 9: 8} | dict.fromkeys(range(1000, 1200), 1)
    looked_at = found({}, alike).ranked_numbers

    assert looked_at[:4] == [9, 5, 7, 1199]
    assert len(looked_at) == 3 + MAX_SINGLE_KEY_MATCHES


def test_no_more_than_all_places() -> None:
    """Near ones and those of shared wording turn and turn about."""
    near, alike = dict.fromkeys(range(100), 3), dict.fromkeys(range(500, 600), 4)
    looked_at = found(near, alike).ranked_numbers

    assert len(looked_at) == MAX_CANDIDATES
    assert looked_at[:4] == [0, 500, 1, 501]
