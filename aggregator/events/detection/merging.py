"""Merging of stories that converge, and division of those that hold two topics.

A story that grew is merged with those whose centroid or bursting terms converged with it
(``clustering.py``, ``fragments.py``), nearest first, and divided if one word is all that its two parts share
(``coherence.py``). Events follow their stories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from aggregator.events.detection import coherence, fragments
from aggregator.events.detection.assignment import create_story
from aggregator.events.detection.clustering import (
    JOIN_RELATED_COSINE,
    MIN_ITEMS_TO_MERGE,
    Story,
    StoryIndex,
    WindowItem,
)
from aggregator.events.detection.key_terms import KeyTermCache
from aggregator.events.detection.lifecycle import OpenEvents
from aggregator.events.detection.overrides import EditorOverrides
from aggregator.events.detection.term_weights import TermWeights


class StoryMerger:
    """Merges and divides the stories of a detector. ``check_burst``: called for a story that changed."""

    def __init__(
        self,
        stories: StoryIndex,
        open_events: OpenEvents,
        term_weights: TermWeights,
        check_burst: Callable[[Story], None],
    ) -> None:
        self._stories = stories
        self._open_events = open_events
        self._term_weights = term_weights
        self._check_burst = check_burst

    def merge_changed_steps(self, overrides: EditorOverrides, clock_ms: int) -> Iterator[None]:
        """Merge, then divide, the stories that grew since the last call, oldest first; one step per search.

        What editors merged by ``overrides`` is not divided.
        """
        key_terms = KeyTermCache(self._term_weights)
        for key in sorted(self._stories.changed_keys):
            yield from self._merge_with_candidates(key, key_terms, clock_ms)
        for key in sorted(self._stories.changed_keys):
            self._divide(key, key_terms, overrides, clock_ms)

    def merge(self, into: Story, absorbed: Story, clock_ms: int) -> None:
        """Move all items of ``absorbed`` into ``into``; if both are events, that of ``absorbed`` closes."""
        absorbed_event = (
            self._open_events.by_id.pop(absorbed.event_id) if absorbed.event_id is not None else None
        )
        moved = self._stories.merge(into, absorbed)
        if absorbed_event is not None:
            self._open_events.absorb(into, absorbed_event, clock_ms)
        elif into.event_id is not None:
            self._open_events.add_items(into, self._related_items(into, moved))
        else:
            self._check_burst(into)

    def _merge_with_candidates(self, key: int, key_terms: KeyTermCache, clock_ms: int) -> Iterator[None]:
        stories, weights = self._stories, self._term_weights
        while (story := stories.by_key.get(key)) is not None and len(story.members) >= MIN_ITEMS_TO_MERGE:
            other = stories.find_merge_candidate(
                story, key_terms.top_terms(story), weights.weigh, key_terms.support_merge
            ) or fragments.find_merge_partner(stories, story, weights, key_terms)
            yield
            if other is None:
                return
            into, absorbed = self._survivor(story, other)
            self.merge(into, absorbed, clock_ms)
            key_terms.invalidate(into)
            key = into.key

    def _divide(self, key: int, key_terms: KeyTermCache, overrides: EditorOverrides, clock_ms: int) -> None:
        """Move the smaller of two topics that one story holds to a new story, and out of its event."""
        story = self._stories.by_key[key]
        if len(story.members) < coherence.MIN_STORY_ITEMS or _is_merged_by_editor(story, overrides):
            return
        weights = self._term_weights
        if story.event_id is not None:
            self._remove_strays(story, clock_ms)
            key_terms.invalidate(story)
        part = coherence.find_division(story, key_terms.top_terms(story), weights.weigh, weights.expected)
        if part is None:
            return
        self._open_events.release_items(story, part)
        divided = create_story(self._stories, part[0], f":{clock_ms}")
        for member in part:
            self._stories.remove_item(member)
            self._stories.add_item(divided, member)
        key_terms.invalidate(story)
        for each in (story, divided):
            if each.event_id is None:
                self._check_burst(each)

    def _remove_strays(self, story: Story, clock_ms: int) -> None:
        """Move the items that hold nothing of an event's own to stories of their own."""
        strays = coherence.find_strays(story, self._term_weights.window_count)
        if not strays:
            return
        self._open_events.release_items(story, strays)
        for member in strays:
            self._stories.remove_item(member)
            self._stories.add_item(create_story(self._stories, member, f":{clock_ms}"), member)
        self._open_events.refresh_headlines()

    def _related_items(self, story: Story, moved: Iterable[WindowItem]) -> Iterator[WindowItem]:
        """Yield the moved items that are similar to their new story, with their cosine to it.

        A small story may hold unrelated items. They count with the story, but its event does not list them.
        """
        for member in moved:
            member.cosine = self._stories.cosine(member.terms, story, self._term_weights.weigh)
            if member.cosine >= JOIN_RELATED_COSINE:
                yield member

    def _survivor(self, a: Story, b: Story) -> tuple[Story, Story]:
        """(survivor, absorbed): the event detected first survives, else the larger, else the older story."""

        def rank(story: Story) -> tuple[float, int, int]:
            event = self._open_events.event_of_story(story)
            return event.detected_at_ms if event else float("inf"), -len(story.members), story.key

        return (a, b) if rank(a) < rank(b) else (b, a)


def _is_merged_by_editor(story: Story, overrides: EditorOverrides) -> bool:
    return story.event_id is not None and any(into == story.event_id for into, _ in overrides.merges.values())
