"""pytest plugin of scripts/test: every skipped test is named, and none may hide behind a green run.

``--fail-on-skip`` (as .ci/run calls it) turns every skip into a failure, except that of a test marked
``data`` while the development data is absent.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The one option."""
    parser.addoption(
        "--fail-on-skip",
        action="store_true",
        help="a skip is a failure, unless the test is marked data and the development data is absent",
    )


def pytest_configure(config: pytest.Config) -> None:
    """One collector per run."""
    config.pluginmanager.register(Skips(bool(config.getoption("--fail-on-skip"))), "named-skips")


def data_is_absent() -> bool:
    """True when there is no development data directory on this machine."""
    return not Path(os.environ.get("AGGREGATOR_DATA") or ROOT.parent / "shared" / "data").is_dir()


class Skips:
    """Collects (name, reason, allowed) of skipped tests and modules."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.found: list[tuple[str, str, bool]] = []

    @property
    def forbidden(self) -> list[str]:
        return [name for name, _, allowed in self.found if not allowed]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
        report = yield
        if report.skipped and not hasattr(report, "wasxfail"):
            allowed = item.get_closest_marker("data") is not None and data_is_absent()
            self.found.append((item.nodeid, reason_of(report.longrepr), allowed))
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that skips itself hides all its tests."""
        if report.skipped:
            self.found.append((report.nodeid, reason_of(report.longrepr), False))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.strict and self.forbidden and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.found:
            return
        terminalreporter.section(f"{len(self.found)} skipped")
        for name, reason, allowed in self.found:
            mark = "FORBIDDEN " if self.strict and not allowed else ""
            terminalreporter.line(f"{mark}{name}: {reason}")
        if self.strict and self.forbidden:
            terminalreporter.line(f"--fail-on-skip: {len(self.forbidden)} skipped tests count as a failure.")


def reason_of(longrepr: object) -> str:
    """The reason without pytest's own prefix; longrepr of a skip is (path, line, text)."""
    text = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
    return text.removeprefix("Skipped: ")
