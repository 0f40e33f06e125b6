"""Optional libraries are required before a run starts, and only those that it needs."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from aggregator.errors import ConfigurationError
from aggregator_archive.executors import Pool
from aggregator_archive.job import Job, Method, prepare_work_dir
from aggregator_archive.libraries import check_libraries
from aggregator_archive.pipeline import ProgressListener, run_pipeline
from aggregator_lab.evaluation import methods
from tests.lab.evaluation.test_methods import gold
from tests.support.archive_data import archive_rows, write_lines

OPTIONAL = ("faiss", "gensim.models.doc2vec", "igraph", "pyarrow.parquet", "static_model")


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in OPTIONAL:
        monkeypatch.setitem(sys.modules, module, None)  # its import fails


def test_a_job_by_default_needs_none() -> None:
    """Average linkage up to its limit, JSON lines, and joins instead of vectors."""
    check_libraries(Job(("a.jsonl",), Path("out")))


@pytest.mark.parametrize(
    ("job", "package", "extra"),
    [
        (Job(("a.jsonl",), Path("out"), method=Method(cluster="leiden")), "igraph", "corpus"),
        (Job(("a.jsonl",), Path("out"), cap=5_000), "igraph", "corpus"),
        (Job(("a.jsonl",), Path("out"), method=Method(encode="doc2vec")), "gensim", "neural"),
        (Job(("a.jsonl",), Path("out"), method=Method(encode="embedding")), "static_model", "neural"),
        (Job(("a.jsonl",), Path("out"), format="parquet"), "pyarrow", "parquet"),
        (Job(("a.parquet",), Path("out")), "pyarrow", "parquet"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(job: Job, package: str, extra: str) -> None:
    """The one that the job needs, whichever stage uses it."""
    with pytest.raises(ConfigurationError, match=rf"needs {package}, .*newsdedup-archive\[{extra}\]"):
        check_libraries(job)


def test_a_run_without_its_library_writes_nothing(tmp_path: Path) -> None:
    """Community detection is the last stage."""
    source = write_lines(tmp_path / "a.jsonl", archive_rows())
    job = Job((str(source),), tmp_path / "out", method=replace(Method(), cluster="louvain"))
    prepare_work_dir(job, fresh=True)

    with pytest.raises(ConfigurationError, match="igraph"):
        run_pipeline(job, Pool(None, 1), ProgressListener())
    assert not list((job.work_dir / "chunks").iterdir())


def test_methods_are_not_evaluated_without_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leiden clustering is used with each of them."""
    monkeypatch.setattr(methods, "ProcessPoolExecutor", None)  # nothing is started

    with pytest.raises(ConfigurationError, match="igraph"):
        methods.evaluate(gold(), methods=["simhash"])
