"""Admission control of the HTTP server: load shedding, per-caller limits, memory budget for bodies."""
