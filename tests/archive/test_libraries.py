"""A refused run of ``aggregator dedupe`` leaves nothing behind, and the next one starts afresh."""

import sys
from pathlib import Path

import pytest

from aggregator.cli import main
from tests.support.archive_data import archive_rows, write_lines


@pytest.mark.integration
@pytest.mark.parametrize(
    ("missing", "options", "message"),
    [
        (
            "pyarrow.parquet",
            ("--format", "parquet"),
            f"which is not installed; run `{sys.executable} -m pip install 'newsdedup-archive[parquet]'`.",
        ),
        ("distributed", ("--dask", "tcp://127.0.0.1:1"), "--dask needs distributed, which is not installed"),
        ("", ("--models-dir", "nowhere"), "nowhere"),
    ],
)
def test_a_refused_run_leaves_nothing_behind(
    missing: str,
    options: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither directory nor work, also if the reason is found by the first stage."""
    monkeypatch.setitem(sys.modules, missing or "no_module", None)  # its import fails
    source, out = write_lines(tmp_path / "a.jsonl", archive_rows()), tmp_path / "out"
    command = ["dedupe", "--out", str(out), "--processes", "1", "--no-progress"]

    assert main([*command, str(source), *options]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
    other = write_lines(tmp_path / "b.jsonl", archive_rows()[:3])
    assert main([*command, str(other)]) == 0
