"""The documents say what the code does: settings, commands and version are compared, not remembered."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import aggregator
from aggregator.app import open_service
from aggregator.cli import options
from aggregator.contract.decoding import decode_article
from aggregator.settings import Settings, markdown_table

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def commands() -> list[str]:
    """Names of all commands of the parser."""
    actions = options.build_parser()._actions
    return next(list(a.choices) for a in actions if isinstance(a, argparse._SubParsersAction))


def headings(path: Path) -> set[str]:
    """Anchors that a Markdown viewer gives the headings of a document."""
    found = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found}


def test_the_configuration_table_is_the_one_the_settings_print() -> None:
    """Paste the output of settings.markdown_table() between the two comments."""
    found = re.search(r"<!-- settings:.*?-->\n(.*?)\n<!-- /settings -->", README, re.DOTALL)

    assert found is not None
    assert found[1] == markdown_table()


def test_every_command_stands_in_the_readme_and_no_other() -> None:
    """The command table is complete, and nothing in it was removed from the program."""
    described = set(re.findall(r"^\| `aggregator ([a-z]+)", README, re.MULTILINE))

    assert described == set(commands())


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    """A release changes both."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entry = re.search(r"^## \[([^\]]+)\]", changelog, re.MULTILINE)

    assert entry is not None
    assert entry[1] == aggregator.__version__


def test_every_script_stands_in_the_readme() -> None:
    """Whoever clones the project finds all verbs in one place."""
    named = set(
        re.findall(r"scripts/([a-z-]+)", README + (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    )
    there = {path.name for path in (ROOT / "scripts").iterdir() if not path.name.startswith((".", "__"))}

    assert there <= named
    assert named <= there


def test_architecture_names_every_module_and_package() -> None:
    """Each top-level module or package has the question it answers; nothing removed is still described."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    package = ROOT / "aggregator"
    there = {p.name for p in package.glob("*.py") if not p.name.startswith("__")}
    there |= {p.name + "/" for p in package.iterdir() if (p / "__init__.py").exists()}
    described = set(re.findall(r"^\| `([a-z_]+(?:\.py|/))`", text, re.MULTILINE))

    assert there == described


def test_documents_name_no_machine_and_no_registry() -> None:
    """A path of somebody's disk or the host of a package index has no place in them."""
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"/(?:work|home|root|opt/pypi|tmp)/|pypi\.org|npmjs|docker\.io", text), path.name


def test_links_between_documents_lead_somewhere() -> None:
    """Relative links only name files that exist, and headings that stand in them."""
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for target, heading in re.findall(r"\]\((?!https?://)([^)#]*)#?([^)]*)\)", text):
            there = (path.parent / target) if target else path
            assert there.exists(), f"{path.name} links to {target}"
            assert not heading or heading in headings(there), f"{path.name} links to {target}#{heading}"


async def test_the_tour_of_the_readme_gets_the_verdicts_that_it_promises() -> None:
    """Every article that a reader is told to post, in order: the verdict stands in the comment above it."""
    tour = re.findall(r'# \d\.[^#]*?"verdict": "(\w+)"[^#]*?-d \'(\{.*?\})\'', README, re.DOTALL)

    assert [promised for promised, _ in tour] == ["new", "duplicate", "related"]
    async with open_service(Settings(store_url="memory")) as service:
        for promised, body in tour:
            answer = await service.ingest.submit(decode_article(json.dumps(json.loads(body)).encode()))
            assert answer.outcome.verdict == promised, answer
