"""What a release consists of: locked packages, and a wheel that can be built again."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def plain(name: str) -> str:
    """A package's name as the lock writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_locked_with_its_hash() -> None:
    """Nothing is installed that was not looked at, nothing too old for pyproject.toml; no host of an index is named."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [
        Requirement(line) for line in [*project["dependencies"], *project["optional-dependencies"]["chinese"]]
    ]
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    locked = {plain(e.partition("==")[0]): re.split(r"[ ;\\]", e.partition("==")[2])[0] for e in entries}

    for requirement in asked:
        assert locked[plain(requirement.name)] in requirement.specifier, requirement
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in LOCK


def test_the_wheel_is_the_same_twice(tmp_path: Path) -> None:
    """One SOURCE_DATE_EPOCH, two builds, equal bytes."""
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
    digests = set()
    for turn in ("one", "two"):
        (tmp_path / turn).mkdir()
        command = [sys.executable, "-c", build, str(tmp_path / turn)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=100)
        (wheel,) = (tmp_path / turn).glob("*.whl")
        digests.add(hashlib.sha256(wheel.read_bytes()).hexdigest())

    assert len(digests) == 1
