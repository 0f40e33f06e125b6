"""Progress bars on standard error, shown on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Self

THROTTLED_LABEL = "throttled for interactive requests"


def open_bar(shown: bool, **options: Any) -> Any:
    """A tqdm progress bar; without effect if it must not be shown or standard error is not a terminal."""
    from tqdm import tqdm

    is_shown = shown and sys.stderr.isatty()
    return tqdm(dynamic_ncols=True, leave=False, disable=not is_shown, **options)


def show_counts(bar: Any, counts: Mapping[str, int], *, throttled: bool) -> None:
    """Show counts on a bar, and whether the work was throttled since the last call."""
    bar.set_description(THROTTLED_LABEL if throttled else None)
    bar.set_postfix(counts)


class ItemProgress:
    """Number of items done, of an unknown total."""

    def __init__(self, unit: str, *, shown: bool = True) -> None:
        self.count = 0
        self._bar = open_bar(shown, unit=f" {unit}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def set_count(self, count: int) -> None:
        """Set the number of items done."""
        self._bar.update(count - self.count)
        self.count = count
