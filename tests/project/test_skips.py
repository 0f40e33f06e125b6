"""Plugin ``skips``: skips are listed, and ``--fail-on-skip`` allows only those for absent data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
SUITE = """
import pytest

@pytest.mark.data
def test_on_data():
    pytest.skip("no development data")

{tool}
def test_plain():
    pass
"""
TOOL = """
def test_on_a_tool():
    pytest.skip("redis-server is not installed")
"""


@pytest.mark.parametrize(
    ("tool", "data", "strict", "processes", "code"),
    [
        (TOOL, False, False, 0, 0),
        (TOOL, False, True, 0, 1),
        ("", False, True, 0, 0),
        ("", True, True, 0, 1),
        (TOOL, False, True, 2, 1),
        ("", False, True, 2, 0),
    ],
)
def test_only_absent_data_allows_a_skip(
    tmp_path: Path, tool: str, data: bool, strict: bool, processes: int, code: int
) -> None:
    """With ``--fail-on-skip`` a missing tool fails the run, and so does a skip despite present data."""
    (tmp_path / "test_suite.py").write_text(SUITE.format(tool=tool))
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "tests" / "plugins"),
        "AGGREGATOR_DATA": str(tmp_path if data else tmp_path / "absent"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # only those that the suite or pyproject.toml needs
    }
    options = ["-p", "skips", "-p", "pytest_asyncio.plugin", "-p", "pytest_timeout"]
    options += ["-c", str(ROOT / "pyproject.toml"), "--rootdir", "."]
    options += ["--fail-on-skip"] if strict else []
    if processes:
        pytest.importorskip("xdist")
        options += ["-p", "xdist.plugin", f"--numprocesses={processes}"]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_suite.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == code, done.stdout
    assert "test_suite.py::test_on_data: no development data" in done.stdout
    assert ("test_on_a_tool: redis-server is not installed" in done.stdout) == bool(tool)
    assert " passed" in done.stdout.splitlines()[-1]
