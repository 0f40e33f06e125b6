"""Release: locked dependencies with hashes, a reproducible wheel, and its demonstration."""

from __future__ import annotations

import email
import functools
import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.installed_demo import check_demo

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def normalize_name(name: str) -> str:
    """Name of a package as in the lock file (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_lock_is_what_its_packages_require() -> None:
    """Versions satisfy pyproject.toml and have hashes; nothing is missing here, nothing is left over.

    What a locked package requires is read from the packages of this environment. pip refuses a lock
    that lacks one.
    """
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    locked = {
        normalize_name(e.partition("==")[0]): re.split(r"[ ;\\]", e.partition("==")[2])[0] for e in entries
    }
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in LOCK

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [Requirement(line) for line in project["dependencies"] if not line.startswith("newsdedup")]
    for requirement in waiting:
        assert locked[normalize_name(requirement.name)] in requirement.specifier, requirement
    reached = set[tuple[str, bool]]()
    while waiting:
        requirement = waiting.pop()
        name, marker = normalize_name(requirement.name), requirement.marker
        is_needed = marker is None or marker.evaluate({"extra": ""})
        assert name in locked or not is_needed, requirement
        if name in locked and (name, is_needed) not in reached:
            reached.add((name, is_needed))
            required = map(Requirement, (importlib.metadata.requires(name) or ()) if is_needed else ())
            waiting += [r for r in required if "extra ==" not in str(r.marker)]
    assert locked.keys() == {name for name, _ in reached}


PROJECTS = [path.parent for path in (ROOT / "pyproject.toml", *ROOT.glob("packages/*/pyproject.toml"))]


@pytest.mark.parametrize("project", PROJECTS, ids=[project.name for project in PROJECTS])
def test_the_wheel_is_reproducible(project: Path, tmp_path: Path) -> None:
    """Two builds with the same SOURCE_DATE_EPOCH are identical."""
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
    digests = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        command = [sys.executable, "-c", build, str(tmp_path / name)]
        subprocess.run(
            command, cwd=project, env=environment, check=True, capture_output=True, timeout=HANG_LIMIT_S
        )
        (wheel,) = (tmp_path / name).glob("*.whl")
        digests.add(hashlib.sha256(wheel.read_bytes()).hexdigest())

    assert len(digests) == 1


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Those of all distributions, since the entry points of this environment name all."""
    directory = tmp_path_factory.mktemp("wheels")
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    for project in PROJECTS:
        subprocess.run(
            [sys.executable, "-c", build, str(directory)],
            cwd=project, check=True, capture_output=True, timeout=HANG_LIMIT_S,
        )  # fmt: skip
    return list(directory.glob("*.whl"))


# What documents and messages install besides this project, each for its own reason.
OTHER_PACKAGES = {"news-please", "pandas", "matplotlib"}
OTHER_PACKAGES |= {"opentelemetry-distro", "opentelemetry-exporter-otlp"}
OTHER_PACKAGES |= {"opentelemetry-instrumentation-aiohttp-server"}
INSTALL = re.compile(r"pip install ((?:'[^'`\n]+'|[^-\s`'\"][^\s`'\",:;)]*|--?[a-z-]+| (?=\S))+)")
NAMED = re.compile(r"\bnewsdedup(?:-(?:client|archive|lab))?\[[\w,]+\]")


def test_what_documents_and_messages_install_is_this_project(wheels: list[Path]) -> None:
    """Names and extras are those in the metadata of the wheels, paths are projects of the repository.

    A command that installs some by their paths names those that they need, too: no index has them.
    """
    extras: dict[str, set[str]] = {}
    needed: dict[str, set[str]] = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            metadata = email.message_from_bytes(archive.read(name))
        extras[metadata["Name"]] = set(metadata.get_all("Provides-Extra", []))
        required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
        needed[metadata["Name"]] = {re.match(r"[\w-]+", line)[0] for line in required}  # type: ignore[index]
    by_path = {
        str(project.relative_to(ROOT)): tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
        for project in PROJECTS
    }
    paths = [
        path for root in ("aggregator", "packages", "docs", "deploy") for path in (ROOT / root).rglob("*")
    ]
    found = list[tuple[str, str]]()
    for path in (*paths, ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        if path.suffix in (".md", ".py", ".ipynb", ".html", ".service") and "decisions" not in path.parts:
            text = path.read_text(encoding="utf-8")
            found += [(path.name, name) for name in NAMED.findall(text)]
            for words in INSTALL.findall(text):
                listed_words = [word.strip("'") for word in re.findall(r"'[^']+'|\S+", words)]
                wanted_words = [
                    word
                    for word in listed_words
                    if not word.startswith(("-", "{", "requirements.lock")) and ".whl" not in word
                ]
                found += [(path.name, word) for word in wanted_words]
                local = {
                    by_path[str(Path(word.partition("[")[0]))]["project"]["name"]
                    for word in wanted_words
                    if word.startswith(".")
                }
                if local and "--no-deps" not in listed_words:
                    missing = {n for name in local for n in needed[name] & extras.keys()} - local
                    assert not missing, f"{path.name}: pip install {words} needs {missing}"

    for place, wanted in found:
        name, _, listed = wanted.rstrip("].").partition("[")
        if name.startswith(".") or not name:
            project = by_path[str(Path(name or "."))]["project"]
            name = project["name"]
        assert name in extras or name in OTHER_PACKAGES, f"{place}: {wanted}"
        assert set(filter(None, listed.split(","))) <= extras.get(name, set()), f"{place}: {wanted}"
    assert {name for _, name in found} >= {"./packages/client", "newsdedup-lab[minilm]"}


def test_the_wheels_serve_the_demonstration_in_an_empty_environment(
    wheels: list[Path], tmp_path: Path
) -> None:
    """Nothing of the working tree is needed: the package data is in the wheels, the command is installed.

    Dependencies are those of this environment, so that nothing is downloaded; ``scripts/release`` installs
    them from the lock.
    """
    run = functools.partial(subprocess.run, check=True, capture_output=True, timeout=HANG_LIMIT_S)
    environment = tmp_path / "environment"
    venv.create(environment)
    python = environment / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index"]
    run([*install, *map(str, wheels)], cwd=tmp_path)
    (packages,) = environment.glob("lib/python*/site-packages")
    # Searched after the environment itself, without the .pth files there: this tree is not importable.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    found = run([python, "-c", "import aggregator; print(aggregator.__file__)"], cwd=tmp_path, text=True)

    assert Path(found.stdout.strip()).is_relative_to(packages)
    assert check_demo(environment)
