"""Parameters of a run, its directories, and the check whether unfinished work can be resumed."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from aggregator.dedup.policy import Policy
from aggregator.errors import InvalidInput
from aggregator_archive import rows
from aggregator_archive.arrays import write_bytes
from aggregator_archive.encode import Encoding
from aggregator_archive.optional_imports import import_optional

WORK_FORMAT_VERSION = 15  # of the files in ``Job.work_dir``; work of another version is refused
OutputFormat = Literal["jsonl", "parquet"]
RepresentativeRule = Literal["earliest", "longest", "medoid"]
TABLES = ("pairs", "clusters", "representatives", "deduplicated")


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that determines the result of a run.

    threshold   minimum average resemblance within a group, 0 to 1
    radius_bits maximum Hamming distance of fingerprints that are compared, 0 to 3
    within_ms   link only articles whose dates differ by less; None: of any dates
    cap         maximum number of distinct texts in a group
    by_headline remove rows without a text, too, by their headlines
    seed        of the random choice of clusters for review
    """

    inputs: tuple[str, ...]
    out_dir: Path
    encoding: Encoding = field(default_factory=Encoding)
    policy: Policy = field(default_factory=Policy)
    threshold: float = 0.02
    radius_bits: int = 3
    within_ms: int | None = None
    cap: int = 1_000
    representative: RepresentativeRule = "earliest"
    format: OutputFormat = "jsonl"
    by_headline: bool = False
    seed: int = 1

    @property
    def work_dir(self) -> Path:
        """Directory of the working files of an unfinished run."""
        return self.out_dir / "work"

    def table(self, name: str) -> Path:
        """File of a table of the results."""
        return self.out_dir / f"{name}.{self.format}"

    def identity(self) -> dict[str, Any]:
        """The parameters that must be equal for work to be resumed."""
        stats = [(str(path.resolve()), path.stat()) for path in map(Path, self.inputs)]
        return {
            "version": WORK_FORMAT_VERSION,
            "files": [[path, stat.st_size, stat.st_mtime_ns] for path, stat in stats],
            "encoding": asdict(self.encoding),
            "method": [self.threshold, self.radius_bits],
            "policy": asdict(self.policy),
            "within_ms": self.within_ms,
            "cap": self.cap,
        }


def check_out_dir(job: Job) -> None:
    """Raise InvalidInput if the run would overwrite or delete an input or a file that no run wrote.

    Also if a table of an earlier run, in another format, would remain.
    """
    summary, unfinished = job.out_dir / "summary.json", job.work_dir / "job.json"
    pages = [job.out_dir / name for name in ("bad_rows.jsonl", "report.html", "review.html", "summary.json")]
    tables = [replace(job, format=kind).table(name) for kind, name in product(get_args(OutputFormat), TABLES)]
    replaced = {*pages, *map(job.table, TABLES)}
    if not unfinished.exists():
        tables += [path for path in job.work_dir.rglob("*") if path.is_file()]
        if not (summary.exists() and b'"distinct_texts"' in summary.read_bytes()):
            replaced.clear()
    inputs = {Path(file).resolve() for file in job.inputs}
    for path in filter(Path.exists, [*tables, *pages]):
        if path.resolve() in inputs:
            raise InvalidInput(f"out: the input {path} has the name of a result; choose another --out.")
        if path not in replaced:
            how = f"repeat --format {path.suffix[1:]}, move it" if replaced else "move it"
            raise InvalidInput(
                f"out: {path} is not a result that this run replaces; {how}, or choose another --out."
            )


def prepare_work_dir(job: Job, *, fresh: bool) -> bool:
    """Create the directories of a run; True if it resumes unfinished work, which ``fresh`` discards.

    Raises InvalidInput if the work is of other files, other settings or another version, and
    ConfigurationError if Parquet is read or written without pyarrow; nothing is created then.
    """
    if job.format == "parquet" or any(Path(file).suffix == ".parquet" for file in job.inputs):
        import_optional(*rows.PYARROW)
    if fresh:
        shutil.rmtree(job.work_dir, ignore_errors=True)
    try:
        for name in ("chunks", "columns", "candidates", "confirmed"):
            (job.work_dir / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{job.out_dir} cannot be written: {error.strerror}.") from None
    file, now = job.work_dir / "job.json", json.loads(json.dumps(job.identity()))
    if not file.exists():
        write_bytes(file, json.dumps(now).encode())
        return False
    if json.loads(file.read_bytes()) != now:
        raise InvalidInput(
            f"{job.work_dir} holds unfinished work of other files, other settings or another version; "
            "choose another --out, or discard it with --fresh."
        )
    return True


def discard_empty_work(job: Job) -> None:
    """Delete the directories of a run that ended before its first block was encoded."""
    if not any((job.work_dir / "chunks").glob("*.npz")):
        shutil.rmtree(job.work_dir, ignore_errors=True)
        with suppress(OSError):  # missing, or holds other files
            job.out_dir.rmdir()
