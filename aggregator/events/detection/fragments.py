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

from aggregator.events.detection.clustering import FULL_WEIGHT, LEAST_TO_BE_MERGED, Stories, Story
from aggregator.events.detection.key_terms import Chiefs
from aggregator.events.detection.term_weights import Terms

# Share of the documents with the rarer chief term that hold the other too: most of them. A third behaves alike.
TOGETHER = 0.5


def partner(stories: Stories, story: Story, terms: Terms, chiefs: Chiefs) -> Story | None:
    """The story that bursts together with this one the most (the older on a tie)."""
    chief = chiefs.first(story)
    if not terms.bursts(chief):
        return None
    ours = {
        term: _needed(terms, chief, term) - story.sums[term]
        for term in terms.bursting(story.sums)
        if term != chief
    }
    # No two chief terms need less than this, since a bursting term is in so many documents.
    least = TOGETHER * FULL_WEIGHT * terms.least_burst
    alone = _needed(terms, chief, chief) - story.sums[chief]
    best, most = None, 0.0
    for other in stories.having([chief, *(term for term, missing in ours.items() if missing <= 0)]):
        if other is story or len(other.members) < LEAST_TO_BE_MERGED or (other.event and story.event):
            continue
        named = other.sums.get(chief, 0)
        # Its chief term is one of ours, or one that ours has not. Working it out costs more than all of this.
        common = ours.keys() & other.sums.keys() if named < least else ()
        if not (
            named >= least
            or any(ours[term] <= named for term in common)
            or (named >= alone and any(story.sums[term] + named >= least for term in common))
        ):
            continue
        theirs = chiefs.first(other)
        if not terms.bursts(theirs):
            continue
        both = story.sums.get(theirs, 0) + named
        share = both / FULL_WEIGHT / min(terms.seen(chief), terms.seen(theirs))
        if share >= TOGETHER and share > most and chiefs.agree(story, other):
            best, most = other, share
    return best


def _needed(terms: Terms, chief: str, theirs: str) -> float:
    """What documents that hold both chief terms must weigh."""
    return TOGETHER * FULL_WEIGHT * min(terms.seen(chief), terms.seen(theirs))
