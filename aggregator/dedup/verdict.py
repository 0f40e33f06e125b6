"""The verdict (new, related, duplicate) on an article among its candidates, by a policy. Pure.

An article joins the group of most of the earlier articles that it duplicates nearly as closely as the best;
linking every match would merge groups through one page (docs/decisions/0017-group-choice.md).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from aggregator.analysis.analyzer import shingle_width
from aggregator.analysis.shingles import estimate_overlap
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.decisive import decisive_difference, replaced_words, reversal, stated_figures
from aggregator.analysis.text.figures import MAX_FIGURES, figure_hash
from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.normalization import core_headline, source_key
from aggregator.analysis.text.spelling import normalize_spelling
from aggregator.dedup.copy_rule import EQUAL_HEADLINES, HALF, Comparable, Evidence, figures_changed
from aggregator.dedup.headlines import title_similarity, title_terms
from aggregator.dedup.other_news import (
    AGREEING,
    MOST,
    SAME_TEXT,
    Reason,
    is_same_text,
    other_news,
    stands_under_many_headlines,
)
from aggregator.dedup.policy import Policy
from aggregator.dedup.templates import exchanged
from aggregator.dedup.wording import count_of_headline, headline_units, shared_wording, tells_news
from aggregator.domain import Analysis, ArticleRecord, Match, MatchRule, Outcome, WeightedTerms
from aggregator_client.wire import KeepReason

# A match whose containment is lower than that of the closest by more has no vote on the group.
VOTING_CONTAINMENT_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate and the evidence about it; ``canonical`` is (id, first number) of its duplicate group.

    ``kept``: readers have it: it is no duplicate, or one that was kept.
    """

    record: ArticleRecord
    canonical: tuple[str, int]
    evidence: Evidence
    kept: bool = True


def decide(subject: Analysis, candidates: Sequence[Candidate], policy: Policy) -> Outcome:
    """Return the outcome for ``subject`` among ``candidates``; their order does not matter."""
    near = [c.evidence.distance for c in candidates if c.evidence.distance <= policy.related_bits]
    is_article = policy.name != "verified" or not is_notice(subject, candidates)
    if not is_article:  # then the headline decides
        candidates = [c for c in candidates if headline_similarity(subject, c.record) >= EQUAL_HEADLINES]
    exact = [c for c in candidates if is_exact_copy(subject, c.record, c.evidence, policy)]
    rule: MatchRule
    if exact:
        best, rule = min(exact, key=lambda c: c.record.number), "exact"
    else:
        # What an outlet prints around its texts is also in copies of those that ``subject`` does not repeat.
        own = {c.canonical[1] for c in candidates if c.evidence.same_outlet and policy.name == "verified"}
        candidates = [
            c
            for c in candidates
            if c.canonical[1] not in own
            or policy.copy_rule.begins_alike(c.evidence, headline_similarity(subject, c.record))
        ]
        compared = [(c, *compare_pair(subject, c.record, c.evidence, policy)) for c in candidates]
        matches = [c for c, is_match, _ in compared if is_match]
        duplicated = [c for c in matches if not figures_are_news(c.record, subject, policy)]
        duplicated = duplicated or confirmed_by_group(subject, candidates, policy)
        if not duplicated:
            part_of = next((c.canonical[0] for c, _, reason in compared if reason == "part"), None)
            return Outcome(
                "related" if matches or near or part_of else "new",
                distance=min(near, default=None),
                updated_figures=any(figures_changed(subject.figures, c.record.figures) for c in matches),
                text_is_article=is_article,
                part_of=part_of,
            )
        best, rule = _best_match(subject, duplicated, policy)
    match = Match(
        id=best.record.id,
        number=best.record.number,
        canonical_id=best.canonical[0],
        canonical_first=best.canonical[1],
        distance=best.evidence.distance,
        overlap=None if policy.name == "hamming" else round(best.evidence.overlap.containment, 3),
        rule=rule,
        words=best.record.text_words,
    )
    return Outcome("duplicate", match.distance, match, keep=False, text_is_article=is_article)


