"""Command line: parses the options, runs one command and returns its exit code (``errors.EXIT_...``).

No large package is imported before a command is chosen, so ``--help`` and a mistyped option answer quickly.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence

from aggregator import config_file, errors, settings
from aggregator.cli import options
from aggregator.errors import EXIT_CONFIGURATION_ERROR, EXIT_INTERRUPTED, EXIT_OK, exit_code
from aggregator.runtime.logging import configure_logging

log = logging.getLogger("aggregator")

# Run at a lower priority: a service on the same machine must answer its clients in time.
BULK_COMMANDS, BULK_NICE_INCREMENT = ("ingest", "check", "migrate"), 10


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. An AggregatorError is printed without a traceback."""
    parser = options.build_parser()
    if not (given := list(sys.argv[1:] if argv is None else argv)):
        print(options.starting_commands(parser), file=sys.stderr)
        return EXIT_CONFIGURATION_ERROR
    args = parser.parse_args(given)
    loaded: settings.Settings | None = None
    log_format = "text"  # of all commands but the service: a person reads them
    if argv is None and getattr(args, "command", "") in BULK_COMMANDS:
        from aggregator.concurrency import lower_priority  # imports asyncio, which --help need not

        lower_priority(BULK_NICE_INCREMENT)
    try:
        path = config_file.locate(getattr(args, "config", None) or settings.path_variable())
        args.config_file = config_file.read(path) if path is not None else None
        loaded = settings.load(overrides=options.setting_overrides(args), config=args.config_file)
        log_format = loaded.log_format if args.command == "serve" else "text"
        configure_logging(loaded.log_level, log_format)
        if any(getattr(args, name, False) for name in ("opens_store", "accept_store", "accept_clock")):
            _require_store_of_service(args, loaded)
        module, _, function = args.command_path.partition(":")
        return int(getattr(importlib.import_module(module), function)(args, loaded))
    except errors.AggregatorError as error:
        return _report_error(error, loaded, log_format)
    except KeyboardInterrupt:
        print("aggregator: interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of standard output has closed it (`aggregator ... | head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK


def _require_store_of_service(args: argparse.Namespace, loaded: settings.Settings) -> None:
    """Raise ConfigurationError for a store that the running service lacks, unless an option names it."""
    import asyncio  # which --help need not

    from aggregator.runtime.addresses import other_store

    if loaded.in_memory:
        raise errors.ConfigurationError("store: one in memory ends here; name the store of the service.")
    if args.data_dir is not None and args.store is None and loaded.store_url and args.command != "doctor":
        raise errors.ConfigurationError(
            "data_dir: store_url is set, too; say which one is meant with --store embedded or --store URL."
        )
    if problem := asyncio.run(other_store(loaded)):
        if args.store is None and args.data_dir is None:
            meant = "If this store is meant, name it by --store or --data-dir."
            raise errors.ConfigurationError(f"store: {problem} {meant}")
        if args.command != "restore":  # which a running service's store refuses: another one is meant
            print(f"note: {problem}", file=sys.stderr)


def _report_error(error: errors.AggregatorError, loaded: settings.Settings | None, log_format: str) -> int:
    """Print one line per problem on standard error, or log it in the JSON format; returns the exit code."""
    from aggregator.runtime.addresses import with_options  # imports asyncio

    problems = error.problems if isinstance(error, errors.ConfigurationError) else [str(error)]
    for problem in problems:
        text = problem if loaded is None else with_options(problem, loaded)
        if log_format == "json":
            log.error("%s", text)
        else:
            print(f"aggregator: {text}", file=sys.stderr)
    return exit_code(error)
