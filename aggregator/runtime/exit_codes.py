"""Exit codes of all processes and commands."""

from __future__ import annotations

from aggregator import errors

OK = 0
SOME_BAD = 1  # some input lines were invalid, or nothing is stored under an id
UNUSABLE = 2  # usage, settings, files or models that cannot work
UNAVAILABLE = 3  # the store or the server is unavailable
INTERRUPTED = 130


def exit_code(error: errors.AggregatorError) -> int:
    """The exit code for an error."""
    if isinstance(error, errors.StoreUnavailable):
        return UNAVAILABLE
    return SOME_BAD if isinstance(error, errors.NotFound) else UNUSABLE
