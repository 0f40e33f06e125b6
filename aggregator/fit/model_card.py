"""Model cards: the Markdown description that accompanies a bundled feature model."""

from __future__ import annotations

import textwrap

from aggregator.analysis.features import FeatureModel
from aggregator.analysis.simhash import FINGERPRINT_BITS

_CONTENTS = (
    "The file contains a vocabulary, the inverse article frequency of each term, and the matrix and offset "
    "that map term weights to 64 sums. It contains no text. `scripts/fit-default-models` fitted it. "
    "Fingerprints of models with different ids are not comparable."
)


def model_card(model: FeatureModel, file_name: str, size_bytes: int, limits: str) -> str:
    """Return the card of a model file: corpus, licence, size, settings, hashes and ``limits`` (sentences)."""
    about, settings = dict(model.metadata), dict(model.metadata.get("settings", {}))
    rows = [
        ("File", f"`{file_name}`, {size_bytes:,} bytes"),
        ("Language group", f"`{model.group}`"),
        ("Model id", f"`{model.id}`"),
        ("Content hash (SHA-256)", f"`{model.content_hash}`"),
        ("Corpus", str(about.get("corpus", "not stated"))),
        ("Licence of the corpus", str(about.get("licence", "not stated"))),
        ("Articles", f"{about.get('articles', 0):,}"),
        ("Period", str(about.get("period", "not stated"))),
        ("Index terms", f"`{model.recipe}`"),
        ("Vocabulary", f"{len(model.vocabulary):,} terms"),
        ("Matrix", f"{len(model.vocabulary):,} x {FINGERPRINT_BITS}, float16"),
        *((f"Setting `{name}`", f"`{value}`") for name, value in settings.items()),
    ]
    return render(model.group, rows, _CONTENTS, limits)


def render(group: str, rows: list[tuple[str, str]], contents: str, limits: str) -> str:
    """Return a card of these rows; ``contents``: what the file contains."""
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return (
        f"# Feature model `{group}`\n\n"
        f"| | |\n| --- | --- |\n{table}\n\n"
        f"{textwrap.fill(contents, 110)}\n\n{textwrap.fill(f'**Limits:** {limits}', 110)}\n"
    )
