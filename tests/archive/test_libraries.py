"""Parquet is refused before a run starts if pyarrow is not installed."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from aggregator.errors import ConfigurationError
from aggregator_archive.executors import Pool
from aggregator_archive.job import Job, prepare_work_dir
from aggregator_archive.pipeline import ProgressListener, run_pipeline
from tests.support.archive_data import archive_rows, write_lines


def test_a_run_without_its_library_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra; JSON lines need no library."""
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)  # its import fails
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    job = Job((str(source),), tmp_path / "out", format="parquet")
    prepare_work_dir(job, fresh=True)

    with pytest.raises(ConfigurationError, match=r"Parquet needs pyarrow, .*newsdedup-archive\[parquet\]"):
        run_pipeline(job, Pool(None, 1), ProgressListener())
    assert not list((job.work_dir / "chunks").iterdir())
    assert run_pipeline(replace(job, format="jsonl"), Pool(None, 1), ProgressListener()).columns
