"""Processes of a running service: supervisor, web processes, background process, start-up and logging."""
