"""Progress bars on standard error, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")
THROTTLED_LABEL = "giving way to single posts"


class _ProgressBar:
    """A progress bar on a terminal, nothing anywhere else."""

    def __init__(self, shown: bool, **options: Any) -> None:
        self._bar: Any = None
        if shown and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(dynamic_ncols=True, leave=False, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


class ByteProgress(_ProgressBar):
    """Bytes of input read so far, of ``total_bytes`` (None: unknown), with counts beside it."""

    def __init__(self, total_bytes: int | None, *, shown: bool = True) -> None:
        super().__init__(shown, total=total_bytes, unit="B", unit_scale=True)
        self._throttled_s = 0.0

    def advance(self, read_bytes: int) -> None:
        """So many bytes more were read."""
        if self._bar is not None:
            self._bar.update(read_bytes)

    def show_counts(self, counts: Mapping[str, int], throttled_s: float = 0.0) -> None:
        """What has come of them so far, and whether others were let go first since this was last shown."""
        if self._bar is not None:
            self._bar.set_description(THROTTLED_LABEL if throttled_s > self._throttled_s else None)
            self._bar.set_postfix(counts)
            self._throttled_s = throttled_s


class ItemProgress(_ProgressBar):
    """Things done so far, when nobody knows of how many."""

    def __init__(self, unit: str, *, shown: bool = True) -> None:
        self.count = 0
        super().__init__(shown, unit=f" {unit}")

    def set_count(self, count: int) -> None:
        """``count`` things are done."""
        if self._bar is not None:
            self._bar.update(count - self.count)
        self.count = count

    def track(self, items: Iterable[T]) -> Iterator[T]:
        """``things``, counted as they are taken."""
        for thing in items:
            self.set_count(self.count + 1)
            yield thing
