"""Which duplicate groups are one, and which members of a group do not belong to it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from aggregator.analysis.shingles import estimate_overlap
from aggregator.analysis.simhash import hamming_distance
from aggregator.analysis.text.decisive import decisive_difference
from aggregator.dedup import copy_rule
from aggregator.dedup.other_news import is_same_text
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import Candidate, compare_pair, cosine, headline_similarity, is_exact_copy
from aggregator.domain import ArticleRecord, Outcome

IsCopy = Callable[[ArticleRecord, ArticleRecord], bool]  # the later and the earlier one
MAX_COMPARED = 32  # one that left a group is compared with so many others that left it, the latest


def unite(
    subject: copy_rule.Comparable, candidates: Sequence[Candidate], outcome: Outcome, policy: Policy
) -> tuple[Outcome, list[ArticleRecord]]:
    """The outcome in the oldest group and the canonical articles, oldest first, of groups that are one.

    The duplicate copies each, also that of its own group, with its figures and the decisive words of its
    headline. No articles: the outcome stays.
    """
    heads = [c for c in candidates if c.canonical[1] == c.record.first_version]
    if outcome.match is None or policy.name != "verified" or len(heads) < 2:
        return outcome, []
    copied = [
        c.record
        for c in sorted(heads, key=lambda c: c.canonical[1])
        if c.evidence.overlap.containment >= policy.strong_containment
        and not copy_rule.figures_changed(subject.figures, c.record.figures)
        and not decisive_difference(subject.title, c.record.title, subject.lang)
        and compare_pair(subject, c.record, c.evidence, policy)[0]
        and policy.copy_rule.begins_alike(c.evidence, headline_similarity(subject, c.record))
    ]
    if len(copied) < 2 or outcome.match.canonical_first not in {r.first_version for r in copied}:
        return outcome, []
    oldest = copied[0]
    match = replace(outcome.match, canonical_id=oldest.id, canonical_first=oldest.first_version)
    return replace(outcome, match=match), copied


def leaving(canonical: ArticleRecord, members: Iterable[ArticleRecord], is_copy: IsCopy) -> dict[str, str]:
    """The ids of members that are no copies of their canonical article, each with that of its new one.

    That is an earlier one that left too and that it copies, or itself.
    """
    leaders: list[ArticleRecord] = []
    found: dict[str, str] = {}
    for member in sorted(members, key=lambda record: (record.first_version, record.id)):
        if is_copy(member, canonical):
            continue
        leader = next((each for each in leaders[-MAX_COMPARED:] if is_copy(member, each)), member)
        leaders += [member] if leader is member else []
        found[member.id] = leader.id
    return found


def is_stored_copy(
    later: ArticleRecord, earlier: ArticleRecord, policy: Policy, notice: copy_rule.Comparable | None = None
) -> bool:
    """Whether ``later`` is a copy; of a text like ``notice``, which is no article, the headline decides."""
    if notice is not None and is_same_text(notice, later):
        return headline_similarity(later, earlier) >= copy_rule.EQUAL_HEADLINES
    evidence = stored_evidence(later, earlier)
    if later.text_hash == earlier.text_hash:
        return is_exact_copy(later, earlier, evidence, policy)
    return compare_pair(later, earlier, evidence, policy)[0]


def stored_evidence(a: ArticleRecord, b: ArticleRecord) -> copy_rule.Evidence:
    """The evidence about two articles of one space without their neighbours; number 0: not stored."""
    arrived = [record.arrived_ms if record.number else None for record in (a, b)]
    return copy_rule.Evidence(
        estimate_overlap(a.sketch, b.sketch),
        cosine(a.terms, b.terms),
        hamming_distance(a.fingerprint, b.fingerprint),
        copy_rule.is_same_outlet(a.source, b.source),
        copy_rule.hours_between(a.published_at_ms, b.published_at_ms, *arrived),
    )
