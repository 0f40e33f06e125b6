"""The command line: which command runs with which options, and what its exit code says.

Nothing heavy is imported before a command is chosen, so ``--help`` and a mistyped option answer at once.

Exit codes: 0 all well · 1 some input lines were bad, or nothing is stored under an id · 2 usage, settings,
files or models that cannot work · 3 the store or the server is unavailable · 130 interrupted.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence

from aggregator import errors, settings
from aggregator.cli import options
from aggregator.concurrency.process_priority import lower_priority
from aggregator.runtime import logging as logs
from aggregator.runtime.exit_codes import EXIT_INTERRUPTED, EXIT_OK, exit_code

log = logging.getLogger("aggregator")

# They take what others on this machine leave: a service beside them answers people who wait.
BULK_COMMANDS, BULK_NICE_INCREMENT = ("ingest", "check", "reindex"), 10


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code and never shows a traceback for an error of ours."""
    args = options.build_parser().parse_args(argv)
    chosen: settings.Settings | None = None
    if argv is None and getattr(args, "command", "") in BULK_COMMANDS:
        lower_priority(BULK_NICE_INCREMENT)
    try:
        chosen = settings.load(overrides=options.setting_overrides(args))
        logs.configure_logging(chosen.log_level, chosen.log_format)
        module, _, function = args.command_path.partition(":")
        return int(getattr(importlib.import_module(module), function)(args, chosen))
    except errors.AggregatorError as error:
        return _report_error(error, as_log_records=chosen is not None and chosen.log_format == "json")
    except KeyboardInterrupt:
        print("aggregator: interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK


def _report_error(error: errors.AggregatorError, *, as_log_records: bool) -> int:
    """One line per problem on standard error, a log record where those are for programs, and the exit code."""
    problems = error.problems if isinstance(error, errors.ConfigurationError) else [str(error)]
    for problem in problems:
        if as_log_records:
            log.error("%s", problem)
        else:
            print(f"aggregator: {problem}", file=sys.stderr)
    return exit_code(error)
