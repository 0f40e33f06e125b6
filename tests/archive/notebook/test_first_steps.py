"""The notebook of the documentation is executed, and its stored outputs are those of this version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.notebook import execute, store_outputs, stored_output

NOTEBOOK = Path(__file__).parents[3] / "docs" / "notebooks" / "first-steps.ipynb"


@pytest.mark.integration
def test_stored_outputs_are_current() -> None:
    """To store new ones: python -m tests.support.notebook docs/notebooks/first-steps.ipynb."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))

    for number, (cell, output) in enumerate(execute(notebook), 1):
        assert cell["execution_count"] == number
        assert stored_output(cell) == output, "".join(cell["source"])


def test_the_runner_stores_prints_and_values(tmp_path: Path) -> None:
    """Names are shared by the cells; a cell may fail."""
    cells = [
        {"cell_type": "code", "source": ["a = 1\n", "print('one')\n", "a + 1"], "outputs": []},
        {"cell_type": "markdown", "source": ["text"]},
        {"cell_type": "code", "source": ["b = a"], "outputs": []},
    ]
    file = tmp_path / "a.ipynb"
    file.write_text(json.dumps({"cells": cells}))
    store_outputs(file)
    stored = json.loads(file.read_text())["cells"]

    assert [stored_output(cell) for cell in stored if cell["cell_type"] == "code"] == ["one\n2", ""]
    with pytest.raises(ZeroDivisionError):
        list(execute({"cells": [{"cell_type": "code", "source": ["1 / 0"]}]}))
