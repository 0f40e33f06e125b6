"""Totals over all processes from the Prometheus exposition."""

from __future__ import annotations

from aggregator.http.metrics.status import Totals

EXPOSITION = b"""\
# HELP a_total Things.
# TYPE a_total counter
a_total{code="bad_input",worker="0"} 3.0
a_total{code="bad_input",worker="1"} 4.0
a_total{code="say \\"no\\", {x}",worker="1"} 1.0
a_total{code="none",worker="1"} 0.0
b 2.5e+06
process_start_time_seconds{worker="0"} 1.7e+09
process_start_time_seconds{worker="1"} 1.6e+09
"""


def test_series_are_summed_over_processes() -> None:
    """By label or in total; zeros are left out."""
    totals = Totals(EXPOSITION)

    assert totals.by_label("a_total", "code") == {"bad_input": 7, 'say \\"no\\", {x}': 1}
    assert (totals.sum("a_total"), totals.sum("b")) == (8, 2_500_000)
    assert totals.least("process_start_time_seconds") == 1.6e9


def test_an_unknown_series_is_zero() -> None:
    """A process without background services does not export theirs."""
    totals = Totals(b"")

    assert (totals.sum("x"), totals.by_label("x", "code"), totals.least("x")) == (0, {}, None)
