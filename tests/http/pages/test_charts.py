"""What the drawings consist of."""

from hypothesis import given
from hypothesis import strategies as st

from aggregator.http.pages.charts import BIN_MS, MAX_BINS, bars, count_per_bin, sparkline, timeline_chart

HOUR_MS = 3_600_000
T = 500_000 * HOUR_MS
timelines = st.dictionaries(st.integers(0, 5000), st.integers(1, 500), max_size=30).map(
    lambda found: [(T + slot * BIN_MS, n) for slot, n in sorted(found.items())]
)


def test_slots_fill_what_was_quiet():
    """Quiet slots count 0, what lies outside is left out."""
    timeline = [(T - BIN_MS, 9), (T, 3), (T + 2 * BIN_MS, 1)]

    assert count_per_bin(timeline, T, T + 2 * BIN_MS + 5, BIN_MS) == [
        (T, 3),
        (T + BIN_MS, 0),
        (T + 2 * BIN_MS, 1),
    ]


def test_the_largest_bar_is_as_high_as_the_box():
    """Others in proportion, each within its step; the smallest can still be seen."""
    made = bars([(T, 4), (T + 1, 2), (T + 2, 0), (T + 3, 1)], 40, 20)

    assert [bar.height for bar in made] == [20, 10, 0, 5]
    assert [bar.x for bar in made] == [0, 10, 20, 30]
    assert bars([(T, 1000), (T + 1, 1)], 10, 20)[1].height == 1.5
    assert bars([], 10, 20) == ()


def test_a_sparkline_shows_the_last_four_hours():
    """24 steps of ten minutes, quiet ones drawn as nothing."""
    drawn = sparkline([(T - 4 * HOUR_MS, 7), (T - BIN_MS, 2), (T, 1)], T + 5, 144, 30)

    assert [(bar.x, bar.value) for bar in drawn] == [(132.0, 2), (138.0, 1)]


def test_axes_have_round_marks():
    """Times at full half hours, counts at 1, 2 or 5 times a power of ten."""
    chart = timeline_chart([(T, 13)], T - HOUR_MS, T + 2 * HOUR_MS, 900, 100)

    assert {tick.at_ms % (HOUR_MS // 2) for tick in chart.time_ticks} == {0}
    assert [tick.value for tick in chart.count_ticks] == [5, 10]
    assert chart.x_of(T - HOUR_MS) == 0
    assert chart.x_of(T - 2 * HOUR_MS) is None


@given(timelines)
def test_any_timeline_fits_its_box(timeline):
    """However long or empty: everything inside, nothing lost, few bars, few marks."""
    end_ms = max((at for at, _ in timeline), default=T)
    chart = timeline_chart(timeline, T, end_ms, 900, 100)

    assert sum(bar.value for bar in chart.bars) == sum(n for _, n in timeline)
    assert len(chart.bars) <= MAX_BINS
    assert len(chart.count_ticks) <= 4
    assert len(chart.time_ticks) <= 9
    for bar in chart.bars:
        assert bar.x >= 0
        assert bar.x + bar.width <= 900.01
        assert bar.y >= 0
        assert bar.y + bar.height <= 100.01
