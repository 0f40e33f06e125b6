"""Python interface for notebooks: duplicates, events and feature vectors of tables in memory.

    from aggregator_archive.notebook import Deduplicator, EventDetector, FeatureModel

    columns = Deduplicator(language="en").run(frame)       # one value per row of ``frame``
    events = EventDetector().run(frame)                    # one value per event
    vectors = FeatureModel("en").transform(frame["text"])  # (n, 64) float32

No service and no store are needed. Input: an iterable of mappings or of texts, a mapping of columns, or a
table with the Arrow PyCapsule interface (pandas, Polars, PyArrow). Output: columns by name, which
``pandas.DataFrame``, ``polars.DataFrame`` and ``pyarrow.table`` accept. Example:
docs/notebooks/first-steps.ipynb.
"""

from aggregator_archive.notebook.deduplicator import Deduplicator
from aggregator_archive.notebook.event_detector import EventDetector
from aggregator_archive.notebook.feature_model import FeatureModel

__all__ = ["Deduplicator", "EventDetector", "FeatureModel"]
