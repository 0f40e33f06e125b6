"""Progress bars: shown on a terminal only, and never in the way of the work."""

from __future__ import annotations

import io

import pytest

from aggregator.cli.progress import THROTTLED_LABEL, item_progress, open_bar, show_counts


class Terminal(io.StringIO):
    """Standard error that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal; not a fixture, since pytest replaces standard error after the setup."""
    opened = Terminal()
    monkeypatch.setattr("sys.stderr", opened)
    return opened


def test_there_is_no_bar_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log file must not fill with bars."""
    monkeypatch.setattr("sys.stderr", output := io.StringIO())
    with open_bar(True, total=100) as read, item_progress("articles") as show_count:
        read.update(50)
        show_counts(read, {"new": 1}, throttled=True)
        show_count(3)

    assert open_bar(True).disable
    assert output.getvalue() == ""


def test_there_is_no_bar_that_was_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """--no-progress, also on a terminal."""
    terminal = open_terminal(monkeypatch)
    with open_bar(False, total=100) as read:
        read.update(50)

    assert open_bar(False).disable
    assert terminal.getvalue() == ""


def test_bytes_and_counts_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share read so far and the counts."""
    terminal = open_terminal(monkeypatch)
    with open_bar(True, total=100) as read:
        read.update(50)
        show_counts(read, {"new": 7}, throttled=False)

    assert "50%" in terminal.getvalue()
    assert "new=7" in terminal.getvalue()


def test_throttling_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator sees why an import is slow, and when it is no longer throttled."""
    terminal = open_terminal(monkeypatch)
    with open_bar(True, total=100) as read:
        for throttled in (False, True, False):
            start = terminal.tell()
            show_counts(read, {"new": 7}, throttled=throttled)
            assert (THROTTLED_LABEL in terminal.getvalue()[start:]) is throttled


def test_an_error_of_the_work_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar is removed first."""
    terminal = open_terminal(monkeypatch)
    with pytest.raises(ValueError, match="no luck"), item_progress("articles") as show_count:
        show_count(1)
        raise ValueError("no luck")

    assert terminal.getvalue().endswith("\r")
