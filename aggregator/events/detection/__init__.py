"""Burst detection of news stories: a pure state machine without clock, I/O or randomness.

``BurstDetector(rule)`` takes articles with ``observe(item, now_ms)`` and time with ``tick(now_ms)``;
``drain_changes()`` returns the events that fired or changed. It runs live (``events/consumer.py``) and
offline (``aggregator_archive/replay.py``). Read ``detector.py`` first.

**What counts as an item** of a cluster: an article that is no duplicate, once per id; and a duplicate of a
source that has no item of the cluster in the window (else it is a sighting; articles without a source name
share one unnamed source). It counts at its publication time (``items.py``).

**States**: *emerging* (not an event yet) -> *breaking* (fired) -> *fading* (at most half its peak in the
window) -> *closed* (nothing in the window). One that exceeds the rule's number and half its peak is breaking
again, without a second alert, and so is one whose story has a development (``developments.py``).
"""
