"""``dedupe --load``: the deduplicated rows are loaded into an index."""

from pathlib import Path

import pytest

from aggregator.cli import main
from tests.support.archive_data import archive_rows, write_lines


def test_the_deduplicated_rows_are_loaded_into_an_index(
    tmp_path: Path, valkey_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Loading again changes nothing; a removed copy is a duplicate for the index."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    args = ["dedupe", str(source), "--out", str(tmp_path / "out"), "--processes", "1", "--no-progress"]

    assert main([*args, "--load", "--store", valkey_url]) == 0
    assert "45 lines: 45 new" in capsys.readouterr().err
    assert main([*args, "--load", "--store", valkey_url]) == 0
    assert "45 lines: 45 new" in capsys.readouterr().err  # a known id gets its stored answer
    copies = write_lines(
        tmp_path / "copies.jsonl", [row for row in archive_rows() if row["id"].endswith(("-cut", "-edited"))]
    )
    assert main(["check", str(copies), "--store", valkey_url, "--out", str(tmp_path / "v")]) == 0
    assert "0 new, 0 related, 10 duplicate" in capsys.readouterr().err