def compare_with_readers_versions(
    outcome: Outcome,
    subject: Comparable,
    canonical: Comparable,
    kept: Sequence[Comparable],
    policy: Policy,
    same_outlet: bool,
    is_revision: bool,
    text: str = "",
) -> Outcome:
    """A duplicate's outcome with what it adds to the articles of its group that readers have.

    ``canonical``: of its group; ``kept``: other members that were kept. An outlet's later version that shares
    less than half with the canonical article (``same_outlet``) is no duplicate, but follows it.
    ``is_revision``: its outlet has an earlier version in the group. ``text``: of a stored subject, if known.
    """
    text = text or getattr(subject, "text", "")
    match = outcome.match
    assert match is not None
    width = shingle_width(subject.lang)
    readers = [canonical, *kept[:MAX_KEPT_MEMBERS]]
    # An equal headline, which only a short text's sketch includes, does not count.
    is_equal = headline_similarity(subject, canonical) >= EQUAL_HEADLINES
    skip = count_of_headline(subject) / max(1, subject.sketch.size) if is_equal else 0.0
    adds = 1.0 - shared_wording(subject.sketch, [record.sketch for record in readers], width, skip).words
    if not subject.text_words:  # too few shingles for a share: by the words of the headlines
        known = {word for record in readers for word in headline_units(record)}
        own = headline_units(subject)
        adds = sum(word not in known for word in own) / max(1, len(own))
    is_same = match.rule == "exact" and adds == 0
    adds = round(adds, 2)
    may_follow = same_outlet and match.rule != "exact" and policy.name == "verified"
    if may_follow and estimate_overlap(subject.sketch, canonical.sketch).containment < HALF:
        return replace(outcome, verdict="related", match=None, keep=True, follows=match.canonical_id)
    words, canonical_words = subject.text_words, canonical.text_words
    fuller = (
        words > canonical_words
        and words >= (enough := min(canonical_words + FULLER_WORDS, FULLER_RATIO * canonical_words))
        and 2 * adds * words > enough - canonical_words  # not what a kept member has already
        and shared_wording(canonical.sketch, [subject.sketch], width).words >= MOST
    )
    updated = all(has_other_figures(subject, record, is_revision, is_same) for record in readers)
    turned = all(is_reversed(subject, r) and (not is_same or contradicts(subject, r, text)) for r in readers)
    corrects = is_revision and is_correction(subject, text if adds else "")
    # A headline that hardly occurs in its text, such as a page number, is not about it.
    both = title_terms(subject.title, subject.lang) & title_terms(canonical.title, canonical.lang)
    is_about = not is_same and (subject.own_headline > AGREEING or len(both) > 1)
    holds: dict[KeepReason, bool] = {
        "adds": adds >= policy.keep_if_adds,
        "fuller": fuller,
        "updated_figures": is_revision and updated,
        "reversed": is_revision and turned,
        "correction": corrects and not any(map(is_correction, readers)),
        "headline": is_about and all(contradicts(subject, record, text) for record in readers),
        "news": is_about and 0 < adds < policy.keep_if_adds and tells_news(subject, readers, text),
    }
    reason = next((name for name, is_so in holds.items() if is_so), None)
    found = replace(outcome, adds=adds, fuller=fuller, updated_figures=updated, reversed=turned)
    return replace(found, keep=reason is not None, keep_reason=reason)


# Headlines that differ so contradict each other, whatever of the texts is shared.
CONTRADICTIONS = frozenset(["figures", "negation", "opposite"])
MAX_KEPT_MEMBERS = 8  # at least so many kept members of a group, those that share most wording, count as read
# A fuller version has so many words more, or so many times as many, and contains most of the canonical text.
FULLER_WORDS, FULLER_RATIO = 60, 1.3


