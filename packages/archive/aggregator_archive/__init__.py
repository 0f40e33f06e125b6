"""Deduplication of a whole archive: the duplicate groups of millions of articles, found by batch joins.

Start with ``pipeline.py`` (the stages). ``job.py`` holds the parameters of a run, ``output.py``
writes its files. Design: docs/design/archives.md; measurements: docs/benchmarks/archives.md.
"""

__version__ = "0.1.0"
