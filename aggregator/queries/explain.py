"""Why are two articles called copies, related, or neither?

For two stored ids, or texts that are not stored. Bits and sample overlap are always there; the
shared wording itself needs the texts: pasted ones, or kept ones (setting ``store_texts``).
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from aggregator.analysis.analyzer import uses_spaces
from aggregator.analysis.shingles import SHINGLE_CHARACTERS, SHINGLE_WORDS, OverlapEstimate, estimate_overlap
from aggregator.analysis.simhash import hamming_distance
from aggregator.analysis.text import tokenizer
from aggregator.dedup.similarity import WeightedTerms, cosine
from aggregator.dedup.templates import (
    NEAR_COMPLETE_CONTAINMENT,
    SAME_LENGTH_RATIO,
    TEMPLATE_MAX_SIMILARITY,
    figures_changed,
)
from aggregator.dedup.title_rule import required_similarity, title_similarity
from aggregator.dedup.verdict import (
    CONTAINMENT_STANDARD_ERRORS,
    Policy,
    comparable_similarity,
    is_copy,
    novelty,
    required_shared_shingles,
    template_difference,
)
from aggregator.domain import Analysis, Article, Sketch
from aggregator.errors import AggregatorError
from aggregator.index import Index

MAX_ITEMS_SHOWN = 200
Passages = tuple[str, ...]
_TEMPLATE_NOTES = {
    "": "",
    "figures": " Hardly a figure stands in both, which makes them one frame filled in twice.",
    "names": " What each is most about does not stand in the other, which makes them one frame with other names.",
}


@dataclass(frozen=True, slots=True)
class ComparedArticle:
    """One of the two articles; ``text`` is None when it is not kept."""

    label: str
    lang: str
    space: str
    fingerprint: int
    short: bool
    sketch: Sketch
    terms: WeightedTerms
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
    overlap: OverlapEstimate
    similarity: float
    is_copy: bool
    updated_figures: bool
    shared_passages: Passages | None
    own_passages: tuple[Passages, Passages] | None
    figures: tuple[tuple[str, ...], tuple[str, ...]] | None
    summary: str


class Explainer:
    """Compares two articles; ``policy`` gives the thresholds to judge by."""

    def __init__(
        self,
        index: Index,
        analyze_many: Callable[[Sequence[Article]], Awaitable[list[Analysis | AggregatorError]]],
        policy: Policy,
    ) -> None:
        self._index = index
        self._analyze_many = analyze_many
        self.policy = policy

    async def explain_pair(self, a: str | Article, b: str | Article) -> Explanation:
        """Two ids or articles. Raises NotFound, NoText."""
        first, second = await self.load_pair(a, b)
        # Beside the event loop: the shared passages of two texts of megabytes take a second.
        return await asyncio.to_thread(explain, first, second, self.policy)

    async def load_pair(self, a: str | Article, b: str | Article) -> tuple[ComparedArticle, ComparedArticle]:
        """What is compared of two ids or articles. Raises NotFound, NoText."""
        return await self._load_one(a), await self._load_one(b)

    async def _load_one(self, id_or_article: str | Article) -> ComparedArticle:
        if isinstance(id_or_article, Article):
            analysis = (await self._analyze_many([id_or_article]))[0]
            if isinstance(analysis, AggregatorError):
                raise analysis
            return ComparedArticle(
                id_or_article.id or id_or_article.title[:80] or "(text)",
                analysis.lang,
                analysis.space,
                analysis.fingerprint,
                analysis.short,
                analysis.sketch,
                analysis.terms,
                analysis.title,
                analysis.figures,
                analysis.text or id_or_article.title,
            )
        record = (await self._index.get(id_or_article)).record
        kept = await self._index.read_text(record.number)
        text = (
            zlib.decompress(kept).decode("utf-8", "surrogatepass") or record.title
            if kept is not None
            else None
        )
        return ComparedArticle(
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


def explain(a: ComparedArticle, b: ComparedArticle, policy: Policy) -> Explanation:
    """Pure comparison of two sides."""
    comparable = a.space == b.space
    distance = hamming_distance(a.fingerprint, b.fingerprint) if comparable else None
    differing = a.fingerprint ^ b.fingerprint
    texts = a.text is not None and b.text is not None
    worded = bool(a.sketch.size and b.sketch.size)  # not where fingerprints alone are kept
    passages = _shared_and_own_passages(a, b) if texts else None
    overlap = estimate_overlap(a.sketch, b.sketch)
    similarity = cosine(a.terms, b.terms)
    titles = title_similarity(a.title, a.lang, b.title, b.lang)
    updated = figures_changed(a.figures, b.figures)
    alike, frame = False, ""
    if policy.name == "hamming":
        alike = distance is not None and distance <= policy.duplicate_bits
    elif policy.name == "same-event":
        alike = comparable and similarity >= required_similarity(titles)
    elif comparable and is_copy(overlap, comparable_similarity(similarity, a.lang, b.lang), policy):
        frame = template_difference(overlap, a, b)
        alike = not frame
    told: set[str] = {novelty(a, b, policy), novelty(b, a, policy)} if alike else set()
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
            _different_spaces_summary(a, b)
            if distance is None
            else _title_rule_summary(similarity, titles, alike)
            if policy.name == "same-event"
            else _content_summary(distance, overlap, similarity, alike, policy, worded)
        )
        + _TEMPLATE_NOTES[frame]
        + _novelty_note(told, policy)
        + ("" if texts else _missing_texts_note(worded)),
    )


def _shared_and_own_passages(a: ComparedArticle, b: ComparedArticle) -> tuple[Passages, Passages, Passages]:
    """Runs of words that stand in both texts, only in ``a``, and only in ``b``; longest first."""
    first, second = tokenizer.words(a.text or "", a.lang), tokenizer.words(b.text or "", b.lang)
    width = SHINGLE_WORDS if uses_spaces(a.lang) else SHINGLE_CHARACTERS
    width = max(1, min(width, len(first), len(second)))
    here, there = _shared_word_mask(first, second, width), _shared_word_mask(second, first, width)
    return (
        _join_runs(first, here, True, a.lang),
        _join_runs(first, here, False, a.lang),
        _join_runs(second, there, False, b.lang),
    )


def _shared_word_mask(words: Sequence[str], other: Sequence[str], shingle_length: int) -> list[bool]:
    """For each word whether it lies in a shingle that the other text has too."""
    known = {tuple(other[i : i + shingle_length]) for i in range(len(other) - shingle_length + 1)}
    covered = [False] * len(words)
    for i in range(len(words) - shingle_length + 1):
        if tuple(words[i : i + shingle_length]) in known:
            covered[i : i + shingle_length] = [True] * shingle_length
    return covered


def _join_runs(words: Sequence[str], mask: Sequence[bool], in_shared: bool, lang: str) -> Passages:
    between = " " if uses_spaces(lang) else ""
    marked = groupby(zip(mask, words, strict=True), key=itemgetter(0))
    runs = [[word for _, word in run] for inside, run in marked if inside is in_shared]
    runs.sort(key=len, reverse=True)
    return tuple(between.join(run) for run in runs[:MAX_ITEMS_SHOWN])


def _differing_figures(a: str, b: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    first, second = dict.fromkeys(tokenizer.figures(a)), dict.fromkeys(tokenizer.figures(b))
    return (
        tuple(f for f in first if f not in second)[:MAX_ITEMS_SHOWN],
        tuple(f for f in second if f not in first)[:MAX_ITEMS_SHOWN],
    )


def _title_rule_summary(similarity: float, titles: float, same_event: bool) -> str:
    return (
        f"The headlines' similarity is {titles:.2f}, the texts' {similarity:.2f}, and policy same-event asks for "
        f"{required_similarity(titles):g} under such headlines: {'the same' if same_event else 'not the same'} event."
    )


def _content_summary(
    distance: int,
    overlap: OverlapEstimate,
    similarity: float,
    is_same: bool,
    policy: Policy,
    has_sketches: bool,
) -> str:
    shared = (
        f"; {overlap.containment:.0%} of the shorter one's wording (about {overlap.shared:.0f} shingles) stands in "
        f"the other, and the similarity of their terms is {similarity:.2f}"
    )
    return (
        f"The articles are {distance} bit{'s' * (distance != 1)} apart{shared if has_sketches else ''}, so they are "
        f"{'copies' if is_same else 'not copies'} ({_describe_rule(overlap, policy)})."
    )


def _missing_texts_note(has_sketches: bool) -> str:
    kept = "store_texts is off" if has_sketches else "fingerprints alone are kept (fingerprints_only)"
    return f" The shared wording is not shown, since {kept}: paste the texts."


def _different_spaces_summary(a: ComparedArticle, b: ComparedArticle) -> str:
    """Why two articles are never compared."""
    languages = f"languages {a.lang} and {b.lang}" if a.lang != b.lang else "they were analysed differently"
    return (
        f"The articles are in different spaces ({languages}: {a.space}, {b.space}), which are never compared, "
        "so neither is called a copy of the other."
    )


def _novelty_note(novelties: Set[str], policy: Policy) -> str:
    """What the later of two articles that are alike is called, when one tells more than the other."""
    if "figures" in novelties:
        why = "updates_are_new is on" if policy.updates_are_new else "in texts this short they are the news"
        return f" But their figures differ, and {why}: the later one is related, with updated figures."
    if "story" in novelties:
        return " But the shorter one only announces the longer one, which is related, not a duplicate, when it comes later."
    return ""


def _describe_rule(overlap: OverlapEstimate, policy: Policy) -> str:
    """What makes a copy, of two texts of these lengths."""
    if policy.name == "hamming":
        return f"policy hamming: a copy is at most {policy.duplicate_bits} bits apart, whatever its wording"
    lengths = "of about one length" if overlap.size_ratio >= SAME_LENGTH_RATIO else "of these lengths"
    margin = CONTAINMENT_STANDARD_ERRORS * overlap.error
    sure = f"or {policy.strong_containment:.0%}"
    if overlap.size_ratio >= SAME_LENGTH_RATIO and policy.strong_containment < NEAR_COMPLETE_CONTAINMENT:
        sure += f" with one of {TEMPLATE_MAX_SIMILARITY:g}, or {NEAR_COMPLETE_CONTAINMENT:.0%}"
    beyond = f" beyond the {margin:.0%} that a sample may err by" if margin >= 0.005 else ""
    return (
        f"a copy {lengths} shares {policy.min_containment:.0%}{beyond} and "
        f"{required_shared_shingles(overlap, policy):.0f} shingles with a similarity of {policy.min_similarity:g}, {sure}"
    )