def contradicts(later: Comparable, earlier: Comparable, text: str) -> bool:
    """Whether headlines do: by figures, a negation, opposites, or words that the later text replaces, too."""
    is_decisive = decisive_difference(later.title, earlier.title, later.lang) in CONTRADICTIONS
    is_known = is_decisive or min(earlier.own_headline, later.own_headline) < 1
    if is_known or not (replaced := replaced_words(earlier.title, later.title, later.lang)):
        return is_decisive
    words = normalize_spelling(tokenizer.words(text, later.lang), later.lang)
    said = {*words, *tokenizer.terms_of_words(words, later.lang), *(term for term, _ in later.terms)}
    return said.isdisjoint(tokenizer.terms_of_words(replaced, later.lang) or replaced)


def has_other_figures(later: Comparable, earlier: Comparable, is_revision: bool, is_equal: bool) -> bool:
    """Whether a figure was replaced; of a revision also: whether its headline says one that was not said.

    Over an equal text: if the headlines are alike, or the earlier one says a figure that the text does not.
    """
    if (is_replaced := figures_changed(later.figures, earlier.figures)) or not is_revision:
        return is_replaced
    said, before = (stated_figures(core_headline(each.title), each.lang) for each in (later, earlier))
    is_update = not is_equal or _lacks(later, before) or headline_similarity(later, earlier) >= HALF
    return is_update and _lacks(earlier, said - before)


def _lacks(article: Comparable, stated: set[str]) -> bool:
    return len(article.figures) < MAX_FIGURES and any(figure_hash(f) not in article.figures for f in stated)


def is_correction(article: Comparable, text: str = "") -> bool:
    """Whether the headline's first or last word, or the start of the text or of its last line, says so."""
    title, lines = tokenizer.shingle_units(article.title, article.lang), text.strip().splitlines()
    starts = (tokenizer.shingle_units(line, article.lang)[:4] for line in lines[:1] + lines[-1:])
    return not {*title[:1], *title[-1:]}.union(*starts).isdisjoint(table("correction", article.lang))


def is_reversed(later: Comparable, earlier: Comparable) -> bool:
    """Whether headlines and main terms differ by a negation, or by a word and its opposite."""
    first, second = (
        [*tokenizer.words(a.title, a.lang), *(term for term, _ in a.terms)] for a in (later, earlier)
    )
    return later.lang == earlier.lang and bool(reversal(first, second, later.lang))


def is_notice(subject: Analysis, candidates: Sequence[Candidate]) -> bool:
    """Whether an outlet prints the text under many headlines: then it is the article in no other one."""
    own, others = list[Comparable]([subject]), defaultdict[str, list[Comparable]](list)
    for c in candidates:
        if c.evidence.same_outlet:
            own += [c.record] if c.evidence.overlap.shared or c.record.short else []
        elif c.record.source and c.evidence.overlap.containment >= SAME_TEXT:
            others[source_key(c.record.source)].append(c.record)
    prints = [[page for page in pages if is_same_text(subject, page)] for pages in others.values()]
    return any(stands_under_many_headlines(pages[0], pages[1:]) for pages in (own, *filter(None, prints)))


def confirmed_by_group(subject: Analysis, candidates: Sequence[Candidate], policy: Policy) -> list[Candidate]:
    """Return the candidates that ``subject`` repeats since copies of two outlets in a group share enough."""
    sharing = [c for c in candidates if shares_enough(subject, c.record, c.evidence, policy)]
    prints = ((c.canonical[1], source_key(c.record.source) or c.record.number) for c in sharing)
    confirming = confirming_groups(prints)
    return [c for c in sharing if c.canonical[1] in confirming]


def confirming_groups(prints: Iterable[tuple[int, str | int]]) -> set[int]:
    """Return the groups that two outlets printed; ``prints``: group and outlet of each article."""
    counts = Counter(group for group, _ in set(prints))
    return {group for group, count in counts.items() if count > 1}


def related_candidates(
    subject: Analysis, candidates: Sequence[Candidate], outcome: Outcome, policy: Policy
) -> list[Candidate]:
    """Those within ``related_bits`` and, for a "related" article, those that it matches but for figures."""
    include_matches = outcome.verdict == "related" and outcome.match is None
    return [
        c
        for c in candidates
        if c.evidence.distance <= policy.related_bits
        or (include_matches and compare_pair(subject, c.record, c.evidence, policy)[0])
    ]


