"""``scripts/dev``: the service starts, and starts again after a change."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.hang_limit import HANG_LIMIT_S

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("watchfiles", reason="needs scripts/setup dev")
pytestmark = pytest.mark.services


def test_the_service_starts_again_after_a_change(tmp_path: Path) -> None:
    """Of a template in a copy of the tree; the store stays."""
    for name in ("aggregator", "packages", "scripts"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    paths = [tmp_path, *(path.parent for path in tmp_path.glob("packages/*/pyproject.toml"))]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("AGGREGATOR_", "REDIS_"))}
    given = os.pathsep.join([*map(str, paths), inherited.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [tmp_path / "scripts" / "dev", "--port=0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**inherited, "DEV_PYTHON": sys.executable, "PYTHONPATH": given},
        start_new_session=True,
    )
    output = process.stdout
    assert output is not None
    lines: queue.Queue[str] = queue.Queue()
    reader = threading.Thread(target=lambda: list(map(lines.put, output)))
    reader.start()

    def wait_until_ready() -> None:
        while " ready on " not in lines.get(timeout=HANG_LIMIT_S):
            pass

    try:
        wait_until_ready()
        (tmp_path / "aggregator/http/pages/templates/front.html").touch()
        wait_until_ready()
        assert (tmp_path / "var/dev/appendonlydir").is_dir()
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(HANG_LIMIT_S)
        reader.join(HANG_LIMIT_S)  # until the last process of the group has ended
        output.close()
