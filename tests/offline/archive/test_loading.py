"""What is left of an archive becomes the back-file of an index."""

from pathlib import Path

import pytest

from aggregator.cli import main
from tests.support.archive_data import archive_rows, write_lines


def test_the_deduplicated_rows_are_loaded_and_known_afterwards(
    tmp_path: Path, valkey_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Loading again changes nothing; a copy that was removed is a duplicate to the index."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    args = ["dedupe", str(source), "--out", str(tmp_path / "out"), "--processes", "1", "--no-progress"]

    assert main([*args, "--load", "--store", valkey_url]) == 0
    assert "45 lines: 45 new" in capsys.readouterr().err
    assert main([*args, "--load", "--store", valkey_url]) == 0
    assert "45 lines: 45 new" in capsys.readouterr().err  # a repeat of an id answers as the first time
    copies = write_lines(
        tmp_path / "copies.jsonl", [r for r in archive_rows() if r["id"].endswith(("-cut", "-edited"))]
    )
    assert main(["check", str(copies), "--store", valkey_url, "--out", str(tmp_path / "v")]) == 0
    assert "0 new, 0 related, 10 duplicate" in capsys.readouterr().err
    assert main([*args, "--load", "--no-copy", "--store", valkey_url]) == 2
