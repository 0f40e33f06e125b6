"""Load control: interactive requests take precedence over bulk work, in this process and across processes."""

from __future__ import annotations

from dataclasses import dataclass

from aggregator.concurrency.scheduling import PriorityGate
from aggregator.ingest.activity import ActivityBeacon
from aggregator.ingest.throttle import BulkThrottle
from aggregator.store.base import Store


@dataclass(frozen=True, slots=True)
class LoadControl:
    """The three mechanisms, wired to each other.

    gate      event loop of this process: steps of bulk work wait while an interactive article is committed
    activity  beacon in the store: interactive articles arrive in some process
    throttle  bulk work pauses between slices while they do
    """

    gate: PriorityGate
    activity: ActivityBeacon
    throttle: BulkThrottle

    @classmethod
    def create(cls, store: Store) -> LoadControl:
        """The mechanisms of one process over ``store``."""
        gate, activity = PriorityGate(), ActivityBeacon(store)
        return cls(gate, activity, BulkThrottle(activity, gate.yield_control))
