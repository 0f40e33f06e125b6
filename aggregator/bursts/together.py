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

from aggregator.bursts.intake import FULL_WEIGHT
from aggregator.bursts.stories import LEAST_TO_BE_MERGED, LEAST_TO_MERGE, Agree, Stories, Story
from aggregator.bursts.terms import Terms

# Share of the documents with the rarer chief term that hold the other too: most of them. A third behaves alike.
TOGETHER = 0.5


def partner(stories: Stories, story: Story, terms: Terms, agree: Agree) -> Story | None:
    """The story that bursts together with this one the most (the older on a tie).

    ``agree``: whether two stories share enough to be one.
    """
    if len(story.members) < LEAST_TO_MERGE:
        return None
    chief = stories.chief(story, terms.weigh)
    if not terms.bursts(chief):
        return None
    ours = [term for term in story.sums if term != chief and terms.bursts(term)]
    # What documents that hold both must weigh at least, since a bursting term is in that many: few stories have it.
    least = TOGETHER * FULL_WEIGHT * min(terms.seen(chief), terms.least_burst)
    best, most = None, 0.0
    for other in stories.having([chief, *(term for term in ours if story.sums[term] >= least)]):
        if other is story or len(other.members) < LEAST_TO_BE_MERGED or (other.event and story.event):
            continue
        named = other.sums.get(chief, 0)
        if named < least and not any(
            story.sums[term] + named >= least for term in ours if term in other.sums
        ):
            continue
        theirs = stories.chief(other, terms.weigh)
        if not terms.bursts(theirs):
            continue
        both = story.sums.get(theirs, 0) + named
        share = both / FULL_WEIGHT / min(terms.seen(chief), terms.seen(theirs))
        if share >= TOGETHER and share > most and agree(story, other):
            best, most = other, share
    return best
