"""The optional libraries that a job needs, checked before its first stage.

Most of them are used by a late stage, and a missing one must not end a run after hours.
"""

from __future__ import annotations

from pathlib import Path

from aggregator_archive.cluster import AVERAGE_LINKAGE_MAX_TEXTS, IGRAPH
from aggregator_archive.job import Job
from aggregator_archive.optional_imports import import_optional
from aggregator_archive.paragraph_vectors import GENSIM
from aggregator_archive.vectors import FAISS, STATIC_MODEL

PYARROW = ("pyarrow.parquet", "newsdedup-archive[parquet]", "Parquet")  # arguments of import_optional
ENCODERS = {"doc2vec": (GENSIM, FAISS), "embedding": (STATIC_MODEL, FAISS)}


def check_libraries(job: Job) -> None:
    """Raise ConfigurationError, naming the extra, if a library that the job needs is not installed."""
    needed = list(ENCODERS.get(job.method.encode, ()))
    if _needs_community_detection(job.method.cluster, job.cap):
        needed.append(IGRAPH)
    if job.format == "parquet" or any(Path(file).suffix == ".parquet" for file in job.inputs):
        needed.append(PYARROW)
    for library in needed:
        import_optional(*library)


def _needs_community_detection(cluster: str, cap: int) -> bool:
    """Whether a clustering needs igraph; average linkage does for components above its limit."""
    return cluster in ("leiden", "louvain") or (cluster == "average" and cap > AVERAGE_LINKAGE_MAX_TEXTS)
