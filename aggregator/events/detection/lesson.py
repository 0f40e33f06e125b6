"""Lesson: what a detector learned from an archive, in a form that another one takes over.

``aggregator learn`` replays an archive through a separate detector and hands its lesson to the one of the
service. A lesson can be taken twice, and may overlap with what the service has seen itself: of two counts of
one hour the one with more documents is kept, and a burst that is known is not added again.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from aggregator.events.detection.series import Burst


class Lesson(msgspec.Struct, array_like=True, frozen=True):
    """Counts of hours and bursts.

    hours   (hour since 1970, documents, documents by term)
    bursts  of the memory of series, in order of time
    forget  whether all earlier lessons are forgotten first
    """

    hours: list[tuple[int, int, dict[str, int]]]
    bursts: list[Burst]
    forget: bool = False

    def parts(self) -> Iterator[Lesson]:
        """Yield lessons of one hour each and one with the bursts: a detector takes each in some ms."""
        if self.forget:
            yield Lesson([], [], forget=True)
        for hour in self.hours:
            yield Lesson([hour], [])
        if self.bursts:
            yield Lesson([], self.bursts)
