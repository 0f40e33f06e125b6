"""Assignment of items to stories: the story of the duplicate, the nearest one, the related one, or a new one.

Under the literal rule an item is compared with its neighbors instead (``hamming_mode.py``).
"""

from __future__ import annotations

import xxhash

from aggregator.domain import StreamItem
from aggregator.events.detection.clustering import (
    JOIN_RELATED_COSINE,
    MIN_ITEMS_TO_MERGE,
    Story,
    StoryIndex,
    WindowItem,
)
from aggregator.events.detection.hamming_mode import HammingMode
from aggregator.events.detection.lifecycle import OpenEvents
from aggregator.events.detection.model import BurstRule
from aggregator.events.detection.term_weights import TermWeights


class StoryAssignment:
    """Finds the story of each item of a detector. ``hamming_mode``: None except under the literal rule."""

    def __init__(
        self,
        rule: BurstRule,
        stories: StoryIndex,
        open_events: OpenEvents,
        term_weights: TermWeights,
        hamming_mode: HammingMode | None,
    ) -> None:
        self._rule = rule
        self._stories = stories
        self._open_events = open_events
        self._term_weights = term_weights
        self._hamming_mode = hamming_mode

    def story_of_duplicate(self, item: StreamItem) -> Story | None:
        """Story of the article that this one duplicates, if it is in the window."""
        # The literal rule counts duplicates like any item.
        if item.verdict != "duplicate" or self._hamming_mode is not None:
            return None
        return self._story_containing(item.canonical_first) or self._story_containing(item.matched_number)

    def assign(self, member: WindowItem, item: StreamItem, duplicate_story: Story | None) -> Story:
        """Add an item of the window to its story, which may be new, and return it."""
        story, member.cosine = self._nearest_story(member, duplicate_story)
        if story is None:
            story, member.cosine = self._story_of_related(item, member)
        if story is None:
            story, member.cosine = create_story(self._stories, member), 1.0
        self._add_to_story(story, member)
        return story

    def find_event_story(self, member: WindowItem, duplicate_story: Story | None) -> Story | None:
        """Return the story of an uncounted item if it is an event, and set the item's cosine to it."""
        story, member.cosine = self._nearest_story(member, duplicate_story)
        return story if story is not None and story.event_id is not None else None

    def assign_by_hamming_distance(self, member: WindowItem, clock_ms: int) -> None:
        """Apply the literal rule of Hu & You: count the neighbors of the item instead of a story."""
        assert self._hamming_mode is not None
        seed = self._hamming_mode.find_seed(member)
        neighbors = self._hamming_mode.add(member)
        if seed is not None:
            self._add_to_story(self._stories.by_key[seed.story_key], member)
        elif member.is_counted and sum(m.is_counted for m in neighbors) > self._rule.items:
            story = create_story(self._stories, member)
            for neighbor in neighbors:
                self._add_to_story(story, neighbor)
            self._hamming_mode.seeds.append(member)
            self._open_events.fire(story, clock_ms, 0.0)

    def add_to_event(self, story: Story, member: WindowItem) -> None:
        """Add an uncounted item to the story of an event."""
        self._add_to_story(story, member)

    def _nearest_story(self, member: WindowItem, duplicate_story: Story | None) -> tuple[Story | None, float]:
        """The story of the duplicate, else the nearest one, and the cosine to it."""
        if duplicate_story is not None:
            return duplicate_story, 1.0
        story, cosine = self._stories.nearest(member.terms, self._term_weights.weigh)
        return (story, cosine) if story and not self._is_rest_of_other_event(story, member) else (None, 0.0)

    def _is_rest_of_other_event(self, story: Story, member: WindowItem) -> bool:
        """Whether the story is the last items of an event that was about something else than the item."""
        event = self._open_events.event_of_story(story)
        return (
            event is not None
            and len(story.members) < MIN_ITEMS_TO_MERGE
            and self._open_events.similarity(event, member) < JOIN_RELATED_COSINE
        )

    def _story_of_related(self, item: StreamItem, member: WindowItem) -> tuple[Story | None, float]:
        """Story of the related article and the cosine to it, if at least ``JOIN_RELATED_COSINE``."""
        story = self._story_containing(item.matched_number) if item.verdict != "new" else None
        cosine = self._stories.cosine(member.terms, story, self._term_weights.weigh) if story else 0.0
        return (story, cosine) if cosine >= JOIN_RELATED_COSINE else (None, 0.0)

    def _story_containing(self, number: int | None) -> Story | None:
        key = self._stories.key_by_number.get(number) if number is not None else None
        return self._stories.by_key[key] if key is not None else None

    def _add_to_story(self, story: Story, member: WindowItem) -> None:
        self._stories.add_item(story, member)
        if story.event_id is not None:
            self._open_events.add_items(story, [member])


def create_story(stories: StoryIndex, member: WindowItem, suffix: str = "") -> Story:
    """New story; its id depends on its first item alone, so that a replayed stream gives the same ids.

    ``suffix``: for a part of a divided story, whose first item may be that of the other part.
    """
    seed = f"{member.first_version}:{member.id}{suffix}".encode("utf-8", "surrogatepass")
    return stories.create(xxhash.xxh3_64_hexdigest(seed))
