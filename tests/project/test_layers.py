"""Layer rules: which package may import which, and which modules must stay pure."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# A package (or top-level module) imports only names in its row, itself and the base modules.
BASE = {
    "config_file",
    "domain",
    "errors",
    "extensions",
    "jsonl",
    "log_limits",
    "parent_death",
    "readiness",
} | {
    "settings",
    "time_units",
}
DOMAIN_LAYERS = {"concurrency", "store", "analysis", "dedup", "index"}
SERVICES = DOMAIN_LAYERS | {
    "ingest",
    "queries",
    "provenance",
    "events",
    "auth",
    "background",
    "contract",
    "app",
    "policy_file",
}
ALLOWED: dict[str, set[str]] = {
    **{name: set() for name in ("concurrency", "store")},
    "analysis": {"concurrency"},
    "dedup": {"analysis"},
    "index": {"store", "analysis", "dedup"},
    **dict.fromkeys(("ingest", "queries", "provenance", "events", "auth"), DOMAIN_LAYERS),
    "background": DOMAIN_LAYERS | {"events"},
    "contract": {"analysis", "queries"},
    "policy_file": {"dedup"},
    "backup": {"store", "index", "background"},
    "app": SERVICES - {"contract"},
    "http": SERVICES,
    "runtime": SERVICES | {"http"},
    "cli": SERVICES | {"backup", "http", "runtime"},
    "__main__": {"cli"},
}
# Distributions beside the server, in packages/: each may import the whole server, and those in its row.
DISTRIBUTIONS: dict[str, set[str]] = {"archive": set(), "lab": {"archive"}}
# The same arguments give the same result: no clock, network, randomness, thread or environment.
PURE = (
    "analysis",
    "dedup",
    "events.detection",
    "index.codec",
    "index.blocks",
    "queries.relatedness",
    "provenance.publication",
    "provenance.lineage",
    "provenance.changes",
    "provenance.window",
    "provenance.statistics",
    "provenance.families",
    "provenance.selection",
)
IMPURE_EXCEPTIONS = ("analysis.pool", "analysis.models")
IMPURE_MODULES = {"asyncio", "aiohttp", "redis", "random", "socket", "subprocess", "threading", "time"}
ENVIRONMENT_AND_CLOCK = {"os.environ", "os.getenv", "datetime.now", "datetime.utcnow", "date.today"}


# What the project was asked to be built with; each stays in real use.
GIVEN = ("aiohttp", "apscheduler", "jieba", "nltk", "redis", "sklearn", "xxhash")


def modules(package: Path) -> dict[str, Path]:
    """Every module of a package by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules(ROOT / "aggregator")
BESIDE = {name: modules(ROOT / "packages" / name / f"aggregator_{name}") for name in DISTRIBUTIONS}
PATHS = {name: path for found in (MODULES, *BESIDE.values()) for name, path in found.items()}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in PATHS.items()}


def is_below(module: str, packages: tuple[str, ...]) -> bool:
    """Whether the module is one of the packages or inside one."""
    return any(f"{module}.".startswith(f"aggregator.{package}.") for package in packages)


def imported(module: str) -> list[tuple[int, str]]:
    """(line, dotted name) of every import, those under ``TYPE_CHECKING`` and inside functions included."""
    found = []
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: write the import with its full name."
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def internal_imports(module: str) -> list[tuple[int, str]]:
    """(line, module of this repository) of its imports."""
    found = []
    for line, name in imported(module):
        target = name
        while target and target not in PATHS:
            target = target.rpartition(".")[0]
        if target and target != module:
            found.append((line, target))
    return found


def test_every_package_has_a_layer() -> None:
    """The table names each top-level module and package, and nothing that was removed."""
    existing = {name.split(".")[1] for name in MODULES if "." in name} - BASE

    assert existing == set(ALLOWED)


@pytest.mark.parametrize("module", [name for name in MODULES if "." in name])
def test_imports_follow_the_layer_table(module: str) -> None:
    """No module imports from a layer above it."""
    own = module.split(".")[1]
    allowed = {own} | BASE | ALLOWED.get(own, set())

    for line, target in internal_imports(module):
        assert target in MODULES, f"{module}:{line} must not import {target}, of another distribution."
        package = target.split(".")[1] if "." in target else ""
        assert not package or package in allowed, f"{module}:{line} must not import {target}; see ALLOWED."


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_distributions_follow_the_table(distribution: str) -> None:
    """A distribution imports the server, itself and those in its row."""
    rows = {distribution} | DISTRIBUTIONS[distribution]
    allowed = MODULES.keys() | {name for row in rows for name in BESIDE[row]}

    wrong = [
        f"{module}:{line} must not import {target}"
        for module in BESIDE[distribution]
        for line, target in internal_imports(module)
        if target not in allowed
    ]

    assert wrong == []


@pytest.mark.parametrize(
    "module", [m for m in MODULES if is_below(m, PURE) and not is_below(m, IMPURE_EXCEPTIONS)]
)
def test_pure_modules_use_no_clock_network_or_environment(module: str) -> None:
    """Their results depend on their arguments alone."""
    assert {name.partition(".")[0] for _, name in imported(module)} & IMPURE_MODULES == set()
    attributes = {ast.unparse(node) for node in ast.walk(TREES[module]) if isinstance(node, ast.Attribute)}
    assert not ENVIRONMENT_AND_CLOCK & attributes


def test_only_settings_reads_the_environment() -> None:
    """One module owns every environment variable."""
    readers = [
        module
        for module, path in PATHS.items()
        if re.search(r"\benviron\b|\bgetenv\b", path.read_text(encoding="utf-8"))
        and module != "aggregator.settings"
    ]

    assert readers == []


@pytest.mark.parametrize("package", GIVEN)
def test_what_the_project_is_built_with_is_imported(package: str) -> None:
    """By a statement, or by name for a package whose import is delayed."""
    by_name = re.compile(rf'(import_module|find_spec)\("{package}[."]')

    assert any(
        by_name.search(path.read_text(encoding="utf-8"))
        or any(name.split(".")[0] == package for _, name in imported(module))
        for module, path in PATHS.items()
    )


def test_there_is_no_import_cycle() -> None:
    """Modules can be ordered so that each imports earlier ones only, type-checking imports included."""
    remaining = {name: {target for _, target in internal_imports(name)} for name in PATHS if "." in name}
    while remaining:
        leaves = {name for name, targets in remaining.items() if not targets & remaining.keys()}
        assert leaves, f"import cycle among: {', '.join(sorted(remaining))}"
        remaining = {name: targets for name, targets in remaining.items() if name not in leaves}
