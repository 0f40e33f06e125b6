"""Which module may import which: the house of ARCHITECTURE.md, kept by a test."""

from __future__ import annotations

import ast
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# From the ground up. A module imports modules of lower layers, and of its own where ``True`` says so.
# A module that is in no layer fails: whoever adds one decides where it belongs.
LAYERS: tuple[tuple[str, bool, tuple[str, ...]], ...] = (
    ("0 values", True, ("aggregator", "aggregator.domain", "aggregator.errors", "aggregator.settings")),
    (
        "1a letters",
        False,
        (
            "aggregator.text",
            "aggregator.text.characters",
            "aggregator.text.chinese",
            "aggregator.text.spelling",
        ),
    ),
    ("1a lexicon", False, ("aggregator.text.lexicon",)),
    (
        "1a stages",
        False,
        (
            "aggregator.text.extract",
            "aggregator.text.language",
            "aggregator.text.tokens",
            "aggregator.blocks",
            "aggregator.fingerprint",
            "aggregator.overlap",
            "aggregator.urls",
        ),
    ),
    ("1b model", True, ("aggregator.features", "aggregator.modelfile")),
    (
        "1c rules",
        True,
        (
            "aggregator.analyse",
            "aggregator.bursts",
            "aggregator.bursts.*",
            "aggregator.event_query",
            "aggregator.frames",
            "aggregator.passages",
            "aggregator.ranking",
            "aggregator.similarity",
            "aggregator.telling",
            "aggregator.titled",
            "aggregator.topics",
            "aggregator.verdict",
            "aggregator.vocabulary",
        ),
    ),
    ("2a store", True, ("aggregator.store", "aggregator.store.*", "aggregator.models", "aggregator.reading")),
    (
        "2b index",
        True,
        ("aggregator.changes", "aggregator.succession", "aggregator.index", "aggregator.index.*"),
    ),
    (
        "3 services",
        True,
        (
            "aggregator.access",
            "aggregator.actions",
            "aggregator.allowance",
            "aggregator.analysis_pool",
            "aggregator.analysis_forks",
            "aggregator.analysis_packing",
            "aggregator.analysis_worker",
            "aggregator.places",
            "aggregator.arrivals",
            "aggregator.beside",
            "aggregator.audit",
            "aggregator.event_stream",
            "aggregator.eventdraft",
            "aggregator.eventlog",
            "aggregator.events",
            "aggregator.explain",
            "aggregator.housekeeping",
            "aggregator.deciding",
            "aggregator.gathering",
            "aggregator.ingest",
            "aggregator.jobs",
            "aggregator.lease",
            "aggregator.numbers",
            "aggregator.pacing",
            "aggregator.presence",
            "aggregator.priority",
            "aggregator.reindexing",
            "aggregator.recording",
            "aggregator.related",
            "aggregator.rounds",
            "aggregator.shelf",
            "aggregator.turns",
            "aggregator.watches",
            "aggregator.webhooks",
            "aggregator.webhooks.*",
        ),
    ),
    ("4a scheduled work", False, ("aggregator.scheduled",)),
    ("4a composition", False, ("aggregator.app",)),
    (
        "4b edges",
        True,
        ("aggregator.http", "aggregator.http.*", "aggregator.clients", "aggregator.clients.*"),
    ),
    (
        "5a offline",
        True,
        (
            "aggregator.corpus",
            "aggregator.corpus.*",
            "aggregator.demo",
            "aggregator.demo.*",
            "aggregator.evaluation",
            "aggregator.evaluation.*",
            "aggregator.fitting",
            "aggregator.replay",
        ),
    ),
    ("5b command line", True, ("aggregator.cli", "aggregator.cli.*", "aggregator.__main__")),
)
PURE = ("1a", "1b", "1c")
IMPURE_MODULES = {"asyncio", "aiohttp", "redis", "random", "socket", "subprocess", "threading", "time"}


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted((ROOT / "aggregator").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def layer_of(module: str) -> int | None:
    """The position of the layer that lists the module."""
    for position, (_, _, patterns) in enumerate(LAYERS):
        if any(fnmatch(module, pattern) for pattern in patterns):
            return position
    return None


def imported(tree: ast.Module) -> list[tuple[int, str]]:
    """(line, dotted name) of every import that happens at run time, ``from a import b`` as ``a.b``."""
    skipped = {
        node
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.dump(branch.test)
        for statement in branch.body
        for node in ast.walk(statement)
    }
    found = []
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def target(name: str) -> str:
    """The module of ours that an imported dotted name belongs to."""
    return name if name in MODULES else name.rpartition(".")[0]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_below(module: str) -> None:
    """Nothing reaches up, and every module has its place."""
    own = layer_of(module)
    assert own is not None, f"{module} is in no layer of tests/test_layers.py; give it one."
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))

    for line, name in imported(tree):
        if not name.startswith("aggregator"):
            continue
        other = target(name)
        layer = layer_of(other)
        assert layer is not None, f"{module}:{line} imports {other}, which is in no layer."
        if other in ("aggregator", module) or (layer == own and LAYERS[own][1]):
            continue
        assert layer < own, f"{module}:{line} ({LAYERS[own][0]}) imports {other} ({LAYERS[layer][0]})."


@pytest.mark.parametrize("module", [m for m in MODULES if LAYERS[layer_of(m) or 0][0].startswith(PURE)])
def test_the_pure_layers_know_no_clock_no_network_and_no_environment(module: str) -> None:
    """What layer 1 says depends on its arguments alone."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    names = imported(tree)

    assert {name.partition(".")[0] for _, name in names} & IMPURE_MODULES == set()
    touched = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not {"os.environ", "os.getenv", "datetime.now", "datetime.utcnow", "date.today"} & touched


def test_only_settings_reads_the_environment() -> None:
    """One module owns every variable; the command line hands the rest on."""
    readers = [
        module
        for module, path in MODULES.items()
        if "environ" in path.read_text(encoding="utf-8") and module != "aggregator.settings"
    ]

    assert readers == []


def test_every_layer_pattern_still_names_something() -> None:
    """A removed module leaves the list too; packages that are empty so far may keep their pattern."""
    stale = [
        pattern
        for _, _, patterns in LAYERS
        for pattern in patterns
        if not pattern.endswith("*") and not any(fnmatch(module, pattern) for module in MODULES)
    ]

    assert stale == []
