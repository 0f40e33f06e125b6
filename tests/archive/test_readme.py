"""The examples of packages/archive/README.md run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from aggregator.cli import main
from tests.support.archive_data import archive_rows, write_lines

README = (Path(__file__).parents[2] / "packages/archive/README.md").read_text(encoding="utf-8")


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies by a threshold of resemblance are the later rows: the equal and the edited ones, not the cut."""
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "a.jsonl", archive_rows())
    assert main(["dedupe", "a.jsonl", "--out", "result", "--processes", "1", "--no-progress"]) == 0
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(example, names)

    assert {f"g{group}-equal" for group in range(5)} <= names["copies"]
    assert not {id_ for id_ in names["copies"] if id_.endswith("original") or "alone" in id_}
