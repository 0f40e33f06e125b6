"""Scheduling primitives for one process: priority gate, fair semaphore, process priority, yielding."""
