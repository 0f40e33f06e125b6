"""Burst detection of news stories: a pure state machine without clock, I/O or randomness.

``BurstDetector(rule)`` takes articles with ``observe(item, now_ms)`` and time with ``tick(now_ms)``;
``drain_changes()`` returns the events that fired or changed. It runs live (``events/consumer.py``) and
offline (``aggregator_archive/replay.py``). Read ``detector.py`` first.

**The rule** (15 items, 4 h): a cluster fires when *more than* 15 of its items are within 4 hours (one exactly
4 h old still counts) and clearly exceed the expectation for this hour of the week and volume of the stream.

**What counts as an item** of a cluster:

* an article that is not a duplicate: once per article id (an update replaces its item);
* a duplicate from a source that has no item of the cluster in the window; from another it is a sighting,
  counted separately (all articles without a source name share one unnamed source);
* at its publication time, or else at its arrival; one over one window late, or declared as backfill, joins
  events uncounted, and teaches what was usual at its time (``items.py``).

**Time** only moves forward. A ``tick`` over one window behind the newest item means that a clock was wrong:
what was learned at the wrong time is forgotten, and the detector continues from the time of the tick.

**States**: *emerging* (not an event yet) -> *breaking* (fired) -> *fading* (at most half its peak in the
window) -> *closed* (nothing in the window, for good). A fading event that exceeds the rule's number and half
its peak is breaking again, under the same id and without a second alert. Of two events that converge, the one
detected first survives; the other is closed and names the survivor.
"""