def _best_match(new: Comparable, matches: Sequence[Candidate], policy: Policy) -> tuple[Candidate, MatchRule]:
    """The closest match, then the earliest; "verified": in the group with most votes, one headline first."""
    earliest_first = sorted(matches, key=lambda c: c.record.number)
    if policy.name == "hamming":
        return min(earliest_first, key=lambda c: c.evidence.distance), "hamming"
    nearest_first = sorted(
        earliest_first,
        key=lambda c: (-c.evidence.overlap.containment, -c.evidence.overlap.resemblance, c.evidence.distance),
    )
    lowest = nearest_first[0].evidence.overlap.containment - VOTING_CONTAINMENT_MARGIN
    voters = [c for c in nearest_first if c.evidence.overlap.containment >= lowest]
    voters = [c for c in voters if headline_similarity(new, c.record) >= EQUAL_HEADLINES] or voters
    votes = Counter(c.canonical[1] for c in voters)
    best = max(voters, key=lambda c: votes[c.canonical[1]])
    return best, "hamming" if best.evidence.distance <= policy.duplicate_bits else "overlap"


def cosine(a: WeightedTerms, b: WeightedTerms) -> float:
    """Cosine of two sparse unit vectors, 0..1; 0 when either is empty."""
    weights = dict(a)
    return min(1.0, sum([weight * weights[term] for term, weight in b if term in weights], 0.0))


def compare_pair(a: Comparable, b: Comparable, evidence: Evidence, policy: Policy) -> tuple[bool, Reason]:
    """Whether the policy matches the later and the earlier article; if not, why in spite of their wording."""
    if policy.name == "hamming":
        return evidence.distance <= policy.duplicate_bits, ""
    if evidence.overlap.containment < policy.containment_floor:
        return False, ""
    headlines = cache(lambda: headline_similarity(a, b))  # needed up to three times, seldom at all
    if not policy.copy_rule.is_copy_or_summary(evidence, headlines):
        return False, ""
    # A template says in its headline what it exchanges; a rewritten lead brings other names and figures.
    reason: Reason = exchanged(evidence.overlap, a, b)
    if not reason or (not evidence.same_outlet and headlines() >= EQUAL_HEADLINES):
        reason = other_news(a, b, evidence, policy.same_outlet_hours)
    return not reason, reason


def is_exact_copy(
    later: Analysis | ArticleRecord, earlier: ArticleRecord, evidence: Evidence, policy: Policy
) -> bool:
    """Whether the texts are equal and, under "verified", the text is the article and not a column."""
    if later.text_hash != earlier.text_hash or policy.name != "verified":
        return later.text_hash == earlier.text_hash
    return other_news(later, earlier, evidence, policy.same_outlet_hours) not in ("page", "column")


def shares_enough(later: Comparable, earlier: Comparable, evidence: Evidence, policy: Policy) -> bool:
    """Whether ``later`` repeats ``earlier`` if copies of a second outlet share as much ("verified" only)."""
    return (
        policy.name == "verified"
        and not evidence.same_outlet
        and policy.copy_rule.shares_enough(evidence)
        and not exchanged(evidence.overlap, later, earlier)
        and not figures_are_news(earlier, later, policy)
    )


def headline_similarity(a: Comparable, b: Comparable) -> float:
    """Similarity of the headlines, 0..1; 0 if one has none."""
    return title_similarity(a.title, a.lang, b.title, b.lang)


def figures_are_news(earlier: Comparable, later: Comparable, policy: Policy) -> bool:
    """Whether the later of two matching articles is another one since its figures were replaced.

    The policy treats updates as new, or both are short flashes.
    """
    both_flashes = policy.name == "verified" and earlier.short and later.short
    return (policy.updates_are_new or both_flashes) and figures_changed(earlier.figures, later.figures)
