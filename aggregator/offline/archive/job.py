"""What a run is asked to do, where its files lie, and whether an earlier run's work can be taken up."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from aggregator.dedup.verdict import Policy
from aggregator.errors import InvalidInput
from aggregator.offline import jsonl
from aggregator.offline.archive.checkpoint import write_bytes
from aggregator.offline.archive.encode import Encoding

WORK_FORMAT_VERSION = 3  # of the files in ``Job.work``; work of another one is not taken up
OutputFormat = Literal["jsonl", "parquet"]
RepresentativeRule = Literal["earliest", "longest", "medoid"]


@dataclass(frozen=True, slots=True)
class Method:
    """One value per stage.

    encode      simhash | sketch | combined: which join proposes candidates; or tfidf | doc2vec | embedding,
                the 64 nearest by vectors with at least this ``cosine``
    verify      none | containment | titles (``titles.py``) | classifier, with its ``weights`` (``classifier.py``)
    cluster     union-find | average | leiden | louvain, with its ``threshold``
    radius_bits of the fingerprint join, 0..3
    """

    encode: str = "combined"
    verify: str = "containment"
    cluster: str = "average"
    threshold: float = 0.02
    radius_bits: int = 3
    cosine: float = 0.8  # Zhang's
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """All that decides the result; ``within_ms`` None links articles of any dates."""

    inputs: tuple[str, ...]
    out_dir: Path
    encoding: Encoding = field(default_factory=Encoding)
    method: Method = field(default_factory=Method)
    policy: Policy = field(default_factory=Policy)
    within_ms: int | None = None
    cap: int = 1_000
    representative: RepresentativeRule = "earliest"
    format: OutputFormat = "jsonl"
    write_copy: bool = True
    seed: int = 1

    @property
    def work_dir(self) -> Path:
        """Where unfinished work lies."""
        return self.out_dir / "work"

    def identity(self) -> dict[str, Any]:
        """What must be equal for work to be taken up again."""
        stats = [Path(file).stat() for file in self.inputs]
        files = [
            [str(Path(file).resolve()), stat.st_size, stat.st_mtime_ns]
            for file, stat in zip(self.inputs, stats, strict=True)
        ]
        return {
            "version": WORK_FORMAT_VERSION,
            "files": files,
            "encoding": asdict(self.encoding),
            "method": asdict(self.method),
            "policy": asdict(self.policy),
            "within_ms": self.within_ms,
            "cap": self.cap,
        }


def prepare_work_dir(job: Job, *, fresh: bool) -> bool:
    """Make the directories; True when an earlier run's work is there to go on with.

    Raises BadInput when the work is of other files, settings or another version.
    """
    if jsonl.STDIN in job.inputs:
        raise InvalidInput("dedupe reads its input twice, so it cannot be standard input; name a file.")
    jsonl.check_readable(job.inputs)
    if fresh:
        shutil.rmtree(job.work_dir, ignore_errors=True)
    try:
        for name in ("chunks", "columns", "candidates", "confirmed"):
            (job.work_dir / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{job.out_dir} cannot be written: {error.strerror}.") from None
    return _can_resume(job)


def _can_resume(job: Job) -> bool:
    file = job.work_dir / "job.json"
    now = json.loads(json.dumps(job.identity()))
    if not file.exists():
        write_bytes(file, json.dumps(now).encode())
        return False
    if json.loads(file.read_bytes()) != now:
        raise InvalidInput(
            f"{job.work_dir} holds unfinished work on other files, with other settings or of another version; "
            "give another --out, or --fresh to discard it."
        )
    return True
