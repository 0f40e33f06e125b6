"""Burst detection of news stories: a pure state machine without clock, I/O or randomness.

``BurstDetector(rule)`` takes articles with ``observe(item, now_ms)`` and time with ``tick(now_ms)``;
``drain_changes()`` returns the events that fired or changed. It runs live (``events/consumer.py``) and
offline (``aggregator_archive/replay.py``). Read ``detector.py`` first.

**The rule** (15 items, 4 h): a cluster fires when *more than* 15 of its items are within 4 hours (one exactly
4 h old still counts) and their number clearly exceeds the expectation for this hour of the week and the
present volume of the stream (``expectation.py``). Clusters whose key terms burst in the same documents are
merged before they are counted (``merging.py``).

**What counts as an item** of a cluster:

* an article that is not a duplicate: once per article id (an update replaces its item);
* a duplicate from a source that has no item of the cluster in the window; from another it is a sighting,
  counted separately (all articles without a source name share one unnamed source);
* an article counts at its publication time; without one, or with one after its arrival, at its arrival;
* a late article, from over one window before the newest item, and one declared as backfill: teaches what was
  usual at its time, and joins an event, without being counted; a backfill without a date is ignored;
* more undated articles in a minute than usual in a window (``items.py``): a bulk load, ignored.

**Time** only moves forward: an item slightly behind the newest is inserted into the window in order of time.
A ``tick`` over one window behind the newest item means that a clock was wrong: what was learned at the wrong
time is forgotten, and the detector continues from the time of the tick.

**States**: *emerging* (not an event yet) -> *breaking* (fired) -> *fading* (at most half its peak in the
window) -> *closed* (nothing in the window, for good). A fading event that exceeds the rule's number and half
its peak is breaking again, under the same id and without a second alert. When two events converge, the one
detected first survives; the other is closed and names the survivor.
"""
