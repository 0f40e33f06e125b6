"""Plugin ``slow_first``: the modules whose tests start processes or a browser run first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
TEST = "import pytest\n@pytest.mark.parametrize('kind', [{kinds}])\ndef test_it(kind): pass\n"
MARKED = "pytest.param('server', marks=pytest.mark.services)"
KINDS = {"a": "'memory'", "b": f"'memory', {MARKED}", "c": f"'memory', 'file', {MARKED}", "d": MARKED}


def test_slow_modules_run_first(tmp_path: Path) -> None:
    """Half of the tests of a module must be marked; the order is stable."""
    for name, kinds in KINDS.items():
        (tmp_path / f"test_{name}.py").write_text(TEST.format(kinds=kinds))
    options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", ".", "-p", "slow_first", "-p", "no:randomly"]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--collect-only", "-q", *sorted(tmp_path.iterdir())],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests" / "plugins")},
        capture_output=True,
        text=True,
        check=True,
    )

    modules = [Path(line.partition("::")[0]).name for line in done.stdout.splitlines() if "::" in line]
    assert list(dict.fromkeys(modules)) == ["test_b.py", "test_d.py", "test_a.py", "test_c.py"]
