"""Explanation of a verdict: what the rules see of two articles, stored or not.

Fingerprint distance and estimated overlap are always available. The shared wording itself needs the texts:
given in the request, or kept in the store (setting ``store_texts``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from aggregator.analysis.analyzer import uses_spaces
from aggregator.analysis.shingles import SHINGLE_CHARACTERS, SHINGLE_WORDS, OverlapEstimate, estimate_overlap
from aggregator.analysis.simhash import hamming_distance
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.figures import figures
from aggregator.dedup.similarity import cosine
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
    compare_pair,
    novelty,
    required_shared_shingles,
)
from aggregator.domain import Analysis, AnalyzeMany, Article, ArticleRecord, Sketch, WeightedTerms
from aggregator.errors import AggregatorError
from aggregator.index import Index
from aggregator.index.codec.stored_text import decompress_text

MAX_ITEMS_SHOWN = 200
Passages = tuple[str, ...]
_TEMPLATE_NOTES = {
    "": "",
    "figures": " Hardly any figure occurs in both, so they are one template with other figures.",
    "names": " The main terms of each are missing from the other, so they are one template with other names.",
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

    @classmethod
    def create(cls, label: str, source: Analysis | ArticleRecord, text: str | None) -> ComparedArticle:
        """An article under the label shown for it, from its analysis or stored record."""
        return cls(
            label=label,
            lang=source.lang,
            space=source.space,
            fingerprint=source.fingerprint,
            short=source.short,
            sketch=source.sketch,
            terms=source.terms,
            title=source.title,
            figures=source.figures,
            text=text,
        )


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the rules see of two articles.

    ``distance`` (bits) and ``differing_bits`` (0 is the least significant) are None when the spaces differ:
    such fingerprints cannot be compared. ``shared_passages``, ``own_passages`` (only in the first, only in
    the second) and ``figures`` (likewise) are None when a text is not kept.
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
    """Compares two articles under the thresholds of ``policy``."""

    def __init__(self, index: Index, analyze_many: AnalyzeMany, policy: Policy) -> None:
        self._index = index
        self._analyze_many = analyze_many
        self.policy = policy

    async def explain_pair(self, a: str | Article, b: str | Article) -> Explanation:
        """Compare two articles, each a stored id or a text. Raises NotFound, NoText, StoreUnavailable."""
        first, second = await self.load_pair(a, b)
        # In a thread: the shared passages of two texts of some megabytes take a second.
        return await asyncio.to_thread(explain, first, second, self.policy)

    async def load_pair(self, a: str | Article, b: str | Article) -> tuple[ComparedArticle, ComparedArticle]:
        """Read or analyze two articles for ``explain``. Raises NotFound, NoText, StoreUnavailable."""
        return await self._load_one(a), await self._load_one(b)

    async def _load_one(self, id_or_article: str | Article) -> ComparedArticle:
        if isinstance(id_or_article, Article):
            article = id_or_article
            analysis = (await self._analyze_many([article]))[0]
            if isinstance(analysis, AggregatorError):
                raise analysis
            label = article.id or article.title[:80] or "(text)"
            return ComparedArticle.create(label, analysis, analysis.text or article.title)
        record = (await self._index.articles.get(id_or_article)).record
        stored = await self._index.records.read_text(record.number)
        text = decompress_text(stored) or record.title if stored is not None else None
        return ComparedArticle.create(record.id, record, text)


def explain(a: ComparedArticle, b: ComparedArticle, policy: Policy) -> Explanation:
    """Compare two articles; pure."""
    comparable = a.space == b.space
    distance = hamming_distance(a.fingerprint, b.fingerprint) if comparable else None
    differing = a.fingerprint ^ b.fingerprint
    has_texts = a.text is not None and b.text is not None
    has_sketches = bool(a.sketch.size and b.sketch.size)  # false under the setting fingerprints_only
    passages = _shared_and_own_passages(a, b) if has_texts else None
    overlap = estimate_overlap(a.sketch, b.sketch)
    similarity = cosine(a.terms, b.terms)
    is_match, template = False, ""
    if distance is not None:
        is_match, template = compare_pair(a, b, distance, overlap, similarity, policy)
    novelties: set[str] = {novelty(a, b, policy), novelty(b, a, policy)} if is_match else set()
    return Explanation(
        labels=(a.label, b.label),
        spaces=(a.space, b.space),
        fingerprints=(a.fingerprint, b.fingerprint),
        distance=distance,
        differing_bits=tuple(k for k in range(64) if differing >> k & 1) if comparable else None,
        overlap=overlap,
        similarity=round(similarity, 3),
        is_copy=is_match and "figures" not in novelties,
        updated_figures=is_match and figures_changed(a.figures, b.figures),
        shared_passages=passages[0] if passages else None,
        own_passages=passages[1:] if passages else None,
        figures=_differing_figures(a.text or "", b.text or "") if has_texts else None,
        summary=(
            _different_spaces_summary(a, b)
            if distance is None
            else _title_rule_summary(similarity, title_similarity(a.title, a.lang, b.title, b.lang), is_match)
            if policy.name == "same-event"
            else _content_summary(distance, overlap, similarity, is_match, policy, has_sketches)
        )
        + _TEMPLATE_NOTES[template]
        + _novelty_note(novelties, policy)
        + ("" if has_texts else _missing_texts_note(has_sketches)),
    )


def _shared_and_own_passages(a: ComparedArticle, b: ComparedArticle) -> tuple[Passages, Passages, Passages]:
    """Runs of words in both texts, only in ``a`` and only in ``b``; longest first."""
    first, second = tokenizer.words(a.text or "", a.lang), tokenizer.words(b.text or "", b.lang)
    width = SHINGLE_WORDS if uses_spaces(a.lang) else SHINGLE_CHARACTERS
    width = max(1, min(width, len(first), len(second)))
    first_mask, second_mask = _shared_word_mask(first, second, width), _shared_word_mask(second, first, width)
    return (
        _join_runs(first, first_mask, True, a.lang),
        _join_runs(first, first_mask, False, a.lang),
        _join_runs(second, second_mask, False, b.lang),
    )


def _shared_word_mask(words: Sequence[str], other: Sequence[str], shingle_length: int) -> list[bool]:
    """For each word, whether it is part of a shingle that the other text has too."""
    known = {tuple(other[i : i + shingle_length]) for i in range(len(other) - shingle_length + 1)}
    covered = [False] * len(words)
    for i in range(len(words) - shingle_length + 1):
        if tuple(words[i : i + shingle_length]) in known:
            covered[i : i + shingle_length] = [True] * shingle_length
    return covered


def _join_runs(words: Sequence[str], mask: Sequence[bool], in_shared: bool, lang: str) -> Passages:
    separator = " " if uses_spaces(lang) else ""
    marked = groupby(zip(mask, words, strict=True), key=itemgetter(0))
    runs = [[word for _, word in run] for inside, run in marked if inside is in_shared]
    runs.sort(key=len, reverse=True)
    return tuple(separator.join(run) for run in runs[:MAX_ITEMS_SHOWN])


def _differing_figures(a: str, b: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    first, second = dict.fromkeys(figures(a)), dict.fromkeys(figures(b))
    return (
        tuple(f for f in first if f not in second)[:MAX_ITEMS_SHOWN],
        tuple(f for f in second if f not in first)[:MAX_ITEMS_SHOWN],
    )


def _title_rule_summary(similarity: float, titles: float, same_event: bool) -> str:
    return (
        f"The similarity of the titles is {titles:.2f}, that of the texts {similarity:.2f}; for such titles "
        f"policy same-event requires {required_similarity(titles):g}: "
        f"{'the same' if same_event else 'not the same'} event."
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
        f"; they share {overlap.containment:.0%} of the shorter one's wording "
        f"(about {overlap.shared:.0f} shingles), and the similarity of their terms is {similarity:.2f}"
    )
    return (
        f"The articles are {distance} bit{'s' * (distance != 1)} apart{shared if has_sketches else ''}, "
        f"so they are {'copies' if is_same else 'not copies'} ({_describe_rule(overlap, policy)})."
    )


def _missing_texts_note(has_sketches: bool) -> str:
    reason = "store_texts is off" if has_sketches else "only fingerprints are kept (fingerprints_only)"
    return f" The shared wording is not shown, since {reason}; compare the texts themselves instead."


def _different_spaces_summary(a: ComparedArticle, b: ComparedArticle) -> str:
    """Why two articles of different spaces are never compared."""
    languages = (
        f"languages {a.lang} and {b.lang}" if a.lang != b.lang else "they were analyzed with different models"
    )
    return (
        f"The articles are in different spaces ({languages}: {a.space}, {b.space}), which are never "
        "compared, so neither is a copy of the other."
    )


def _novelty_note(novelties: Set[str], policy: Policy) -> str:
    """The verdict on the later of two matching articles, when it has news that the earlier one lacks."""
    if "figures" in novelties:
        reason = (
            "updates_are_new is on"
            if policy.updates_are_new
            else "in texts this short the figures are the news"
        )
        return f" But their figures differ, and {reason}: the later one is related, with updated figures."
    if "story" in novelties:
        return (
            " But the shorter one only announces the longer one, which is related, not a duplicate, "
            "if it arrives later."
        )
    return ""


def _describe_rule(overlap: OverlapEstimate, policy: Policy) -> str:
    """The condition for a copy, for two texts of these lengths."""
    if policy.name == "hamming":
        return f"policy hamming: a copy is at most {policy.duplicate_bits} bits apart, regardless of wording"
    lengths = "of about the same length" if overlap.size_ratio >= SAME_LENGTH_RATIO else "of these lengths"
    margin = CONTAINMENT_STANDARD_ERRORS * overlap.error
    alternative = f"or {policy.strong_containment:.0%}"
    if overlap.size_ratio >= SAME_LENGTH_RATIO and policy.strong_containment < NEAR_COMPLETE_CONTAINMENT:
        alternative += (
            f" with a similarity of {TEMPLATE_MAX_SIMILARITY:g}, or {NEAR_COMPLETE_CONTAINMENT:.0%}"
        )
    tolerance = f" (plus {margin:.0%} for the sampling error)" if margin >= 0.005 else ""
    return (
        f"a copy {lengths} shares {policy.min_containment:.0%}{tolerance} and "
        f"{required_shared_shingles(overlap, policy):.0f} shingles with a similarity of "
        f"{policy.min_similarity:g}, {alternative}"
    )
