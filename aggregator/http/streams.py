"""How many streams of events may be open here, and how many of them one caller's?

A place is taken before anything is waited for, so that many who come at the same moment are not all let in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from aggregator.event_stream import MAX_LISTENERS
from aggregator.http.errors import TooManyStreams


class Streams:
    """``places`` in this process, of which one key gets half; where nobody is asked for a key all are one caller."""

    def __init__(self, places: int = MAX_LISTENERS) -> None:
        self._places = places
        self._of: Counter[str] = Counter()

    @contextmanager
    def place(self, caller: str) -> Iterator[None]:
        """Held while a stream is open. Raises TooManyStreams."""
        if self._of.total() >= self._places:
            raise TooManyStreams("No more streams can be opened here just now; try again in a few seconds.")
        if caller and self._of[caller] >= self._places // 2:
            raise TooManyStreams(
                f"This key has {self._of[caller]} streams open here already; close one, or listen once and pass on."
            )
        self._of[caller] += 1
        try:
            yield
        finally:
            self._of[caller] -= 1
            if not self._of[caller]:
                del self._of[caller]
