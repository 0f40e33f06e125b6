"""Directory of the development data: ``AGGREGATOR_DATA``, else ``shared/data`` next to the checkout."""

import os
from pathlib import Path

# It may be absent; tests that need a file skip without it.
DATA = Path(os.environ.get("AGGREGATOR_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
