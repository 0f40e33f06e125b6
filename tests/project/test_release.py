"""Release: locked dependencies with hashes, and a reproducible wheel."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tests.support.hang_limit import HANG_LIMIT_S

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def normalize_name(name: str) -> str:
    """Name of a package as in the lock file (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_locked_with_a_hash() -> None:
    """Locked versions satisfy pyproject.toml and have hashes; the file names no package index."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [
        Requirement(line) for line in [*project["dependencies"], *project["optional-dependencies"]["chinese"]]
    ]
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    locked = {
        normalize_name(e.partition("==")[0]): re.split(r"[ ;\\]", e.partition("==")[2])[0] for e in entries
    }

    for requirement in requirements:
        assert locked[normalize_name(requirement.name)] in requirement.specifier, requirement
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in LOCK


def test_the_wheel_is_reproducible(tmp_path: Path) -> None:
    """Two builds with the same SOURCE_DATE_EPOCH are identical."""
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
    digests = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        command = [sys.executable, "-c", build, str(tmp_path / name)]
        subprocess.run(
            command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=HANG_LIMIT_S
        )
        (wheel,) = (tmp_path / name).glob("*.whl")
        digests.add(hashlib.sha256(wheel.read_bytes()).hexdigest())

    assert len(digests) == 1
