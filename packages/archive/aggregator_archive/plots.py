"""Bar charts as inline SVG, so that a report is one self-contained file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10

WIDTH_PX, HEIGHT_PX, MARGIN_PX = 640, 220, 44


def bar_chart(title: str, names: Sequence[str], values: Sequence[float], *, logarithmic: bool = False) -> str:
    """One vertical bar per name with its value above; ``logarithmic`` for counts of different magnitudes."""
    heights = [log10(value + 1) if logarithmic else value for value in values]
    top = max(heights, default=0) or 1
    step = (WIDTH_PX - 2 * MARGIN_PX) / max(1, len(names))
    elements = []
    for at, (name, value, height) in enumerate(zip(names, values, heights, strict=True)):
        x, bar_height = MARGIN_PX + at * step, (HEIGHT_PX - 2 * MARGIN_PX) * height / top
        y = HEIGHT_PX - MARGIN_PX - bar_height
        middle = x + step / 2
        elements.append(
            f'<rect x="{x + step * 0.1:.1f}" y="{y:.1f}" width="{step * 0.8:.1f}" height="{bar_height:.1f}"/>'
        )
        if len(names) <= 16 or at % (len(names) // 12) == 0:
            elements.append(f'<text x="{middle:.1f}" y="{HEIGHT_PX - MARGIN_PX + 14}">{escape(name)}</text>')
        if len(names) <= 16:
            elements.append(f'<text x="{middle:.1f}" y="{y - 4:.1f}">{_abbreviate(value)}</text>')
    return _figure_with_axis(title + (" (logarithmic)" if logarithmic else ""), "".join(elements))


def _figure_with_axis(title: str, inner: str) -> str:
    base = HEIGHT_PX - MARGIN_PX
    axis = f'<line x1="{MARGIN_PX}" y1="{base}" x2="{WIDTH_PX - MARGIN_PX}" y2="{base}"/>'
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {WIDTH_PX} {HEIGHT_PX}" '
        f'role="img" style="max-width:{WIDTH_PX}px" aria-label="{escape(title)}">{axis}{inner}</svg></figure>'
    )


def _abbreviate(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= limit:
            return f"{value / (limit if unit != 'k' else 1e3):.3g}{unit}"
    return f"{value:g}"
