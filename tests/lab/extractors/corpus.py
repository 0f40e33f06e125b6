"""Small corpora for tests of feature extractors."""

from __future__ import annotations

from tests.cli.helpers import ROWS

TEXTS = [row["text"] for row in ROWS.values() if row["text"].isascii()]


def mixed_texts(count: int) -> list[str]:
    """Texts of two demonstration articles each, cut differently; all distinct for up to 150."""
    return [" ".join([*TEXTS[n % 40].split()[n % 7 :], *TEXTS[(n * 7) % 41].split()]) for n in range(count)]
