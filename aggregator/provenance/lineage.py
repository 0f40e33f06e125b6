"""Lineage of a text: its first publisher; what each later article repeats and changes. Pure.

An article can repeat only what was published strictly earlier; it repeats that whose wording it resembles
most. Resemblance is estimated from samples, so among nearly equal ones the earliest counts. Changes are exact
with both texts, else estimated from the stored sketches and figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aggregator.analysis.shingles import estimate_overlap, estimate_overlaps
from aggregator.analysis.text.normalization import figures
from aggregator.analysis.text.tokenizer import shingle_units
from aggregator.dedup.diff import DiffSpan, diff_texts
from aggregator.domain import ArticleRecord
from aggregator.provenance.window import Publication

# Resemblances that differ by less are equal (scripts/bench provenance).
RESEMBLANCE_TOLERANCE = 0.01
MAX_PASSAGES = 5
MAX_PASSAGE_CHARS = 240
MAX_FIGURES = 20
MIN_PASSAGE_WORDS = 3  # shorter runs are spelling and punctuation


@dataclass(frozen=True, slots=True)
class Step:
    """One article of a lineage, ``lag_ms`` after the first publication.

    ``parent``: position of the article that it most likely repeats; ``resemblance`` to it, 0..1.
    """

    publication: Publication
    parent: int | None
    resemblance: float | None
    lag_ms: int

    @property
    def record(self) -> ArticleRecord:
        """The stored article."""
        return self.publication.record


@dataclass(frozen=True, slots=True)
class Lineage:
    """The articles of one text in order of publication."""

    steps: tuple[Step, ...]

    @property
    def first(self) -> Publication:
        """The first publication."""
        return self.steps[0].publication

    @property
    def is_first_certain(self) -> bool:
        """Whether no other outlet published at the same time, and the outlets stated the times."""
        others = [step.publication for step in self.steps if step.publication.source != self.first.source]
        known = all(p.basis == "published" for p in [self.first, *others])
        return not others or (known and others[0].at_ms > self.first.at_ms)


def trace(records: Iterable[ArticleRecord], tolerance: float = RESEMBLANCE_TOLERANCE) -> Lineage:
    """The lineage of the articles of one duplicate group; at least one."""
    publications = sorted(map(Publication.of, records), key=lambda publication: publication.order)
    steps = []
    for position, publication in enumerate(publications):
        earlier = [p for p in publications[:position] if p.at_ms < publication.at_ms]
        parent, resemblance = _closest(publication, earlier, tolerance) if earlier else (None, None)
        steps.append(Step(publication, parent, resemblance, publication.at_ms - publications[0].at_ms))
    return Lineage(tuple(steps))


def _closest(later: Publication, earlier: Sequence[Publication], tolerance: float) -> tuple[int, float]:
    sketches = [p.record.sketch for p in earlier]
    overlaps = estimate_overlaps(later.record.sketch, sketches)
    resemblances = [
        1.0 if p.record.text_hash == later.record.text_hash else overlap.resemblance
        for p, overlap in zip(earlier, overlaps, strict=True)
    ]
    enough = max(resemblances) - tolerance
    position = next(i for i, resemblance in enumerate(resemblances) if resemblance >= enough)
    return position, resemblances[position]


@dataclass(frozen=True, slots=True)
class TextChanges:
    """The difference of the texts: number of words, the longest passages, and figures that only one has."""

    cut_words: int
    added_words: int
    cut: tuple[str, ...]
    added: tuple[str, ...]
    cut_figures: tuple[str, ...]
    added_figures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """What a later article changed.

    same_text         equal word for word; without the texts known only if the headlines are equal too
    kept, own         share of the earlier wording that it has, share of its own that the earlier lacks, 0..1
    texts             the difference of the texts; None: estimated, a text is not stored
    """

    same_text: bool
    headline_changed: bool
    kept: float
    own: float
    figures_cut: int
    figures_added: int
    texts: TextChanges | None = None


def changes_between(
    earlier: ArticleRecord, later: ArticleRecord, texts: tuple[str, str] | None = None
) -> Changes:
    """What ``later`` changed of ``earlier``; ``texts``: of both, if they are stored."""
    same_text = earlier.text_hash == later.text_hash  # of headline and text
    same_text = same_text or (texts is not None and texts[0].split() == texts[1].split())
    headline_changed = _plain(earlier.title) != _plain(later.title)
    if texts is not None and not same_text:
        spans = diff_texts(*texts, earlier.lang, later.lang)
        exact, words = _text_changes(texts, spans, (earlier.lang, later.lang))
        kept, own = 1 - exact.cut_words / max(1, words[0]), exact.added_words / max(1, words[1])
        figures_cut, figures_added = len(exact.cut_figures), len(exact.added_figures)
        return Changes(same_text, headline_changed, kept, own, figures_cut, figures_added, exact)
    kept, own = (1.0, 0.0) if same_text else _estimate(earlier, later)
    before, after = set(earlier.figures), set(later.figures)
    return Changes(same_text, headline_changed, kept, own, len(before - after), len(after - before))


def _plain(title: str) -> str:
    return " ".join(title.casefold().split())


def _estimate(earlier: ArticleRecord, later: ArticleRecord) -> tuple[float, float]:
    before, after = earlier.sketch.size, later.sketch.size
    if not before or not after:
        return 0.0, 1.0
    resemblance = estimate_overlap(earlier.sketch, later.sketch).resemblance
    shared = resemblance / (1 + resemblance) * (before + after)
    return min(1.0, shared / before), max(0.0, 1 - shared / after)


def _text_changes(
    texts: tuple[str, str], spans: tuple[Sequence[DiffSpan], Sequence[DiffSpan]], langs: tuple[str, str]
) -> tuple[TextChanges, tuple[int, int]]:
    """The changes, and the number of words of both texts."""
    only_in = [[span.text for span in side if span.passage is None] for side in spans]
    counts = [
        [len(shingle_units(text, lang)) for text in own] for own, lang in zip(only_in, langs, strict=True)
    ]
    words = [len(shingle_units(text, lang)) for text, lang in zip(texts, langs, strict=True)]
    first, second = (list(dict.fromkeys(figures(text))) for text in texts)
    changes = TextChanges(
        cut_words=min(words[0], sum(counts[0])),
        added_words=min(words[1], sum(counts[1])),
        cut=_longest(only_in[0], counts[0]),
        added=_longest(only_in[1], counts[1]),
        cut_figures=tuple(f for f in first if f not in second)[:MAX_FIGURES],
        added_figures=tuple(f for f in second if f not in first)[:MAX_FIGURES],
    )
    return changes, (words[0], words[1])


def _longest(passages: Iterable[str], words: Iterable[int]) -> tuple[str, ...]:
    ranked = sorted(zip(words, passages, strict=True), key=lambda pair: -pair[0])
    shown = [" ".join(text.split()) for count, text in ranked if count >= MIN_PASSAGE_WORDS][:MAX_PASSAGES]
    return tuple(t if len(t) <= MAX_PASSAGE_CHARS else t[: MAX_PASSAGE_CHARS - 1] + "…" for t in shown)


def describe(changes: Changes) -> str:
    """The changes in one short phrase, for people."""
    if changes.same_text:
        return "the same text" + (", another headline" if changes.headline_changed else ", word for word")
    about = "" if changes.texts else "about "
    parts = [f"keeps {about}{changes.kept:.0%} of the wording"]
    if round(changes.own, 2):
        parts.append(f"{about}{changes.own:.0%} is its own")
    if changes.figures_cut or changes.figures_added:
        parts.append(f"figures: {changes.figures_cut} left out, {changes.figures_added} new")
    if changes.headline_changed:
        parts.append("another headline")
    return "; ".join(parts)
