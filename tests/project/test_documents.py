"""The documents agree with the code: settings, commands, packages, version, links and examples."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

import aggregator
from aggregator.app import open_service
from aggregator.cli import options
from aggregator.contract.decoding import decode_article
from aggregator.dedup.policy import Policy
from aggregator.settings import Settings
from tests.project.settings_table import markdown_tables
from tests.support import typescript_types

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
MAX_WORDS = {"README.md": 1000}
MAX_LINES = {"ARCHITECTURE.md": 250, "CHANGELOG.md": 60}


def commands() -> list[str]:
    """Names of all commands of the parser."""
    actions = options.build_parser()._actions
    return next(list(a.choices) for a in actions if isinstance(a, argparse._SubParsersAction))


def headings(path: Path) -> set[str]:
    """Anchors that a Markdown viewer gives the headings of a document."""
    found = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found}


def test_the_types_of_the_javascript_client_are_those_of_the_openapi_document() -> None:
    """When this fails, run scripts/client-types and commit the result."""
    text = typescript_types.DECLARATIONS.read_text(encoding="utf-8")

    assert "export interface VerdictOut {" in text
    assert typescript_types.generate(text) == text


def test_the_configuration_table_is_the_one_the_settings_print() -> None:
    """Paste the output of `python -m tests.project.settings_table` between the two comments."""
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- settings:.*?-->\n(.*?)\n<!-- /settings -->", text, re.DOTALL)

    assert found is not None
    assert found[1] == markdown_tables()


def test_every_key_of_a_policy_profile_is_documented_with_its_default() -> None:
    """Those that are settings are in their table, the others in the section on profiles."""
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    section = text[text.index("## Policy profiles") :]
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| `([0-9.]+)` \|", section, re.MULTILINE))
    keys = {"policy" if field.name == "name" else field.name for field in fields(Policy) if field.init}
    settings = keys & {field.name for field in fields(Settings)}

    assert rows == {key: str(getattr(Policy(), key)) for key in keys - settings}
    assert {key for key in settings if f"`{key}`" not in section} == set()


def test_the_command_table_is_complete() -> None:
    """docs/cli.md lists every command of the parser, and no other."""
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `aggregator ([a-z-]+)", text, re.MULTILINE))

    assert described == set(commands())


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    """A release changes both."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entry = re.search(r"^## \[([^\]]+)\]", changelog, re.MULTILINE)

    assert entry is not None
    assert entry[1] == aggregator.__version__


def test_every_script_is_listed_in_contributing() -> None:
    """CONTRIBUTING.md names every script of scripts/, and no other."""
    named = set(re.findall(r"scripts/([a-z-]+)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    existing = {path.name for path in (ROOT / "scripts").iterdir() if not path.name.startswith((".", "__"))}

    assert existing == named


def test_architecture_lists_every_package() -> None:
    """Each top-level module and package is in the first column; nothing removed is still described."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    package = ROOT / "aggregator"
    existing = {p.name for p in package.glob("*.py") if not p.name.startswith("__")}
    existing |= {p.name + "/" for p in package.iterdir() if (p / "__init__.py").exists()}
    table = text[text.index("## Packages") : text.index("## Processes")]

    first_column = "".join(re.findall(r"^\|([^|]+)\|", table, re.MULTILINE))
    assert existing == set(re.findall(r"`([a-z_]+(?:\.py|/))`", first_column))


@pytest.mark.parametrize(
    "name",
    [
        "ARCHITECTURE.md",
        "docs/glossary.md",
        "docs/design/life-of-an-event.md",
        "docs/design/data-model.md",
    ],
)
def test_modules_named_in_the_overviews_exist(name: str) -> None:
    """Every `package/module.py` and `package/` in a table is a path below aggregator/ or the root."""
    text = (ROOT / name).read_text(encoding="utf-8")
    rows = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    paths = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", rows)

    assert paths
    assert [
        path for path in paths if not any((base / path).exists() for base in (ROOT / "aggregator", ROOT))
    ] == []


def test_documents_keep_their_size() -> None:
    """The overviews stay short enough to be read in one go."""
    for name, limit in MAX_WORDS.items():
        assert len((ROOT / name).read_text(encoding="utf-8").split()) <= limit, name
    for name, limit in MAX_LINES.items():
        assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= limit, name


def test_documents_contain_no_machine_path_and_no_registry_host() -> None:
    """They are valid on any machine."""
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"/(?:work|home|root|opt/pypi|tmp)/|pypi\.org|npmjs|docker\.io", text), path.name


def test_links_between_documents_resolve() -> None:
    """Relative links name existing files and headings."""
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for target, heading in re.findall(r"\]\((?!https?://)([^)#]*)#?([^)]*)\)", text):
            linked = (path.parent / target) if target else path
            assert linked.exists(), f"{path.name} links to {target}"
            assert not heading or heading in headings(linked), f"{path.name} links to {target}#{heading}"


async def test_the_tour_of_the_readme_gets_its_documented_verdicts() -> None:
    """The articles of the tour, posted in order, get the verdict that the comment above them names."""
    tour = re.findall(r'# \d\.[^#]*?"verdict": "(\w+)"[^#]*?-d \'(\{.*?\})\'', README, re.DOTALL)

    assert [promised for promised, _ in tour] == ["new", "duplicate", "related"]
    async with open_service(Settings(store_url="memory")) as service:
        for promised, body in tour:
            answer = await service.articles.ingest.submit(
                decode_article(json.dumps(json.loads(body)).encode())
            )
            assert answer.outcome.verdict == promised, answer


def test_benchmarks_named_in_documents_exist() -> None:
    """`scripts/bench NAME` and `tests.benchmarks.NAME`; decision records may name what is gone."""
    script = (ROOT / "scripts/bench").read_text("utf-8")
    known = set(re.findall(r"^#   ([a-z0-9_]+)", script, re.MULTILINE))
    assert known - {"analyse"} <= set(re.findall(r"[a-z0-9]+", script.partition("\ncase ")[2]))
    known |= {"NAME", "analyse", "post", "ingest", "commit", "plan", "table1"}
    missing = []
    for path in ROOT.glob("docs/**/*.md"):
        text = path.read_text(encoding="utf-8") if "decisions" not in path.parts else ""
        named = re.findall(r"scripts/bench ([a-z0-9_]+)", text)
        missing += [(path.name, name) for name in named if name not in known]
        for name in re.findall(r"tests[./]benchmarks[./]([a-z_]+)", text):
            folder = ROOT / "tests/benchmarks"
            if not (list(folder.glob(f"{name}.*")) or (folder / name).is_dir()):
                missing.append((path.name, name))

    assert missing == []


def test_help_of_the_benchmarks_names_all() -> None:
    """Not only the options of the one that runs without a name."""
    script = ROOT / "scripts/bench"
    listed, shown = (
        subprocess.run([script, option], capture_output=True, text=True, check=True).stdout
        for option in ("--list", "--help")
    )

    assert listed.split() and set(listed.split()) <= set(re.findall(r"\w+", shown))
    assert "set -euo" not in shown


def test_every_fault_of_the_runbook_is_run() -> None:
    """Thirty at least; by a test case, or by a fault of the chaos harness."""
    runbook = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .+ \| `(\w+)` \|$", runbook, re.MULTILINE)
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))

    assert len(rows) >= 30
    assert [
        name for name in rows if not re.search(rf"^ *(?:async )?def {name}\b", sources, re.MULTILINE)
    ] == []
