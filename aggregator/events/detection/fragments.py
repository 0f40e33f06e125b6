"""Fragments: stories of one burst that are merged because their key terms burst in the same documents.

Early headlines of one topic name the town, or the building, or the victims; their stories have too little in
common for their centroids to converge, and none exceeds the rule alone. They belong together if their key
terms burst at the same time *and in the same documents* (bursty features grouped by the overlap of their
documents: Fung, Yu, Yu & Lu 2005; bursty features as weights: He, Chang & Lim 2007)::

    story A (13 items)   key term "shooting", 6 of its items also name the town
    story B (4 items)    key term the town, 9 documents name it in the window
    6 of the 9 documents of the rarer term hold both: one burst, 17 items

The key term is the first of ``key_terms.top_terms``. Two stories that are both events must also have half of
their key terms in common.
"""

from __future__ import annotations

from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, MIN_ITEMS_TO_BE_MERGED, Story, StoryIndex
from aggregator.events.detection.key_terms import KeyTermCache
from aggregator.events.detection.merge_evidence import common_terms_support_merge
from aggregator.events.detection.term_weights import TermWeights

# Share of the documents with the rarer key term that must hold the other too.
MERGE_SHARE = 0.2


def find_merge_partner(
    stories: StoryIndex, story: Story, term_weights: TermWeights, key_terms: KeyTermCache
) -> Story | None:
    """Return the story with the largest share of common documents (the older on a tie), if any qualifies."""
    own_term = key_terms.top_term(story)
    if not term_weights.is_bursting(own_term):
        return None
    # By bursting term: the weight that this story's sum lacks to qualify if it were the other's key term.
    missing_weights = {
        term: _required_weight(term_weights, own_term, term) - story.term_sums[term]
        for term in term_weights.bursting_terms(story.term_sums)
        if term != own_term
    }
    # No two key terms require less, since a bursting term has at least this number of documents.
    min_required = MERGE_SHARE * MAX_TERM_WEIGHT * term_weights.min_burst_documents
    own_missing = _required_weight(term_weights, own_term, own_term) - story.term_sums[own_term]
    own_terms = set(key_terms.top_terms(story))
    # By sum of the own term in the other story: terms of which the other must hold one. Few sums occur.
    sufficient_terms: dict[int, set[str]] = {}
    best, best_share = None, 0.0
    candidate_terms = [own_term, *(term for term, missing in missing_weights.items() if missing <= 0)]
    for other in stories.with_any_term(candidate_terms):
        if other is story or len(other.members) < MIN_ITEMS_TO_BE_MERGED:
            continue
        other_sum = other.term_sums.get(own_term, 0)
        # Necessary conditions on the key terms of the other story, cheaper than finding them.
        if not common_terms_support_merge(own_terms & other.term_sums.keys(), term_weights.expected):
            continue
        if other_sum < min_required:
            if other_sum not in sufficient_terms:
                sufficient_terms[other_sum] = {
                    term
                    for term, missing in missing_weights.items()
                    if missing <= other_sum
                    or (other_sum >= own_missing and story.term_sums[term] + other_sum >= min_required)
                }
            if other.term_sums.keys().isdisjoint(sufficient_terms[other_sum]):
                continue
        other_term = key_terms.top_bursting_term(other)
        if not other_term:
            continue
        joint_sum = story.term_sums.get(other_term, 0) + other_sum
        rarer = min(term_weights.window_count(own_term), term_weights.window_count(other_term))
        share = joint_sum / MAX_TERM_WEIGHT / rarer
        if (
            share >= MERGE_SHARE
            and share > best_share
            and key_terms.top_term(other) == other_term
            and key_terms.support_merge(story, other)
            and not (story.event_id and other.event_id and not key_terms.agree(story, other))
        ):
            best, best_share = other, share
    return best


def _required_weight(term_weights: TermWeights, term: str, other_term: str) -> float:
    """Sum of weights that the documents with both key terms must reach."""
    rarer = min(term_weights.window_count(term), term_weights.window_count(other_term))
    return MERGE_SHARE * MAX_TERM_WEIGHT * rarer
