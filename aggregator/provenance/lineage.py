"""Lineage of a text: its first publisher, and for each later article the one it most likely repeats. Pure.

Articles are ordered by publication time. An article can repeat only articles that were published strictly
earlier; of these it repeats the one whose wording it resembles most. Resemblance is estimated from samples,
so among nearly equal ones the earliest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aggregator.analysis.shingles import estimate_overlaps
from aggregator.domain import ArticleRecord
from aggregator.provenance.publication import Publication

# Resemblances that differ by less are equal (scripts/bench provenance).
RESEMBLANCE_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Step:
    """One article of a lineage.

    parent       position of the article that it most likely repeats; None: nothing was published earlier
    resemblance  to the parent, 0..1; None without a parent
    lag_ms       time after the first publication, >= 0
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
    """The articles of one text in order of publication; the first step is the first publisher's.

    ``is_first_certain``: no other outlet published at the same time, and the first two publication times are
    those of the outlets, not arrival times or days.
    """

    steps: tuple[Step, ...]

    @property
    def first(self) -> Publication:
        """The first publication."""
        return self.steps[0].publication

    @property
    def is_first_certain(self) -> bool:
        """See the class."""
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
    """Position and resemblance of the article that ``later`` repeats."""
    sketches = [p.record.sketch for p in earlier]
    overlaps = estimate_overlaps(later.record.sketch, sketches)
    resemblances = [
        1.0 if p.record.text_hash == later.record.text_hash else overlap.resemblance
        for p, overlap in zip(earlier, overlaps, strict=True)
    ]
    enough = max(resemblances) - tolerance
    position = next(i for i, resemblance in enumerate(resemblances) if resemblance >= enough)
    return position, resemblances[position]
