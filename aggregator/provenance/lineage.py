"""Lineage of a text: its first publisher; what each later article repeats and changes. Pure.

An article repeats what was published strictly earlier and resembles it most; resemblance is estimated from
samples, so among nearly equal ones the earliest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

from aggregator.analysis.shingles import estimate_overlap, estimate_overlaps
from aggregator.analysis.source import outlet_key
from aggregator.analysis.text.tokenizer import shingle_units
from aggregator.dedup.copy_rule import HALF
from aggregator.dedup.diff import DiffSpan, diff_texts, missing_figures
from aggregator.dedup.wording import has_text
from aggregator.domain import LATE_MS, ArticleRecord, TimeBasis, arrival_ms_of, publication_time

RESEMBLANCE_TOLERANCE = 0.01  # resemblances that differ by less are equal (scripts/bench provenance)
MAX_PASSAGES = 5
MAX_PASSAGE_CHARS = 240
MAX_FIGURES = 20
MAX_OWN_OF_SHORTENED = 0.05  # half a last word, or "Read more at ..."
MIN_PASSAGE_WORDS = 3  # shorter runs are spelling and punctuation


@dataclass(frozen=True, slots=True)
class Publication:
    """An article with the time (ms since 1970 UTC) that its order is judged by."""

    record: ArticleRecord
    at_ms: int
    basis: TimeBasis

    @classmethod
    def of(cls, record: ArticleRecord, believed_ms: float = LATE_MS) -> Publication:
        """The publication of a stored article, whose source is believed so far; any date declared as past."""
        limit_ms, arrived_ms = inf if record.backfill else believed_ms, arrival_ms_of(record.first_version)
        return cls(record, *publication_time(record.published_at_ms, arrived_ms, limit_ms))

    def at(self, at_ms: int) -> Publication:
        """The publication with the time by which an event counts it, that of its first version."""
        known_ms, basis = publication_time(self.record.published_at_ms, self.arrived_ms)
        basis = basis if basis == "arrived" or at_ms == known_ms else "claimed"
        basis = "published" if self.record.updated_ms(at_ms) else basis
        return self if at_ms == self.at_ms else replace(self, at_ms=at_ms, basis=basis)

    @property
    def updated_ms(self) -> int:
        """When this version of it was published, if it is a later one than that of ``at_ms``, else 0."""
        return self.record.updated_ms(self.at_ms)

    @property
    def source(self) -> str:
        """The outlet, "" if unknown."""
        return self.record.source

    @property
    def outlet(self) -> str:
        """The key of the outlet, "" if unknown."""
        return outlet_key(self.record.source)

    @property
    def arrived_ms(self) -> int:
        """Arrival of the first version, in ms since 1970 UTC."""
        return arrival_ms_of(self.record.first_version)

    @property
    def has_text(self) -> bool:
        """Whether more than its headline is known."""
        return has_text(self.record)

    @property
    def order(self) -> tuple[int, int]:
        """Sort key: by time, at equal times by arrival."""
        return self.at_ms, self.record.first_version

    def repeats(self, other: Publication) -> bool:
        """Whether it is ``other`` or has half of its text, as far as both have one."""
        is_known = self is other or not (self.has_text and other.has_text)
        return is_known or estimate_overlap(other.record.sketch, self.record.sketch).containment >= HALF


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
    """What a later article changed; ``same_text``: without texts known only if the headlines are equal too.

    has_texts   whether both have a text; of headlines alone nothing is said but whether they are the same
    kept, own   share of the earlier wording that it has, share of its own that the earlier lacks, 0..1
    texts       the difference of the texts; None: estimated, a text is not stored
    """

    same_text: bool
    headline_changed: bool
    kept: float
    own: float
    figures_cut: int
    figures_added: int
    texts: TextChanges | None = None
    has_texts: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One article of a lineage; ``parent``: position of what it repeats most likely; resemblance: 0..1."""

    publication: Publication
    parent: int | None
    resemblance: float | None
    lag_ms: int
    changes: Changes | None = None

    @property
    def record(self) -> ArticleRecord:
        """The stored article."""
        return self.publication.record


@dataclass(frozen=True, slots=True)
class Lineage:
    """The articles of one text in order of publication; ``truncated``: there are more."""

    steps: tuple[Step, ...]
    truncated: bool = False

    @property
    def first(self) -> Publication:
        """The first publication."""
        return self.steps[0].publication

    @property
    def sources(self) -> set[str]:
        """The keys of the outlets that published it, "" among them if one is unknown."""
        return {step.publication.outlet for step in self.steps}

    @property
    def outlets(self) -> int:
        """Number of named outlets that published it."""
        return len(self.sources - {""})

    @property
    def is_first_certain(self) -> bool:
        """Whether the outlets stated different times, and the first arrived first or was declared as past."""
        first = self.first.record
        others = [s.publication for s in self.steps if s.publication.outlet != self.first.outlet]
        known = all(p.basis == "published" for p in [self.first, *others])
        arrived = first.backfill or all(first.first_version < p.record.first_version for p in others)
        return not others or (known and arrived and others[0].at_ms > self.first.at_ms)


