"""Cost as a function of the number of stored articles: ``a + b log N + c N``. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

TERMS = ("constant", "logarithm", "linear")


def fit(sizes: Sequence[float], values: Sequence[float]) -> npt.NDArray[np.float64]:
    """Non-negative coefficients of as many terms as there are sizes, at most three; a cost never falls.

    Least squares of relative errors; of the subsets of terms the best one whose coefficients of ``log N`` and
    ``N`` are not negative.
    """
    design = _design(sizes)
    weights = 1 / np.maximum(np.abs(np.array(values)), 1e-9)
    best, best_error = np.array([np.mean(values), 0.0, 0.0]), np.inf
    for terms in ([0], [0, 1], [0, 2], [0, 1, 2]):
        if len(terms) > len(sizes):
            continue
        found, *_ = np.linalg.lstsq(design[:, terms] * weights[:, None], values * weights, rcond=None)
        if (found[1:] < 0).any():
            continue
        coefficients = np.zeros(len(TERMS))
        coefficients[terms] = found
        error = float((((design @ coefficients - values) * weights) ** 2).sum())
        if error < best_error - 1e-12:
            best, best_error = coefficients, error
    return best


def predict(coefficients: npt.NDArray[np.float64], size: float) -> float:
    """The cost at a size."""
    return float((_design([size]) @ coefficients)[0])


def left_out_errors(sizes: Sequence[float], values: Sequence[float]) -> list[float]:
    """Relative error of the prediction of each size by a fit to the others."""
    errors = []
    for i, (size, value) in enumerate(zip(sizes, values, strict=True)):
        others = [j for j in range(len(sizes)) if j != i]
        fitted = fit([sizes[j] for j in others], [values[j] for j in others])
        errors.append(predict(fitted, size) / value - 1 if value else 0.0)
    return errors


def _design(sizes: Sequence[float]) -> npt.NDArray[np.float64]:
    n = np.array(sizes, float)
    return np.stack([np.ones(len(n)), np.log10(n), n / 1e6], axis=1)
