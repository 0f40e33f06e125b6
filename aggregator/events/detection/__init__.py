"""Is a story breaking? A pure state machine: no clock, no I/O, no randomness.

``BurstDetector(rule)`` is told of every article with ``observe(item, now_ms)`` and of passing time with
``tick(now_ms)``; ``changes()`` hands over the events that fired or changed. The same machine runs live
(``events.py``) and offline (``replay.py``). Read ``detector.py`` first.

**The rule on a timeline** (15 items, 4 h). A story fires when *more than* 15 of its items lie within
4 hours, and they are clearly more than usual at this hour of the week and at the present volume of the
stream (``routine.py``). Stories that burst together are counted together (``together.py``), unless a single
common word is all that they share (``witnesses.py``)::

    08:00  1st item                    1 item in the window
     ...
    11:40  15th item                  15 items: "more than 15" is not reached
    12:00  16th item                  16 items, the oldest exactly 4 h old: it counts -> fires
    12:00:00.001 16th item instead    the first is 4 h and 1 ms old: it left, 15 items, silence

An item exactly one window old is still within it; one millisecond later it is not.

**What counts as an item** of a story:

* a text of its own, whoever publishes it: counts, once per article id (an update replaces its item);
* a copy (verdict "duplicate") from a source the story does not have in the window: counts;
* a copy from a source it has (an article without a source copies "the" unnamed source): a sighting,
  counted apart;
* an article published over one window before it arrived, or that arrives with a time over one window
  behind the newest: joins, but never fires;
* an article published after it arrived counts at its arrival; one without a date, at its arrival.

**Time** only moves forward: an item slightly behind the newest takes its own place in the window. A
``tick`` over one window behind the newest item means that a clock was wrong: what was learned at the wrong
time is forgotten and the machine goes on from the tick's time.

**States**: *emerging* (a story that has not fired, not an event yet) -> *breaking* (fired) -> *fading*
(half its peak or less in the window) -> *closed* (nothing in the window). A fading event that grows over
the rule's number again is breaking again, under the same id and without a second alert. A closed event
never opens again. Of two events that converge the one detected first goes on; the other is closed and
says what it became.
"""

from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import (
    BurstRule,
    ChangeKind,
    EditorAction,
    Event,
    EventChange,
    EventStatus,
)
from aggregator.events.detection.overrides import EditorOverrides, Mute

__all__ = [
    "BurstDetector",
    "BurstRule",
    "ChangeKind",
    "EditorAction",
    "EditorOverrides",
    "Event",
    "EventChange",
    "EventStatus",
    "Mute",
]
