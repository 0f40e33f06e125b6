"""Progress bars on standard error, shown on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar

T = TypeVar("T")
THROTTLED_LABEL = "throttled for interactive requests"


def open_bar(shown: bool, **options: Any) -> Any:
    """A tqdm progress bar; without effect if it must not be shown or standard error is not a terminal."""
    from tqdm import tqdm

    is_shown = shown and sys.stderr.isatty()
    return tqdm(dynamic_ncols=True, leave=False, disable=not is_shown, **options)


class _ProgressBar:
    def __init__(self, shown: bool, **options: Any) -> None:
        self._bar = open_bar(shown, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()


class ByteProgress(_ProgressBar):
    """Bytes of input read so far, of ``total_bytes`` (None: unknown), with counts."""

    def __init__(self, total_bytes: int | None, *, shown: bool = True) -> None:
        super().__init__(shown, total=total_bytes, unit="B", unit_scale=True)
        self._throttled_s = 0.0

    def advance(self, read_bytes: int) -> None:
        """Add bytes that were read."""
        self._bar.update(read_bytes)

    def show_counts(self, counts: Mapping[str, int], throttled_s: float = 0.0) -> None:
        """Show counts, and whether ``throttled_s`` has grown since the last call."""
        self._bar.set_description(THROTTLED_LABEL if throttled_s > self._throttled_s else None)
        self._bar.set_postfix(counts)
        self._throttled_s = throttled_s


class ItemProgress(_ProgressBar):
    """Number of items done, of an unknown total."""

    def __init__(self, unit: str, *, shown: bool = True) -> None:
        self.count = 0
        super().__init__(shown, unit=f" {unit}")

    def set_count(self, count: int) -> None:
        """Set the number of items done."""
        self._bar.update(count - self.count)
        self.count = count

    def track(self, items: Iterable[T]) -> Iterator[T]:
        """``items``, counted as they are read."""
        for item in items:
            self.set_count(self.count + 1)
            yield item
