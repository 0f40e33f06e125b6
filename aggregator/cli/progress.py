"""Progress bars on standard error, shown on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

THROTTLED_LABEL = "throttled for interactive requests"


def open_bar(shown: bool, **options: Any) -> Any:
    """A tqdm progress bar; without effect if it must not be shown or standard error is not a terminal."""
    from tqdm import tqdm

    return tqdm(dynamic_ncols=True, leave=False, disable=not (shown and sys.stderr.isatty()), **options)


def show_counts(bar: Any, counts: Mapping[str, int], *, throttled: bool) -> None:
    """Show counts on a bar, and whether the work was throttled since the last call."""
    bar.set_description(THROTTLED_LABEL if throttled else None)
    bar.set_postfix(counts)


@contextmanager
def item_progress(unit: str, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """A function that shows a number of items done, of an unknown total."""
    with open_bar(shown, unit=f" {unit}") as bar:
        yield lambda count: bar.update(count - bar.n)
