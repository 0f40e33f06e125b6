"""pytest plugin of scripts/test that lists every skipped test at the end of a run.

With ``--fail-on-skip`` (used by .ci/run) a skip fails the run, except that of a test marked ``data`` while
the development data is absent.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--fail-on-skip``."""
    parser.addoption(
        "--fail-on-skip",
        action="store_true",
        help="a skip is a failure, unless the test is marked data and the development data is absent",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register one collector per run."""
    config.pluginmanager.register(Skips(bool(config.getoption("--fail-on-skip"))), "named-skips")


def data_is_absent() -> bool:
    """Whether this machine has no development data."""
    return not Path(os.environ.get("AGGREGATOR_DATA") or ROOT.parent / "shared" / "data").is_dir()


class Skips:
    """Collects the (name, reason, allowed) of skipped tests and modules.

    It reads reports, not tests: with several test processes only they reach the process that decides.
    """

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.found: list[tuple[str, str, bool]] = []

    @property
    def forbidden(self) -> list[str]:
        """Names of skipped tests that fail the run with ``--fail-on-skip``."""
        return [name for name, _, allowed in self.found if not allowed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a skipped test; its markers are among the keywords of the report."""
        if report.skipped and not hasattr(report, "wasxfail"):
            allowed = "data" in report.keywords and data_is_absent()
            self.found.append((report.nodeid, reason_of(report.longrepr), allowed))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record modules that skip all of their tests."""
        if report.skipped:
            self.found.append((report.nodeid, reason_of(report.longrepr), False))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail the run because of forbidden skips."""
        if self.strict and self.forbidden and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List all skips."""
        if not self.found:
            return
        terminalreporter.section(f"{len(self.found)} skipped")
        for name, reason, allowed in self.found:
            mark = "FORBIDDEN " if self.strict and not allowed else ""
            terminalreporter.line(f"{mark}{name}: {reason}")
        if self.strict and self.forbidden:
            terminalreporter.line(f"--fail-on-skip: {len(self.forbidden)} skipped tests count as a failure.")


def reason_of(longrepr: object) -> str:
    """Reason of a skip without the prefix of pytest; ``longrepr`` is (path, line, text) or text."""
    text = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
    return text.removeprefix("Skipped: ")
