"""Where the development data lies: ``AGGREGATOR_DATA``, else beside the project. Whoever needs it skips without."""

import os
from pathlib import Path

DATA = Path(os.environ.get("AGGREGATOR_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
