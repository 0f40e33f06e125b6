"""Budgets: lines, modules, words and constants of the repository.

A change that needs more raises the budget in a separate commit that says why, and what the change could
not replace.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MAX_SERVER_LINES, MAX_SERVER_MODULES = 42_169, 245
MAX_LINES = {  # of each package of the server; modules at its top share one
    "analysis": 4_640,
    "auth": 493,
    "background": 256,
    "backup": 486,
    "cli": 2_093,
    "contract": 1_504,
    "dedup": 1_285,
    "events": 7_580,
    "http": 6_639,
    "index": 5_204,
    "ingest": 1_961,
    "provenance": 1_218,
    "queries": 1_565,
    "runtime": 1_116,
    "store": 3_819,
    "top": 2_417,
}
MAX_REPOSITORY_LINES = 60_874  # server and packages, without tests
MAX_TEST_TOOL_LINES = 14_200  # modules of tests/ without test cases, which have no budget
TEST_TOOLS = ("benchmarks", "support", "hostile", "chaos", "soak")
MAX_BENCHMARK_WORDS = 4_000  # of docs/benchmarks, without rules of tables
MAX_DOC_WORDS = 33_460  # without generated pages and decision records
GENERATED_DOCS = ("configuration.md", "metrics.md")
MAX_CONSTANTS = {"aggregator/events/detection": 60, "aggregator/dedup": 23}


def python_files(*directories: str) -> list[Path]:
    """All modules below these directories of the repository."""
    return [path for name in directories for path in sorted((ROOT / name).rglob("*.py"))]


def lines(paths: Iterable[Path]) -> int:
    """Lines of files, blank ones included."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def constants(directory: str) -> list[str]:
    """Names of numeric constants at the top of modules: ``NAME = 4`` or ``NAME: Final = (1, 2.5)``."""
    found = []
    for path in python_files(directory):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                has_number = any(
                    isinstance(part, ast.Constant) and type(part.value) in (int, float)
                    for part in ast.walk(node.value)
                )
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if has_number and ast.unparse(target).lstrip("_").isupper():
                    found.append(f"{path.name}: {ast.unparse(target)}")
    return found


def test_the_server_keeps_its_lines_and_modules() -> None:
    """An engineer can hold it in the head."""
    files = python_files("aggregator")

    assert lines(files) <= MAX_SERVER_LINES
    assert len(files) <= MAX_SERVER_MODULES


def test_each_package_of_the_server_keeps_its_lines() -> None:
    """Each directory has a budget; modules at the top share one."""
    sizes = {
        path.name: lines(python_files(f"aggregator/{path.name}"))
        for path in (ROOT / "aggregator").iterdir()
        if path.is_dir() and path.name != "__pycache__"
    }
    sizes["top"] = lines((ROOT / "aggregator").glob("*.py"))

    assert {name: size for name, size in sizes.items() if size > MAX_LINES.get(name, 0)} == {}
    assert set(MAX_LINES) == set(sizes)


def test_the_repository_keeps_its_lines() -> None:
    """Server and packages, without tests."""
    assert lines(python_files("aggregator", "packages")) <= MAX_REPOSITORY_LINES


def test_tools_of_the_tests_keep_their_lines() -> None:
    """Benchmarks, helpers and fault injection; their own test cases are not counted."""
    tools = [
        path for path in python_files(*(f"tests/{name}" for name in TEST_TOOLS)) if path.name[:5] != "test_"
    ]

    assert lines(tools) <= MAX_TEST_TOOL_LINES


def test_documents_keep_their_words() -> None:
    """Generated pages and decision records are not counted."""
    pages = [
        path
        for path in (ROOT / "docs").rglob("*.md")
        if path.name not in GENERATED_DOCS and path.parent.name != "decisions"
    ]

    assert sum(len(path.read_text(encoding="utf-8").split()) for path in pages) <= MAX_DOC_WORDS


@pytest.mark.parametrize("directory", MAX_CONSTANTS)
def test_rules_keep_their_number_of_constants(directory: str) -> None:
    """Each numeric constant has to be chosen, and can be wrong."""
    found = constants(directory)

    assert len(found) <= MAX_CONSTANTS[directory], "\n".join(found)


def test_benchmarks_are_results_method_and_command() -> None:
    """History goes; cells of tables count, their rules do not."""
    words = " ".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "docs/benchmarks").glob("*.md")
    ).split()

    assert len([word for word in words if word.strip("|-:")]) <= MAX_BENCHMARK_WORDS
