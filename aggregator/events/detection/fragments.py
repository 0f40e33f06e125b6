"""Which stories are parts of one burst? By the terms that burst in both, before the items are counted.

Early headlines of one matter name the town, or the building, or the victims; their stories have too little
in common for a centroid and none reaches the rule's number alone. What holds them together is that the
terms they are about burst at the same time *and in the same documents* (bursty features grouped by the
overlap of their documents: Fung, Yu, Yu & Lu 2005; bursty features as weights: He, Chang & Lim 2007)::

    story A (13 items)   chief term "shooting", 6 of its items also name the town
    story B (4 items)    chief term the town, 9 documents name it in the window
    6 of the 9 documents of the rarer term hold both: one burst, 17 items

A chief term is the heaviest of a story. Two stories that are events already are never joined this way.
"""

from __future__ import annotations

from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, MIN_ITEMS_TO_BE_MERGED, Story, StoryIndex
from aggregator.events.detection.key_terms import KeyTermCache
from aggregator.events.detection.term_weights import TermWeights

# Share of the documents with the rarer chief term that hold the other too: most of them. A third behaves alike.
MERGE_SHARE = 0.5


def find_merge_partner(
    stories: StoryIndex, story: Story, term_weights: TermWeights, key_terms: KeyTermCache
) -> Story | None:
    """The story that bursts together with this one the most (the older on a tie)."""
    chief = key_terms.top_term(story)
    if not term_weights.is_bursting(chief):
        return None
    ours = {
        term: _required_weight(term_weights, chief, term) - story.term_sums[term]
        for term in term_weights.bursting_terms(story.term_sums)
        if term != chief
    }
    # No two chief terms need less than this, since a bursting term is in so many documents.
    least = MERGE_SHARE * MAX_TERM_WEIGHT * term_weights.min_burst_documents
    alone = _required_weight(term_weights, chief, chief) - story.term_sums[chief]
    best, most = None, 0.0
    for other in stories.with_any_term([chief, *(term for term, missing in ours.items() if missing <= 0)]):
        if (
            other is story
            or len(other.members) < MIN_ITEMS_TO_BE_MERGED
            or (other.event_id and story.event_id)
        ):
            continue
        named = other.term_sums.get(chief, 0)
        # Its chief term is one of ours, or one that ours has not. Working it out costs more than all of this.
        common = ours.keys() & other.term_sums.keys() if named < least else ()
        if not (
            named >= least
            or any(ours[term] <= named for term in common)
            or (named >= alone and any(story.term_sums[term] + named >= least for term in common))
        ):
            continue
        theirs = key_terms.top_term(other)
        if not term_weights.is_bursting(theirs):
            continue
        both = story.term_sums.get(theirs, 0) + named
        share = (
            both / MAX_TERM_WEIGHT / min(term_weights.window_count(chief), term_weights.window_count(theirs))
        )
        if share >= MERGE_SHARE and share > most and key_terms.support_merge(story, other):
            best, most = other, share
    return best


def _required_weight(term_weights: TermWeights, term: str, other_term: str) -> float:
    """What documents that hold both chief terms must weigh."""
    return (
        MERGE_SHARE
        * MAX_TERM_WEIGHT
        * min(term_weights.window_count(term), term_weights.window_count(other_term))
    )
