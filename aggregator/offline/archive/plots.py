"""Bars and lines as inline SVG: a report is one file that opens anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10

WIDTH, HEIGHT, MARGIN = 640, 220, 44
NAMES, LINE = 230, 16  # of ranked lines: where bars begin, and how far lines are apart


def bars(title: str, names: Sequence[str], values: Sequence[float], *, logarithmic: bool = False) -> str:
    """One bar per name, its value above it; ``logarithmic`` for counts that span magnitudes."""
    heights = [log10(value + 1) if logarithmic else value for value in values]
    top = max(heights, default=0) or 1
    step = (WIDTH - 2 * MARGIN) / max(1, len(names))
    drawn = []
    for at, (name, value, height) in enumerate(zip(names, values, heights, strict=True)):
        x, tall = MARGIN + at * step, (HEIGHT - 2 * MARGIN) * height / top
        y = HEIGHT - MARGIN - tall
        middle = x + step / 2
        drawn.append(
            f'<rect x="{x + step * 0.1:.1f}" y="{y:.1f}" width="{step * 0.8:.1f}" height="{tall:.1f}"/>'
        )
        if len(names) <= 16 or at % (len(names) // 12) == 0:
            drawn.append(f'<text x="{middle:.1f}" y="{HEIGHT - MARGIN + 14}">{escape(name)}</text>')
        if len(names) <= 16:
            drawn.append(f'<text x="{middle:.1f}" y="{y - 4:.1f}">{_short(value)}</text>')
    return _figure(title + (" (logarithmic)" if logarithmic else ""), "".join(drawn))


def ranked(title: str, names: Sequence[str], values: Sequence[float]) -> str:
    """One line per name, best first: long names and shares of 1."""
    drawn = []
    for at, (name, value) in enumerate(zip(names, values, strict=True)):
        y, wide = 4 + at * LINE, (WIDTH - NAMES - MARGIN) * value
        drawn.append(f'<text x="{NAMES - 6}" y="{y + 11}" style="text-anchor:end">{escape(name)}</text>')
        drawn.append(f'<rect x="{NAMES}" y="{y}" width="{wide:.1f}" height="{LINE - 4}"/>')
        drawn.append(
            f'<text x="{NAMES + wide + 4:.1f}" y="{y + 11}" style="text-anchor:start">{value:.3f}</text>'
        )
    return _drawn(title, "".join(drawn), len(names) * LINE + 8)


def _figure(title: str, inner: str) -> str:
    base = HEIGHT - MARGIN
    return _drawn(
        title, f'<line x1="{MARGIN}" y1="{base}" x2="{WIDTH - MARGIN}" y2="{base}"/>{inner}', HEIGHT
    )


def _drawn(title: str, inner: str, height: int) -> str:
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}">{inner}</svg></figure>'
    )


def _short(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= limit:
            return f"{value / (limit if unit != 'k' else 1e3):.3g}{unit}"
    return f"{value:g}"
