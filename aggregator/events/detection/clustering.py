"""Which story does an item belong to? Centroids over the window, never chains of neighbours.

A story is the items of the last window that joined it, and the sums of their term weights. An item's
similarity to it is the cosine between the item's terms and those sums, both weighted by what each term
says *now* (``Background.weight``): while a place bursts, headlines that share little else but that place
are alike; a day later they are not. Stories whose centroids have come together are merged.

An inverted index (``postings.py``) finds the stories an item can be similar to at all, and multiplies with all of
them at once: products are added up term after term, so they are those of a loop in every bit. Everything here
is bounded by the window. Dictionaries keep their order of insertion, and no set is iterated, so that
equal input gives equal bytes.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import mul

import msgspec
import numpy as np

from aggregator.events.detection.postings import Postings, TermPostings

# Cosine at which an item joins and at which two stories are one: .3 to .4 and .4 to .55 behave alike.
JOIN_COSINE = 0.35
MERGE_COSINE = 0.45
# A text that is within 7 bits of a member is similar as a whole: half the cosine will do.
JOIN_RELATED_COSINE = JOIN_COSINE / 2
# A story this small has no centroid worth merging by.
MIN_ITEMS_TO_MERGE = 4
MIN_ITEMS_TO_BE_MERGED = 2
# A norm is worked out again when its story has changed by a twentieth or after ten minutes; at merges, at once.
NORM_STALE_GROWTH_RATIO = 0.05
NORM_STALE_MINUTES = 10
# Below this share of what merges by a length that old, nobody works it out again.
STALE_NORM_PREFILTER_RATIO = 0.8
# The largest weight of a term in an item (``intake.py``): no story of n items holds more of it than n times that.
MAX_TERM_WEIGHT = 255
# By more than rounding.
ROUNDING_MARGIN = 1 - 1e-9
# Products with so many sums take arrays as long as a loop.
ARRAY_MIN_POSTINGS = 512
_UNKNOWN_NORM = float("nan")  # is not itself

TermWeigher = Callable[[str], float]


class WindowItem(msgspec.Struct, array_like=True, gc=False):
    """One item in the window. ``terms``: name -> weight as an integer 1..255 (exact sums)."""

    number: int
    first_version: int
    id: str
    at_ms: int
    source: str
    title: str
    terms: dict[str, int]
    is_counted: bool
    cosine: float
    story_key: int
    fingerprint: int = 0
    lang: str = ""


class Story(msgspec.Struct, array_like=True, gc=False):
    """Items that belong together. ``members`` by first number, in order of joining; ``firing`` of them count."""

    key: int
    id: str
    members: dict[int, WindowItem] = {}
    term_sums: dict[str, int] = {}
    counted_items: int = 0
    sightings: int = 0
    norm: float = 0.0
    norm_size: int = 0
    norm_minute: int = -NORM_STALE_MINUTES
    event_id: str | None = None


MergePredicate = Callable[[Story, Story], bool]


class StoryIndex:
    """All open stories."""

    def __init__(self) -> None:
        self.by_key: dict[int, Story] = {}
        self.next_key = 0
        self.changed_keys: dict[int, None] = {}
        self._minute = 0
        self.key_by_number: dict[int, int] = {}
        self._postings = Postings()  # what sums say, by term
        self._slots: dict[int, int] = {}
        # By slot: the key of its story, its items, and its norm while that stands: none came or went since, and it is
        # not too old. And when each was worked out.
        self._keys = array("q")
        self._sizes = array("q")
        self._norms = array("d")
        self._norm_times: deque[tuple[int, int]] = deque()

    def begin_minute(self, minute: int) -> None:
        """Time goes on: some lengths are too old now. When it goes back nobody knows how old they are."""
        if minute < self._minute:
            self._reset_norms()
        self._minute = minute
        while self._norm_times and minute - self._norm_times[0][0] >= NORM_STALE_MINUTES:
            _, key = self._norm_times.popleft()
            if key in self.by_key and minute - self.by_key[key].norm_minute >= NORM_STALE_MINUTES:
                self._norms[self._slots[key]] = _UNKNOWN_NORM

    def create(self, id_: str) -> Story:
        """A new, empty story."""
        story = Story(self.next_key, id_)
        self.next_key += 1
        self._assign_slot(story)
        return story

    def nearest(self, terms: Mapping[str, int], weigh: TermWeigher) -> tuple[Story | None, float]:
        """The story with the highest cosine to ``terms`` (the older on a tie), and that cosine.

        None (and 0.0) when no story is as near as ``LINK``. In pieces, of which there are several when the lengths
        of many stories do not stand any more.
        """
        squares, length = _squared_weights(terms, weigh)
        parts = sorted([(-square * terms[term], term, square) for term, square in squares])
        best, nearest = None, 0.0
        for slot, dot in self._candidate_products(parts, length).items():
            key, norm = self._keys[slot], self._norms[slot]
            if norm != norm:
                norm = self._refreshed_norm(self.by_key[key], weigh, NORM_STALE_MINUTES)
            cosine = dot / (length * norm)
            if cosine > nearest or (cosine == nearest and best is not None and key < best):
                best, nearest = key, cosine
        return (
            (self.by_key[best], min(1.0, nearest))
            if best is not None and nearest >= JOIN_COSINE
            else (None, 0.0)
        )

    def _candidate_products(
        self, parts: Sequence[tuple[float, str, float]], length: float
    ) -> dict[int, float]:
        """Products of an item (``_heavy``) with the stories that can be near, by slot.

        Of many stories only with those whose length is not known, or that are near.
        """
        holding = self._postings.lookup([term for _, term, _ in parts])
        squares, heavy = [square for _, _, square in parts], _prefix_length(parts, length)
        if sum(holding.lengths) < ARRAY_MIN_POSTINGS:
            return holding.dot_products(squares, heavy)
        slots, sums = holding.columns()
        products = sums * np.array(squares).repeat(holding.lengths)
        first = sum(holding.lengths[:heavy])
        near = np.bincount(slots[:first], products[:first]).nonzero()[0]
        dots = np.bincount(slots, products)[near]
        lengths = np.frombuffer(self._norms)[near]
        near_enough = ~(
            dots < JOIN_COSINE * length * ROUNDING_MARGIN * lengths
        )  # no length is less than anything
        return dict(zip(near[near_enough].tolist(), dots[near_enough].tolist(), strict=True))

    def cosine(self, terms: Mapping[str, int], story: Story, weigh: TermWeigher) -> float:
        """Similarity of an item to one story, 0..1."""
        squares, length = _squared_weights(terms, weigh)
        dot = sum(square * story.term_sums.get(term, 0) for term, square in squares)
        return (
            min(1.0, dot / (length * self._refreshed_norm(story, weigh, NORM_STALE_MINUTES))) if dot else 0.0
        )

    def add_item(self, story: Story, member: WindowItem) -> None:
        """Add an item. Its first number must not be in any story."""
        member.story_key = story.key
        story.members[member.first_version] = member
        self.key_by_number[member.first_version] = story.key
        if member.number != member.first_version:
            self.key_by_number[member.number] = story.key
        story.counted_items += member.is_counted
        slot = self._mark_changed(story)
        self._postings.add(slot, story.term_sums, member.terms)
        if len(story.members) >= MIN_ITEMS_TO_MERGE:
            self.changed_keys[story.key] = None

    def find_item(self, first_version: int) -> WindowItem | None:
        """The item in the window with this first number."""
        key = self.key_by_number.get(first_version)
        return self.by_key[key].members.get(first_version) if key is not None else None

    def renumber(self, member: WindowItem, number: int) -> None:
        """A new version of an item goes by a new number as well."""
        if member.number != member.first_version:
            self.key_by_number.pop(member.number, None)
        member.number = number
        if member.story_key >= 0:
            self.key_by_number[number] = member.story_key

    def remove_item(self, member: WindowItem) -> Story:
        """Take an item out; a story without items is no longer open."""
        story = self.by_key[member.story_key]
        del story.members[member.first_version]
        self.key_by_number.pop(member.first_version, None)
        self.key_by_number.pop(member.number, None)
        story.counted_items -= member.is_counted
        self._postings.subtract(self._mark_changed(story), story.term_sums, member.terms)
        if not story.members:
            self._release_slot(story)
        return story

    def merge(self, into: Story, other: Story) -> list[WindowItem]:
        """Move all items of ``other``; returns them in order of time."""
        moved = sorted(other.members.values(), key=lambda m: (m.at_ms, m.number))
        for member in moved:
            member.story_key = into.key
            into.members[member.first_version] = member
            self.key_by_number[member.first_version] = self.key_by_number[member.number] = into.key
        sums = dict(other.term_sums)
        self._postings.subtract(self._slots[other.key], other.term_sums, sums)
        self._postings.add(self._mark_changed(into), into.term_sums, sums)
        into.sightings += other.sightings
        into.counted_items += other.counted_items
        into.norm_minute = -NORM_STALE_MINUTES
        self._release_slot(other)
        self.changed_keys[into.key] = None
        return moved

    def find_merge_candidate(
        self, story: Story, top_terms: Iterable[str], weigh: TermWeigher, may_merge: MergePredicate
    ) -> Story | None:
        """The story nearest to this one, of those that are one with it by now and ``agree`` with it.

        ``heaviest``: its own most distinctive terms.
        """
        own = self._refreshed_norm(story, weigh)
        best, nearest = None, MERGE_COSINE
        for key, dot, squares in self._merge_products(story, top_terms, weigh, nearest * own):
            # A length is no less than that of the terms in common: most stories need no more than this.
            if dot < nearest * own * math.sqrt(squares):
                continue
            other = self.by_key[key]
            if dot < STALE_NORM_PREFILTER_RATIO * nearest * own * self._refreshed_norm(
                other, weigh, NORM_STALE_MINUTES
            ):
                continue
            cosine = dot / (own * self._refreshed_norm(other, weigh))
            if cosine < nearest or (best is not None and cosine == nearest):
                continue
            if may_merge(story, other):
                best, nearest = other, cosine
        return best

    def with_any_term(self, terms: Iterable[str]) -> list[Story]:
        """Stories with any of these terms, and with items enough to be merged; the oldest first."""
        keys, sizes = self._keys, self._sizes
        found = [keys[s] for s in self._postings.lookup(terms).slots() if sizes[s] >= MIN_ITEMS_TO_BE_MERGED]
        return [self.by_key[key] for key in sorted(found)]

    def invalidate_norms(self) -> None:
        """Weights are not what they were: every norm is worked out again."""
        for story in self.by_key.values():
            story.norm_minute = -NORM_STALE_MINUTES
        self._reset_norms()

    def restore(self, stories: Iterable[Story], next_key: int) -> None:
        """Put back saved stories."""
        self.next_key = next_key
        for story in stories:
            slot = self._assign_slot(story)
            self._sizes[slot] = len(story.members)
            for member in story.members.values():
                self.key_by_number[member.first_version] = self.key_by_number[member.number] = story.key
            self._postings.add(slot, {}, story.term_sums)

    def _merge_products(
        self, story: Story, top_terms: Iterable[str], weigh: TermWeigher, min_product: float
    ) -> list[tuple[int, float, float]]:
        """Products of this story's heaviest terms with the stories that have them, and their squares in these.

        Only of stories that can be merged, the oldest first; of many only those whose product is no less than ``least``
        times the root of the squares.
        """
        terms = list(top_terms)
        weights = [weigh(term) for term in terms]
        own = [weight * story.term_sums[term] for weight, term in zip(weights, terms, strict=True)]
        holding = self._postings.lookup(terms)
        is_few = sum(holding.lengths) < ARRAY_MIN_POSTINGS
        found = (
            _loop_products(holding, own, weights)
            if is_few
            else _array_products(holding, own, weights, min_product)
        )
        keys, sizes = self._keys, self._sizes
        large = [(keys[slot], *both) for slot, both in found.items() if sizes[slot] >= MIN_ITEMS_TO_BE_MERGED]
        return sorted(each for each in large if each[0] != story.key)

    def _refreshed_norm(self, story: Story, weigh: TermWeigher, max_age_minutes: int = 1) -> float:
        size = len(story.members)
        fresh = self._minute - story.norm_minute < max_age_minutes
        if not fresh or abs(size - story.norm_size) >= max(1.0, story.norm_size * NORM_STALE_GROWTH_RATIO):
            squares = 0.0  # a loop, not sum(), whose rounding differs between versions of Python
            for length in map(mul, map(weigh, story.term_sums), story.term_sums.values()):
                squares += length * length
            story.norm = math.sqrt(squares)
            story.norm_size, story.norm_minute = size, self._minute
            self._norms[self._slots[story.key]] = story.norm
            self._norm_times.append((self._minute, story.key))
        return story.norm

    # -- slots ---------------------------------------------------------------------------------

    def _assign_slot(self, story: Story) -> int:
        self.by_key[story.key] = story
        slot = self._slots[story.key] = self._postings.allocate_slot()
        if slot == len(self._keys):
            self._keys.append(0)
            self._sizes.append(0)
            self._norms.append(0.0)
        self._keys[slot], self._sizes[slot], self._norms[slot] = story.key, 0, _UNKNOWN_NORM
        return slot

    def _release_slot(self, story: Story) -> None:
        del self.by_key[story.key]
        self.changed_keys.pop(story.key, None)
        self._postings.free_slot(self._slots.pop(story.key))

    def _mark_changed(self, story: Story) -> int:
        """Items came or went. Gives the slot."""
        slot = self._slots[story.key]
        self._sizes[slot], self._norms[slot] = len(story.members), _UNKNOWN_NORM
        return slot

    def _reset_norms(self) -> None:
        self._norms = array("d", [_UNKNOWN_NORM]) * len(self._norms)
        self._norm_times.clear()


def _prefix_length(parts: Sequence[tuple[float, str, float]], length: float) -> int:
    """How many of an item's terms are heavy; they are the first of ``parts`` (its squares, negative).

    Prefix filtering (Chaudhuri, Ganti & Kaushik 2006): a story that shares only the lightest of the item's
    terms, which make up less than ``LINK`` of its length together, cannot be as near as that. These are also
    the common words, which most stories hold.
    """
    left, enough = length * length, JOIN_COSINE * JOIN_COSINE * length * length
    for count, (square, _, _) in enumerate(parts):
        if left < enough:
            return count
        left += square
    return len(parts)


def _loop_products(
    postings: TermPostings, own: Sequence[float], weights: Sequence[float]
) -> dict[int, tuple[float, float]]:
    found: dict[int, tuple[float, float]] = {}
    for number, slot, total in postings:
        theirs = weights[number] * total
        dot, squares = found.get(slot, (0.0, 0.0))
        found[slot] = dot + own[number] * theirs, squares + theirs * theirs
    return found


def _array_products(
    postings: TermPostings, own: Sequence[float], weights: Sequence[float], min_product: float
) -> dict[int, tuple[float, float]]:
    slots, sums = postings.columns()
    theirs = np.array(weights).repeat(postings.lengths) * sums
    dots = np.bincount(slots, np.array(own).repeat(postings.lengths) * theirs)
    squares = np.bincount(slots, theirs * theirs)
    near = ((dots > 0) & (dots >= min_product * np.sqrt(squares))).nonzero()[0]
    both = zip(dots[near].tolist(), squares[near].tolist(), strict=True)
    return dict(zip(near.tolist(), both, strict=True))


def _squared_weights(terms: Mapping[str, int], weigh: TermWeigher) -> tuple[list[tuple[str, float]], float]:
    """(term, item weight times both bursting weights), and the item's length."""
    weights = [(term, weigh(term), weight) for term, weight in terms.items()]
    length = math.sqrt(sum([(w * x) ** 2 for _, w, x in weights]))
    return [(term, w * w * x) for term, w, x in weights], length
