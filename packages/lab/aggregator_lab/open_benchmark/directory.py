"""Directory of the open benchmark: articles, data card and scoring script, usable without the service."""

from __future__ import annotations

import json
from collections import Counter
from importlib import resources
from pathlib import Path

from aggregator.errors import InvalidInput
from aggregator_lab.open_benchmark.generate import as_row, generate
from aggregator_lab.open_benchmark.phrases import PHRASES

_CARD = """# Open benchmark of news duplicates

* **Contents**: `articles.jsonl`, {articles:,} articles of {stories:,} invented stories; `score.py`, the
  scoring script.
* **Languages**: {langs}.
* **Origin**: generated with seed {seed} by `aggregator evaluate open-benchmark`; every sentence was written
  for it. Places and institutions are invented; there are no personal data.
* **License**: Apache-2.0.
* **Fields**: `id`, `title`, `text`, `lang`, `source`, `published_at`, `cluster` (equal: duplicates), `event`
  (equal: one story), `kind`.
* **Kinds**: {kinds}.
* **Duplicates**: original, abridged, page and update of a story. **Not duplicates**: teaser, paraphrase and
  translation (of one event), template (another event with the same set phrases).
* **Not for** absolute quality: sentences are short and formulaic. Real news is easier where the wording of
  articles differs more, and harder where outlets quote.

Score groups with `python score.py PREDICTED.jsonl`, one `{{"id": ..., "group": ...}}` per article. Choose
thresholds on even story numbers and score odd ones, or the reverse.
"""


def write_directory(out: Path, stories: int, seed: int) -> int:
    """Write the directory; returns the number of articles. Raises InvalidInput if it cannot be written."""
    rows = [as_row(article) for article in generate(stories, seed)]
    kinds = Counter(row["kind"] for row in rows)
    card = _CARD.format(
        articles=len(rows),
        stories=stories,
        langs=", ".join(PHRASES),
        seed=seed,
        kinds=", ".join(f"{kind} {count:,}" for kind, count in kinds.items()),
    )
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    script = resources.files("aggregator_lab.open_benchmark").joinpath("score.py").read_text("utf-8")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in (("articles.jsonl", lines), ("README.md", card), ("score.py", script)):
            (out / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{out} cannot be written: {error.strerror}.") from None
    return len(rows)
