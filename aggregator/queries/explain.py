"""Why are two articles called copies, related, or neither?

For two stored ids, or texts that are not stored. Bits and sample overlap are always there; the
shared wording itself needs the texts: pasted ones, or kept ones (setting ``keep_texts``).
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from aggregator.analysis.analyzer import separates_words
from aggregator.analysis.shingles import SHINGLE_CHARACTERS, SHINGLE_WORDS, Overlap, compare
from aggregator.analysis.simhash import hamming_distance
from aggregator.analysis.text import tokenizer
from aggregator.dedup.similarity import Terms, cosine
from aggregator.dedup.templates import FRAMED_RATIO, FRAMED_SIMILARITY, WHOLE, figures_changed
from aggregator.dedup.title_rule import required_similarity, title_similarity
from aggregator.dedup.verdict import (
    STANDARD_ERRORS,
    Policy,
    framed,
    is_copy,
    news,
    shared_for_copy,
    terms_alike,
)
from aggregator.domain import Analysis, Article, Sketch
from aggregator.errors import AggregatorError
from aggregator.index import Index

MAX_SHOWN = 200
Passages = tuple[str, ...]
_FRAMED = {
    "": "",
    "figures": " Hardly a figure stands in both, which makes them one frame filled in twice.",
    "names": " What each is most about does not stand in the other, which makes them one frame with other names.",
}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two articles; ``text`` is None when it is not kept."""

    label: str
    lang: str
    space: str
    fingerprint: int
    short: bool
    sketch: Sketch
    terms: Terms
    title: str
    figures: tuple[int, ...]
    text: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the rules see of two articles.

    ``distance`` and ``differing_bits`` are None when the spaces differ: such fingerprints cannot be
    compared. ``shared_passages``, ``own_passages`` (what only the one has, and only the other) and the figures
    are None when a text is not kept.
    """

    labels: tuple[str, str]
    spaces: tuple[str, str]
    fingerprints: tuple[int, int]
    distance: int | None
    differing_bits: tuple[int, ...] | None
    overlap: Overlap
    similarity: float
    is_copy: bool
    updated_figures: bool
    shared_passages: Passages | None
    own_passages: tuple[Passages, Passages] | None
    figures: tuple[tuple[str, ...], tuple[str, ...]] | None
    summary: str


class Explain:
    """Compares two articles; ``policy`` gives the thresholds to judge by."""

    def __init__(
        self,
        index: Index,
        analyse_many: Callable[[Sequence[Article]], Awaitable[list[Analysis | AggregatorError]]],
        policy: Policy,
    ) -> None:
        self._index = index
        self._analyse_many = analyse_many
        self.policy = policy

    async def pair(self, a: str | Article, b: str | Article) -> Explanation:
        """Two ids or articles. Raises NotFound, NoText."""
        first, second = await self.sides(a, b)
        # Beside the event loop: the shared passages of two texts of megabytes take a second.
        return await asyncio.to_thread(explain, first, second, self.policy)

    async def sides(self, a: str | Article, b: str | Article) -> tuple[Side, Side]:
        """What is compared of two ids or articles. Raises NotFound, NoText."""
        return await self._side(a), await self._side(b)

    async def _side(self, which: str | Article) -> Side:
        if isinstance(which, Article):
            analysis = (await self._analyse_many([which]))[0]
            if isinstance(analysis, AggregatorError):
                raise analysis
            return Side(
                which.id or which.title[:80] or "(text)",
                analysis.lang,
                analysis.space,
                analysis.fingerprint,
                analysis.short,
                analysis.sketch,
                analysis.terms,
                analysis.title,
                analysis.figures,
                analysis.text or which.title,
            )
        record = (await self._index.get(which)).record
        kept = await self._index.text_of(record.number)
        text = (
            zlib.decompress(kept).decode("utf-8", "surrogatepass") or record.title
            if kept is not None
            else None
        )
        return Side(
            record.id,
            record.lang,
            record.space,
            record.fingerprint,
            record.short,
            record.sketch,
            record.terms,
            record.title,
            record.figures,
            text,
        )


def explain(a: Side, b: Side, policy: Policy) -> Explanation:
    """Pure comparison of two sides."""
    comparable = a.space == b.space
    distance = hamming_distance(a.fingerprint, b.fingerprint) if comparable else None
    differing = a.fingerprint ^ b.fingerprint
    texts = a.text is not None and b.text is not None
    worded = bool(a.sketch.size and b.sketch.size)  # not where fingerprints alone are kept
    passages = _passages(a, b) if texts else None
    overlap = compare(a.sketch, b.sketch)
    similarity = cosine(a.terms, b.terms)
    titles = title_similarity(a.title, a.lang, b.title, b.lang)
    updated = figures_changed(a.figures, b.figures)
    alike, frame = False, ""
    if policy.name == "hamming":
        alike = distance is not None and distance <= policy.duplicate_bits
    elif policy.name == "titled":
        alike = comparable and similarity >= required_similarity(titles)
    elif comparable and is_copy(overlap, terms_alike(similarity, a.lang, b.lang), policy):
        frame = framed(overlap, a, b)
        alike = not frame
    told: set[str] = {news(a, b, policy), news(b, a, policy)} if alike else set()
    return Explanation(
        labels=(a.label, b.label),
        spaces=(a.space, b.space),
        fingerprints=(a.fingerprint, b.fingerprint),
        distance=distance,
        differing_bits=tuple(k for k in range(64) if differing >> k & 1) if comparable else None,
        overlap=overlap,
        similarity=round(similarity, 3),
        is_copy=alike and "figures" not in told,
        updated_figures=alike and updated,
        shared_passages=passages[0] if passages else None,
        own_passages=passages[1:] if passages else None,
        figures=_differing_figures(a.text or "", b.text or "") if texts else None,
        summary=(
            _apart(a, b)
            if distance is None
            else _titled_summary(similarity, titles, alike)
            if policy.name == "titled"
            else _summary(distance, overlap, similarity, alike, policy, worded)
        )
        + _FRAMED[frame]
        + _news(told, policy)
        + ("" if texts else _not_shown(worded)),
    )


def _passages(a: Side, b: Side) -> tuple[Passages, Passages, Passages]:
    """Runs of words that stand in both texts, only in ``a``, and only in ``b``; longest first."""
    first, second = tokenizer.words(a.text or "", a.lang), tokenizer.words(b.text or "", b.lang)
    width = SHINGLE_WORDS if separates_words(a.lang) else SHINGLE_CHARACTERS
    width = max(1, min(width, len(first), len(second)))
    here, there = _covered(first, second, width), _covered(second, first, width)
    return (
        _runs(first, here, True, a.lang),
        _runs(first, here, False, a.lang),
        _runs(second, there, False, b.lang),
    )


def _covered(words: Sequence[str], other: Sequence[str], width: int) -> list[bool]:
    """For each word whether it lies in a shingle that the other text has too."""
    known = {tuple(other[i : i + width]) for i in range(len(other) - width + 1)}
    covered = [False] * len(words)
    for i in range(len(words) - width + 1):
        if tuple(words[i : i + width]) in known:
            covered[i : i + width] = [True] * width
    return covered


def _runs(words: Sequence[str], covered: Sequence[bool], wanted: bool, lang: str) -> Passages:
    between = " " if separates_words(lang) else ""
    marked = groupby(zip(covered, words, strict=True), key=itemgetter(0))
    runs = [[word for _, word in run] for inside, run in marked if inside is wanted]
    runs.sort(key=len, reverse=True)
    return tuple(between.join(run) for run in runs[:MAX_SHOWN])


def _differing_figures(a: str, b: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    first, second = dict.fromkeys(tokenizer.figures(a)), dict.fromkeys(tokenizer.figures(b))
    return (
        tuple(f for f in first if f not in second)[:MAX_SHOWN],
        tuple(f for f in second if f not in first)[:MAX_SHOWN],
    )


def _titled_summary(similarity: float, titles: float, copy: bool) -> str:
    return (
        f"The headlines' similarity is {titles:.2f}, the texts' {similarity:.2f}, and policy titled asks for "
        f"{required_similarity(titles):g} under such headlines: {'the same' if copy else 'not the same'} event."
    )


def _summary(
    distance: int, overlap: Overlap, similarity: float, alike: bool, policy: Policy, worded: bool
) -> str:
    shared = (
        f"; {overlap.containment:.0%} of the shorter one's wording (about {overlap.shared:.0f} shingles) stands in "
        f"the other, and the similarity of their terms is {similarity:.2f}"
    )
    return (
        f"The articles are {distance} bit{'s' * (distance != 1)} apart{shared if worded else ''}, so they are "
        f"{'copies' if alike else 'not copies'} ({_rule(overlap, policy)})."
    )


def _not_shown(worded: bool) -> str:
    kept = "keep_texts is off" if worded else "fingerprints alone are kept (fingerprints_only)"
    return f" The shared wording is not shown, since {kept}: paste the texts."


def _apart(a: Side, b: Side) -> str:
    """Why two articles are never compared."""
    languages = f"languages {a.lang} and {b.lang}" if a.lang != b.lang else "they were analysed differently"
    return (
        f"The articles are in different spaces ({languages}: {a.space}, {b.space}), which are never compared, "
        "so neither is called a copy of the other."
    )


def _news(told: Set[str], policy: Policy) -> str:
    """What the later of two articles that are alike is called, when one tells more than the other."""
    if "figures" in told:
        why = "keep_updates is on" if policy.keep_updates else "in texts this short they are the news"
        return f" But their figures differ, and {why}: the later one is related, with updated figures."
    if "story" in told:
        return " But the shorter one only announces the longer one, which is related, not a duplicate, when it comes later."
    return ""


def _rule(overlap: Overlap, policy: Policy) -> str:
    """What makes a copy, of two texts of these lengths."""
    if policy.name == "hamming":
        return f"policy hamming: a copy is at most {policy.duplicate_bits} bits apart, whatever its wording"
    lengths = "of about one length" if overlap.size_ratio >= FRAMED_RATIO else "of these lengths"
    margin = STANDARD_ERRORS * overlap.error
    sure = f"or {policy.sure_containment:.0%}"
    if overlap.size_ratio >= FRAMED_RATIO and policy.sure_containment < WHOLE:
        sure += f" with one of {FRAMED_SIMILARITY:g}, or {WHOLE:.0%}"
    beyond = f" beyond the {margin:.0%} that a sample may err by" if margin >= 0.005 else ""
    return (
        f"a copy {lengths} shares {policy.min_containment:.0%}{beyond} and "
        f"{shared_for_copy(overlap, policy):.0f} shingles with a similarity of {policy.min_similarity:g}, {sure}"
    )
