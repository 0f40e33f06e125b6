"""Blocks of a guide, and the script that runs them.

A block is fenced by three backticks with a language and, optionally, a title:

    any language, title="NAME"   written to the file NAME
    sh                           run by bash; all blocks of a guide share one session
    python, js                   run as a program; js only if node is installed
    text                         output of the block before: its lines in this order, others may be between
                                 them; "..." is any text
    others                       only shown
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```([a-z]+)(?: title=\"([^\"\n]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SUFFIXES = {"python": "py", "js": "mjs"}
PROLOGUE = "set -euo pipefail\ntrap 'jobs -p | xargs -r kill' EXIT\n"
_MARK = "=== block "


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; ``title`` is empty unless it is a file."""

    language: str
    title: str
    text: str

    @property
    def is_run(self) -> bool:
        """Whether the block is run on this machine."""
        if self.title or (self.language == "js" and shutil.which("node") is None):
            return False
        return self.language in ("sh", *SUFFIXES)


def parse_blocks(markdown: str) -> list[Block]:
    """All blocks in order."""
    return [Block(*found) for found in FENCE.findall(markdown)]


def write_script(blocks: Sequence[Block], directory: Path) -> Path:
    """Write the files of the guide and a bash script that runs its blocks; returns the script."""
    script = PROLOGUE
    for number, block in enumerate(blocks):
        if block.title:
            (directory / block.title).write_text(block.text, encoding="utf-8")
        if not block.is_run:
            continue
        script += f"echo; echo '{_MARK}{number}'\n"
        if block.language == "sh":
            script += block.text
            continue
        name = f"block-{number}.{SUFFIXES[block.language]}"
        (directory / name).write_text(block.text, encoding="utf-8")
        script += f"{'python' if block.language == 'python' else 'node'} {name}\n"
    path = directory / "blocks.sh"
    path.write_text(script, encoding="utf-8")
    return path


def split_output(output: str) -> dict[int, list[str]]:
    """Lines that each block printed, by its number."""
    parts = re.split(rf"^{_MARK}(\d+)$", output, flags=re.MULTILINE)
    return {int(number): text.splitlines() for number, text in zip(parts[1::2], parts[2::2], strict=True)}


def missing_line(expected: str, printed: Sequence[str]) -> str | None:
    r"""The first line of a ``text`` block that was not printed in its place; None if all were.

    >>> missing_line("1 ...", ["zero", "1 and more"])
    >>> missing_line("b\\na", ["a", "b"])
    'a'
    """
    rest = iter(printed)
    for line in expected.splitlines():
        pattern = re.compile(".*".join(map(re.escape, line.split("..."))))
        if not any(pattern.fullmatch(given) for given in rest):
            return line
    return None
