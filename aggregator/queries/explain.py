"""Explanation of a verdict: what the rules see of two articles, stored or not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

from aggregator.analysis.source import with_source
from aggregator.dedup.copy_rule import Evidence
from aggregator.dedup.diff import DiffSpan, diff_texts, missing_figures
from aggregator.dedup.grouping import stored_evidence
from aggregator.dedup.policy import DEFAULT_PROFILE, Policy, PolicyProfiles
from aggregator.dedup.verdict import (
    compare_pair,
    compare_with_readers_versions,
    figures_are_news,
    headline_similarity,
    shares_enough,
)
from aggregator.domain import AnalyzeMany, Article, ArticleRecord, Match, MatchRule, Outcome, build_record
from aggregator.errors import AggregatorError
from aggregator.index import Index
from aggregator.index.codec.record_codec import decompress_text
from aggregator.queries.reasons import relatedness_out
from aggregator.queries.related import RelatedArticles, Subject, subject_of
from aggregator_client.wire import KEEP_REASONS, ExplainOut, ExplainSideOut, OverlapOut, RelatednessOut

MAX_ITEMS_SHOWN = 200
MISSING_TEXTS_NOTE = (
    " The shared wording is not shown, since store_texts is off; compare the texts themselves instead."
)
_REASON_NOTES = {  # why in spite of the wording that they share
    "": "",
    "headline": " One is a bare headline or a few words, so the headlines decide, and these differ.",
    "own news": " The later headline is about a part of its text that the earlier article lacks.",
    "column": " They are a few words of one outlet on two days: a column, not a copy.",
    "page": " They are of one outlet under unlike headlines that do not occur in them: pages, not articles.",
    "part": " The shorter one is part of the longer one, whose headline is about other news: a collection.",
    "passage": " What they share under unlike headlines is a passage, such as a quotation.",
    "figures": " No figure occurs in both, so they are one template with other figures.",
    "names": " The main terms of each are missing from the other, so they are one template with other names.",
}
_CONFIRMABLE_NOTE = (
    " But they share so much that the later one is a duplicate if copies of the earlier one from two outlets "
    "share as much with it."
)


@dataclass(frozen=True, slots=True)
class ComparedArticle:
    """One of two articles; ``record.number`` is 0 if it is not stored, ``text`` None if not kept."""

    label: str
    record: ArticleRecord
    text: str | None
    subject: Subject
    policy: str = ""
    outcome: Outcome | None = None  # when it was stored, unless another profile is asked for


class Explainer:
    """Compares two articles under the thresholds of a profile, or those of the default policy."""

    def __init__(
        self, index: Index, analyze_many: AnalyzeMany, profiles: PolicyProfiles, related: RelatedArticles
    ) -> None:
        self._index, self._analyze_many, self._profiles = index, analyze_many, profiles
        self._related = related

    async def explain_pair(self, a: str | Article, b: str | Article, *, profile: str = "") -> ExplainOut:
        """Compare two articles, each a stored id or a text. Raises InvalidInput, NotFound, NoText."""
        if profile:
            self._profiles.named(profile)  # before the articles are loaded
        return await self.compare(*await self.load_pair(a, b), profile=profile)

    async def compare(
        self, first: ComparedArticle, second: ComparedArticle, *, profile: str = ""
    ) -> ExplainOut:
        """Compare two loaded articles under a profile, by default that of the later one (not stored: now)."""
        later = _in_order(first, second)[1]
        if profile:
            first, second = replace(first, outcome=None), replace(second, outcome=None)
        selected = self._profiles.select(profile or later.policy, later.record.source)
        related = None
        if first.record.space == second.record.space and first.record.space in self._index.spaces:
            judged = await self._related.judge(first.subject, second.record, second.subject.group)
            related = relatedness_out(*judged)
        # In a thread: the shared passages of two long texts take 0.3 s.
        return await asyncio.to_thread(explain, first, second, selected.policy, selected.name, related)

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
            record = build_record(with_source(article), analysis)
            subject = Subject("", record, published_ms=record.published_at_ms)
            return ComparedArticle(label, record, analysis.text or article.title, subject, article.policy)
        stored = await self._index.articles.get(id_or_article)
        record, packed = stored.record, await self._index.records.read_text(stored.record.number)
        text = record.title if not record.text_words else decompress_text(packed) if packed else None
        return ComparedArticle(record.id, record, text, subject_of(stored), outcome=stored.outcome)


def explain(
    first: ComparedArticle,
    second: ComparedArticle,
    policy: Policy,
    profile: str = DEFAULT_PROFILE,
    relatedness: RelatednessOut | None = None,
) -> ExplainOut:
    """Compare two articles under the policy of a profile; pure."""
    a, b = first.record, second.record
    before, after = _in_order(first, second)
    earlier, later, decided = before.record, after.record, after.outcome
    comparable = a.space == b.space
    evidence, headlines = stored_evidence(a, b), headline_similarity(a, b)
    differing = a.fingerprint ^ b.fingerprint
    texts = None if first.text is None or second.text is None else (first.text, second.text)
    langs = a.lang, b.lang
    passages = list(map(_passages, diff_texts(*texts, *langs))) if texts else [(None, None)] * 2
    figures_of = missing_figures(*texts, *langs) if texts else (None, None)
    is_match, reason = compare_pair(later, earlier, evidence, policy) if comparable else (False, "")
    are_news = is_match and figures_are_news(earlier, later, policy)
    outcome = _outcome(after, earlier, evidence, policy) if is_match else Outcome("new")
    if is_match and decided and (of := decided.match) and earlier.id in (of.id, of.canonical_id):
        outcome = decided  # against all versions that readers had, not this pair alone
    if comparable:
        summary = _summary(evidence, headlines, policy, is_match) + _REASON_NOTES[reason]
        shares = not is_match and shares_enough(later, earlier, evidence, policy)
        summary += _CONFIRMABLE_NOTE if shares else ""
        if are_news:
            why = "updates_are_new is on" if policy.updates_are_new else "in short texts they are the news"
            summary += f" But their figures differ, and {why}: the later one is related."
        elif is_match:
            summary += _keep_note(outcome, policy)
            if before.outcome and not before.outcome.keep:
                summary += " The earlier one was not kept itself, so both are compared with what was."
    else:
        one_language, other = "Analyzed with different models", f"Different languages ({a.lang} and {b.lang})"
        cause = one_language if a.lang == b.lang else other
        summary = f"{cause}: not compared, neither as copies nor as related."
    overlap = evidence.overlap
    sides = [
        ExplainSideOut(
            label=side.label,
            space=side.record.space,
            fingerprint=f"{side.record.fingerprint:016x}",
            figures=own_figures and own_figures[:MAX_ITEMS_SHOWN],
            own_passages=own_passages,
        )
        for side, own_figures, (_, own_passages) in zip((first, second), figures_of, passages, strict=True)
    ]
    return ExplainOut(
        summary=summary
        + ("" if texts else MISSING_TEXTS_NOTE)
        + ("" if profile == DEFAULT_PROFILE else f" Policy profile: {profile}."),
        a=sides[0],
        b=sides[1],
        distance=evidence.distance if comparable else None,
        differing_bits=[k for k in range(64) if differing >> k & 1] if comparable else None,
        overlap=OverlapOut(
            containment=round(overlap.containment, 3),
            resemblance=round(overlap.resemblance, 3),
            shared=round(overlap.shared, 1),
            opening=round(overlap.opening, 3),
            common_opening=round(overlap.common_opening, 3),
            length_ratio=round(overlap.size_ratio, 3),
        ),
        similarity=round(evidence.similarity, 3),
        relatedness=relatedness,
        headline_similarity=round(headlines, 3),
        same_outlet=evidence.same_outlet,
        hours_apart=None if evidence.hours_apart is None else round(evidence.hours_apart, 2),
        common_figures=len({*a.figures} & {*b.figures}),
        is_copy=outcome.match is not None and not are_news,
        keep=outcome.keep or are_news,
        keep_reason=None if are_news else outcome.keep_reason,
        updated_figures=outcome.updated_figures,
        reversed=outcome.reversed,
        shared_passages=passages[0][0],
        policy=profile,
    )


def _outcome(after: ComparedArticle, earlier: ArticleRecord, evidence: Evidence, policy: Policy) -> Outcome:
    """The outcome for the later of two matching articles if the crawler has the earlier one alone."""
    later, text = after.record, after.text or ""
    rule: MatchRule = "exact" if later.text_hash == earlier.text_hash else "overlap"
    match = Match(earlier.id, 0, earlier.id, 0, evidence.distance, None, rule)
    outcome, same_outlet = Outcome("duplicate", match=match), evidence.same_outlet
    return compare_with_readers_versions(outcome, later, earlier, [], policy, same_outlet, same_outlet, text)


def _keep_note(outcome: Outcome, policy: Policy) -> str:
    """Whether a crawler stores the later of two articles that match, and why."""
    if outcome.adds is None:
        return " But as versions of one outlet that share less than half, the later one is related."
    new = f"{outcome.adds:.0%} of its words are new"
    if not outcome.keep:
        is_changed = outcome.updated_figures or outcome.reversed
        note = "; a correction counts from the same outlet only" if is_changed else ""
        return f" The later one is dropped (keep: false): {new}, less than {policy.keep_if_adds:.0%}{note}."
    why = new if outcome.keep_reason in (None, "adds") else KEEP_REASONS[outcome.keep_reason]
    return f" The later one is kept (keep: true) unless other copies have the same: {why}."


def _in_order(first: ComparedArticle, second: ComparedArticle) -> tuple[ComparedArticle, ComparedArticle]:
    """The earlier and the later one; one that is not stored would arrive now."""
    numbers = first.record.number, second.record.number
    return (first, second) if not numbers[1] or 0 < numbers[0] <= numbers[1] else (second, first)


def _passages(spans: Sequence[DiffSpan]) -> tuple[list[str], list[str]]:
    """The passages of a text that the other one has, and those that it lacks; longest first."""
    passages: tuple[list[str], list[str]] = [], []
    for number, run in groupby(spans, key=attrgetter("passage")):
        if text := "".join(span.text for span in run).strip():
            passages[number is None].append(text)
    for found in passages:
        found.sort(key=len, reverse=True)
        del found[MAX_ITEMS_SHOWN:]
    return passages


def _summary(evidence: Evidence, headlines: float, policy: Policy, is_match: bool) -> str:
    """What two articles share, and what follows from it; ``headlines``: their similarity."""
    overlap = evidence.overlap
    verdict = "Copies" if is_match else "Not copies"
    if policy.name == "hamming":
        distance = f"by the policy hamming: their fingerprints differ in {evidence.distance} of 64 bits"
        return f"{verdict} {distance}; those of copies in {policy.duplicate_bits} at most."
    shared = f"{overlap.containment:.0%} of the shorter text is in the other"
    opening = f"{overlap.opening:.0%} of an opening"
    return f"{verdict}: {shared}, {opening}, and the headlines are {headlines:.0%} alike."
