"""The optional libraries that a job needs, checked before its first stage.

Most of them are used by a late stage, and a missing one must not end a run after hours.
"""

from __future__ import annotations

from pathlib import Path

from aggregator.offline.archive.cluster import AVERAGE_LINKAGE_MAX_TEXTS
from aggregator.offline.archive.job import Job
from aggregator.optional_imports import import_optional

# Module, extra and what needs it, as of ``import_optional``.
Library = tuple[str, str, str]
IGRAPH: Library = ("igraph", "corpus", "Community detection")
FAISS: Library = ("faiss", "neural", "Search by vectors")
PYARROW: Library = ("pyarrow.parquet", "corpus", "Parquet")
ENCODERS: dict[str, tuple[Library, ...]] = {
    "doc2vec": (("gensim.models.doc2vec", "neural", "Doc2Vec"), FAISS),
    "embedding": (("static_model", "neural", "Sentence embedding"), FAISS),
}


def check_libraries(job: Job) -> None:
    """Raise ConfigurationError, naming the extra, if a library that the job needs is not installed."""
    needed = list(ENCODERS.get(job.method.encode, ()))
    if needs_community_detection(job.method.cluster, job.cap):
        needed.append(IGRAPH)
    if job.format == "parquet" or any(Path(file).suffix == ".parquet" for file in job.inputs):
        needed.append(PYARROW)
    for library in needed:
        import_optional(*library)


def needs_community_detection(cluster: str, cap: int) -> bool:
    """Whether a clustering needs igraph; average linkage does for components above its limit."""
    return cluster in ("leiden", "louvain") or (cluster == "average" and cap > AVERAGE_LINKAGE_MAX_TEXTS)
