"""Does a series rise? A straight line through it, and how sure its slope is. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BLOCKS = 20
# Student's t at 97.5 % for BLOCKS - 2 degrees of freedom.
T_95 = 2.101


@dataclass(frozen=True, slots=True)
class Trend:
    """``per_minute`` +- ``margin`` is the slope with its 95 % interval; ``mean`` the level."""

    per_minute: float
    margin: float
    mean: float

    @property
    def surely_rises_by(self) -> float:
        """The least rise per minute that the interval allows."""
        return self.per_minute - self.margin


def trend(at_s: Sequence[float], values: Sequence[float]) -> Trend:
    """Least squares over the means of twenty blocks: neighbours are alike, so single samples would feign certainty.

    Needs at least two samples per block; raises ValueError with fewer.
    """
    if len(values) < 2 * BLOCKS:
        raise ValueError(f"{len(values)} samples are too few for a trend; {2 * BLOCKS} are needed.")
    x = np.array([part.mean() for part in np.array_split(np.asarray(at_s, float) / 60, BLOCKS)])
    y = np.array([part.mean() for part in np.array_split(np.asarray(values, float), BLOCKS)])
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = float(centred @ y) / spread
    rest = y - y.mean() - slope * centred
    error = math.sqrt(float(rest @ rest) / (BLOCKS - 2) / spread)
    return Trend(slope, T_95 * error, float(y.mean()))
