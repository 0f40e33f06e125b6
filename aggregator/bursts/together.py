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

from collections.abc import Callable

from aggregator.bursts.intake import FULL_WEIGHT
from aggregator.bursts.stories import LEAST_TO_BE_MERGED, LEAST_TO_MERGE, Agree, Stories, Story, Weigh

# Share of the documents with the rarer chief term that hold the other too: most of them. A third behaves alike.
TOGETHER = 0.5


def partner(
    stories: Stories,
    story: Story,
    weigh: Weigh,
    seen: Callable[[str], int],
    bursts: Callable[[str], bool],
    agree: Agree,
) -> Story | None:
    """The story that bursts together with this one the most (the older on a tie).

    ``seen``: documents in the window that hold a term; ``bursts``: whether those are many and unusual;
    ``agree``: whether two stories share enough to be one.
    """
    if len(story.members) < LEAST_TO_MERGE:
        return None
    chief = stories.chief(story, weigh)
    if not bursts(chief):
        return None
    # Those without the chief term can only be joined by one of theirs whose documents are mostly here.
    least = TOGETHER * FULL_WEIGHT
    ours = [t for t, w in story.sums.items() if w >= least * min(seen(t), seen(chief)) and bursts(t)]
    best, most = None, 0.0
    for other in stories.having([chief, *ours]):
        if other is story or len(other.members) < LEAST_TO_BE_MERGED or (other.event and story.event):
            continue
        theirs = stories.chief(other, weigh)
        if not bursts(theirs):
            continue
        both = story.sums.get(theirs, 0) + other.sums.get(chief, 0)
        share = both / FULL_WEIGHT / min(seen(chief), seen(theirs))
        if share >= TOGETHER and share > most and agree(story, other):
            best, most = other, share
    return best
