"""Exit codes of all processes and commands."""

from __future__ import annotations

from aggregator import errors

EXIT_OK = 0
EXIT_PARTIAL_FAILURE = 1  # some input lines were invalid, or nothing is stored under an id
EXIT_CONFIGURATION_ERROR = 2  # usage, settings, files or models that cannot work
EXIT_UNAVAILABLE = 3  # the store or the server is unavailable
EXIT_INTERRUPTED = 130


def exit_code(error: errors.AggregatorError) -> int:
    """The exit code for an error."""
    if isinstance(error, errors.StoreUnavailable):
        return EXIT_UNAVAILABLE
    return EXIT_PARTIAL_FAILURE if isinstance(error, errors.NotFound) else EXIT_CONFIGURATION_ERROR
