"""Admission control of the HTTP server: load shedding, per-caller limits, body memory."""
