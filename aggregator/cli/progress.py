"""Progress bars on standard error, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")
GIVING_WAY = "giving way to single posts"


class _Bar:
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


class Progress(_Bar):
    """Bytes of input read so far, of ``total_bytes`` (None: unknown), with counts beside it."""

    def __init__(self, total_bytes: int | None, *, shown: bool = True) -> None:
        super().__init__(shown, total=total_bytes, unit="B", unit_scale=True)
        self._gave_way_s = 0.0

    def advance(self, read_bytes: int) -> None:
        """So many bytes more were read."""
        if self._bar is not None:
            self._bar.update(read_bytes)

    def show(self, counts: Mapping[str, int], gave_way_s: float = 0.0) -> None:
        """What has come of them so far, and whether others were let go first since this was last shown."""
        if self._bar is not None:
            self._bar.set_description(GIVING_WAY if gave_way_s > self._gave_way_s else None)
            self._bar.set_postfix(counts)
            self._gave_way_s = gave_way_s


class Counted(_Bar):
    """Things done so far, when nobody knows of how many."""

    def __init__(self, unit: str, *, shown: bool = True) -> None:
        self.count = 0
        super().__init__(shown, unit=f" {unit}")

    def reach(self, count: int) -> None:
        """``count`` things are done."""
        if self._bar is not None:
            self._bar.update(count - self.count)
        self.count = count

    def over(self, things: Iterable[T]) -> Iterator[T]:
        """``things``, counted as they are taken."""
        for thing in things:
            self.reach(self.count + 1)
            yield thing
