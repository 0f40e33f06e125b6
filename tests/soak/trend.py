"""Linear trend of a time series with a 95 % confidence interval of its slope."""

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
    """Slope ``per_minute`` +- ``margin`` (95 % interval), and the mean of the series."""

    per_minute: float
    margin: float
    mean: float

    @property
    def min_rise_per_minute(self) -> float:
        """Lower bound of the interval."""
        return self.per_minute - self.margin


def trend(at_s: Sequence[float], values: Sequence[float]) -> Trend:
    """Least squares over the means of ``BLOCKS`` blocks of samples.

    Adjacent samples are correlated, so a fit to single samples would make the interval too narrow. Raises
    ValueError for fewer than two samples per block.
    """
    if len(values) < 2 * BLOCKS:
        raise ValueError(f"{len(values)} samples are too few for a trend; {2 * BLOCKS} are needed.")
    x = np.array([part.mean() for part in np.array_split(np.asarray(at_s, float) / 60, BLOCKS)])
    y = np.array([part.mean() for part in np.array_split(np.asarray(values, float), BLOCKS)])
    centered = x - x.mean()
    spread = float(centered @ centered)
    slope = float(centered @ y) / spread
    residuals = y - y.mean() - slope * centered
    error = math.sqrt(float(residuals @ residuals) / (BLOCKS - 2) / spread)
    return Trend(slope, T_95 * error, float(y.mean()))