def trace(found: Iterable[Publication], tolerance: float = RESEMBLANCE_TOLERANCE) -> Lineage:
    """The lineage of the articles of one duplicate group, at least one."""
    publications = sorted(found, key=lambda publication: publication.order)
    steps = []
    for position, publication in enumerate(publications):
        earlier = [p for p in publications[:position] if p.at_ms < publication.at_ms]
        parent, resemblance = _closest(publication, earlier, tolerance) if earlier else (None, None)
        steps.append(Step(publication, parent, resemblance, publication.at_ms - publications[0].at_ms))
    return Lineage(tuple(steps))


def _closest(later: Publication, earlier: Sequence[Publication], tolerance: float) -> tuple[int, float]:
    overlaps = estimate_overlaps(later.record.sketch, [p.record.sketch for p in earlier])
    resemblances = [
        1.0 if p.record.text_hash == later.record.text_hash else overlap.resemblance
        for p, overlap in zip(earlier, overlaps, strict=True)
    ]
    enough = max(resemblances) - tolerance
    position = next(i for i, resemblance in enumerate(resemblances) if resemblance >= enough)
    return position, resemblances[position]


def changes_between(
    earlier: ArticleRecord, later: ArticleRecord, texts: tuple[str, str] | None = None
) -> Changes:
    """What ``later`` changed of ``earlier``; ``texts``: of both, if they are stored."""
    same_text = earlier.text_hash == later.text_hash  # of headline and text
    same_text = same_text or (texts is not None and texts[0].split() == texts[1].split())
    headline_changed = earlier.title.casefold().split() != later.title.casefold().split()
    if not (has_text(earlier) and has_text(later)):
        return Changes(False, headline_changed, *_estimate(earlier, later), 0, 0, has_texts=False)
    if texts is not None and not same_text:
        spans = diff_texts(*texts, earlier.lang, later.lang)
        exact, words = _text_changes(texts, spans, (earlier.lang, later.lang))
        kept, own = 1 - exact.cut_words / max(1, words[0]), exact.added_words / max(1, words[1])
        figures_cut, figures_added = len(exact.cut_figures), len(exact.added_figures)
        return Changes(same_text, headline_changed, kept, own, figures_cut, figures_added, exact)
    kept, own = (1.0, 0.0) if same_text else _estimate(earlier, later)
    before, after = set(earlier.figures), set(later.figures)
    return Changes(same_text, headline_changed, kept, own, len(before - after), len(after - before))


def _estimate(earlier: ArticleRecord, later: ArticleRecord) -> tuple[float, float]:
    shared = estimate_overlap(earlier.sketch, later.sketch).shared  # all of a text that was only cut
    kept = shared / max(1, earlier.sketch.size)
    # The sketch may have the headline too, so the words that were kept are compared with all of its text.
    known = max(shared / max(1, later.sketch.size), kept * earlier.text_words / (later.text_words or inf))
    return kept, max(0.0, 1 - known)


def _text_changes(
    texts: tuple[str, str], spans: tuple[Sequence[DiffSpan], Sequence[DiffSpan]], langs: tuple[str, str]
) -> tuple[TextChanges, tuple[int, int]]:
    """The changes, and the number of words of both texts."""
    parts = [["\0" if span.passage is not None else span.text for span in side] for side in spans]
    only_in = ["".join(side).split("\0") for side in parts]  # a marked figure ends no passage
    counts = [[len(shingle_units(t, lang)) for t in own] for own, lang in zip(only_in, langs, strict=True)]
    first_words, second_words = map(len, map(shingle_units, texts, langs))
    cut_figures, added_figures = missing_figures(*texts, *langs)
    changes = TextChanges(
        cut_words=min(first_words, sum(counts[0])),
        added_words=min(second_words, sum(counts[1])),
        cut=_longest(only_in[0], counts[0]),
        added=_longest(only_in[1], counts[1]),
        cut_figures=tuple(cut_figures[:MAX_FIGURES]),
        added_figures=tuple(added_figures[:MAX_FIGURES]),
    )
    return changes, (first_words, second_words)


def _longest(passages: Iterable[str], words: Iterable[int]) -> tuple[str, ...]:
    ranked = sorted(zip(words, passages, strict=True), key=lambda pair: -pair[0])
    shown = [" ".join(text.split()) for count, text in ranked if count >= MIN_PASSAGE_WORDS][:MAX_PASSAGES]
    return tuple(t if len(t) <= MAX_PASSAGE_CHARS else t[: MAX_PASSAGE_CHARS - 1] + "…" for t in shown)


def describe(changes: Changes) -> str:
    """The changes in one short phrase, for people."""
    if not changes.has_texts:
        return "a similar headline" if changes.headline_changed else "the same headline"
    if changes.same_text:
        return "the same text" + (", another headline" if changes.headline_changed else ", word for word")
    about = "" if changes.texts else "about "
    if changes.own < min(MAX_OWN_OF_SHORTENED, (1 - changes.kept) / 4):
        parts = [f"shortened copy with {about}{changes.kept:.0%} of the original"]
    else:
        parts = [f"keeps {about}{changes.kept:.0%} of the earlier text"]
        parts += [f"{changes.own:.0%} is its own"] if changes.texts and round(changes.own, 2) else []
    if changes.figures_cut or changes.figures_added:
        parts.append(f"figures: {changes.figures_cut} left out, {changes.figures_added} new")
    if changes.headline_changed:
        parts.append("another headline")
    return "; ".join(parts)
