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
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from operator import mul

import msgspec
import numpy as np

from aggregator.events.detection.postings import Holding, Postings

# Cosine at which an item joins and at which two stories are one: .3 to .4 and .4 to .55 behave alike.
LINK = 0.35
MERGE = 0.45
# A text that is within 7 bits of a member is similar as a whole: half the cosine will do.
LINK_RELATED = LINK / 2
# A story this small has no centroid worth merging by.
LEAST_TO_MERGE = 4
LEAST_TO_BE_MERGED = 2
# A norm is worked out again when its story has changed by a twentieth or after ten minutes; at merges, at once.
STALE = 0.05
STALE_MINUTES = 10
# So many norms are worked out at a time, which takes about a millisecond.
MEASURED = 64
# Below this share of what merges by a length that old, nobody works it out again.
NEARLY = 0.8
# The largest weight of a term in an item (``intake.py``): no story of n items holds more of it than n times that.
FULL_WEIGHT = 255
# By more than rounding.
SURELY = 1 - 1e-9
# Products with so many sums take arrays as long as a loop.
FEW = 512
_UNKNOWN = float("nan")  # is not itself

Weigh = Callable[[str], float]


class Member(msgspec.Struct, array_like=True, gc=False):
    """One item in the window. ``terms``: name -> weight as an integer 1..255 (exact sums)."""

    number: int
    first: int
    id: str
    at_ms: int
    source: str
    title: str
    terms: dict[str, int]
    fires: bool
    cosine: float
    story: int
    fingerprint: int = 0
    lang: str = ""


class Story(msgspec.Struct, array_like=True, gc=False):
    """Items that belong together. ``members`` by first number, in order of joining; ``firing`` of them count."""

    key: int
    id: str
    members: dict[int, Member] = {}
    sums: dict[str, int] = {}
    firing: int = 0
    sightings: int = 0
    norm: float = 0.0
    norm_size: int = 0
    norm_minute: int = -STALE_MINUTES
    event: str | None = None


Agree = Callable[[Story, Story], bool]


class Stories:
    """All open stories."""

    def __init__(self) -> None:
        self.open: dict[int, Story] = {}
        self.next_key = 0
        self.changed: dict[int, None] = {}
        self._minute = 0
        self.of_number: dict[int, int] = {}
        self._postings = Postings()  # what sums say, by term
        self._slots: dict[int, int] = {}
        # By slot: the key of its story, its items, and its norm while that stands: none came or went since, and it is
        # not too old. And when each was worked out.
        self._keys = array("q")
        self._sizes = array("q")
        self._lengths = array("d")
        self._measured: deque[tuple[int, int]] = deque()

    def begin_minute(self, minute: int) -> None:
        """Time goes on: some lengths are too old now. When it goes back nobody knows how old they are."""
        if minute < self._minute:
            self._forget_lengths()
        self._minute = minute
        while self._measured and minute - self._measured[0][0] >= STALE_MINUTES:
            _, key = self._measured.popleft()
            if key in self.open and minute - self.open[key].norm_minute >= STALE_MINUTES:
                self._lengths[self._slots[key]] = _UNKNOWN

    def begin(self, id_: str) -> Story:
        """A new, empty story."""
        story = Story(self.next_key, id_)
        self.next_key += 1
        self._open(story)
        return story

    def nearest(
        self, terms: Mapping[str, int], weigh: Weigh
    ) -> Generator[None, None, tuple[Story | None, float]]:
        """The story with the highest cosine to ``terms`` (the older on a tie), and that cosine.

        None (and 0.0) when no story is as near as ``LINK``. In pieces, of which there are several when the lengths
        of many stories do not stand any more.
        """
        squares, length = _squares(terms, weigh)
        parts = sorted([(-square * terms[term], term, square) for term, square in squares])
        best, nearest, measured = None, 0.0, 0
        for slot, dot in self._products(parts, length).items():
            key, norm = self._keys[slot], self._lengths[slot]
            if norm != norm:
                measured += 1
                if measured % MEASURED == 0:
                    yield
                norm = self._norm(self.open[key], weigh, STALE_MINUTES)
            cosine = dot / (length * norm)
            if cosine > nearest or (cosine == nearest and best is not None and key < best):
                best, nearest = key, cosine
        return (self.open[best], min(1.0, nearest)) if best is not None and nearest >= LINK else (None, 0.0)

    def _products(self, parts: Sequence[tuple[float, str, float]], length: float) -> dict[int, float]:
        """Products of an item (``_heavy``) with the stories that can be near, by slot.

        Of many stories only with those whose length is not known, or that are near.
        """
        holding = self._postings.holding([term for _, term, _ in parts])
        squares, heavy = [square for _, _, square in parts], _heavy(parts, length)
        if sum(holding.counts) < FEW:
            return holding.products(squares, heavy)
        slots, sums = holding.columns()
        products = sums * np.array(squares).repeat(holding.counts)
        first = sum(holding.counts[:heavy])
        near = np.bincount(slots[:first], products[:first]).nonzero()[0]
        dots = np.bincount(slots, products)[near]
        lengths = np.frombuffer(self._lengths)[near]
        near_enough = ~(dots < LINK * length * SURELY * lengths)  # no length is less than anything
        return dict(zip(near[near_enough].tolist(), dots[near_enough].tolist(), strict=True))

    def cosine(self, terms: Mapping[str, int], story: Story, weigh: Weigh) -> float:
        """Similarity of an item to one story, 0..1."""
        squares, length = _squares(terms, weigh)
        dot = sum(square * story.sums.get(term, 0) for term, square in squares)
        return min(1.0, dot / (length * self._norm(story, weigh, STALE_MINUTES))) if dot else 0.0

    def join(self, story: Story, member: Member) -> None:
        """Add an item. Its first number must not be in any story."""
        member.story = story.key
        story.members[member.first] = member
        self.of_number[member.first] = story.key
        if member.number != member.first:
            self.of_number[member.number] = story.key
        story.firing += member.fires
        slot = self._changed(story)
        self._postings.add(slot, story.sums, member.terms)
        if len(story.members) >= LEAST_TO_MERGE:
            self.changed[story.key] = None

    def member(self, first: int) -> Member | None:
        """The item in the window with this first number."""
        key = self.of_number.get(first)
        return self.open[key].members.get(first) if key is not None else None

    def renumber(self, member: Member, number: int) -> None:
        """A new version of an item goes by a new number as well."""
        if member.number != member.first:
            self.of_number.pop(member.number, None)
        member.number = number
        if member.story >= 0:
            self.of_number[number] = member.story

    def leave(self, member: Member) -> Story:
        """Take an item out; a story without items is no longer open."""
        story = self.open[member.story]
        del story.members[member.first]
        self.of_number.pop(member.first, None)
        self.of_number.pop(member.number, None)
        story.firing -= member.fires
        self._postings.take(self._changed(story), story.sums, member.terms)
        if not story.members:
            self._close(story)
        return story

    def merge(self, into: Story, other: Story) -> list[Member]:
        """Move all items of ``other``; returns them in order of time."""
        moved = sorted(other.members.values(), key=lambda m: (m.at_ms, m.number))
        for member in moved:
            member.story = into.key
            into.members[member.first] = member
            self.of_number[member.first] = self.of_number[member.number] = into.key
        sums = dict(other.sums)
        self._postings.take(self._slots[other.key], other.sums, sums)
        self._postings.add(self._changed(into), into.sums, sums)
        into.sightings += other.sightings
        into.firing += other.firing
        into.norm_minute = -STALE_MINUTES
        self._close(other)
        self.changed[into.key] = None
        return moved

    def converged(self, story: Story, heaviest: Iterable[str], weigh: Weigh, agree: Agree) -> Story | None:
        """The story nearest to this one, of those that are one with it by now and ``agree`` with it.

        ``heaviest``: its own most distinctive terms.
        """
        own = self._norm(story, weigh)
        best, nearest = None, MERGE
        for key, dot, squares in self._dots(story, heaviest, weigh, nearest * own):
            # A length is no less than that of the terms in common: most stories need no more than this.
            if dot < nearest * own * math.sqrt(squares):
                continue
            other = self.open[key]
            if dot < NEARLY * nearest * own * self._norm(other, weigh, STALE_MINUTES):
                continue
            cosine = dot / (own * self._norm(other, weigh))
            if cosine < nearest or (best is not None and cosine == nearest):
                continue
            if agree(story, other):
                best, nearest = other, cosine
        return best

    def having(self, terms: Iterable[str]) -> list[Story]:
        """Stories with any of these terms, and with items enough to be merged; the oldest first."""
        keys, sizes = self._keys, self._sizes
        found = [keys[s] for s in self._postings.holding(terms).slots() if sizes[s] >= LEAST_TO_BE_MERGED]
        return [self.open[key] for key in sorted(found)]

    def outdate(self) -> None:
        """Weights are not what they were: every norm is worked out again."""
        for story in self.open.values():
            story.norm_minute = -STALE_MINUTES
        self._forget_lengths()

    def restore(self, stories: Iterable[Story], next_key: int) -> None:
        """Put back saved stories."""
        self.next_key = next_key
        for story in stories:
            slot = self._open(story)
            self._sizes[slot] = len(story.members)
            for member in story.members.values():
                self.of_number[member.first] = self.of_number[member.number] = story.key
            self._postings.add(slot, {}, story.sums)

    def _dots(
        self, story: Story, heaviest: Iterable[str], weigh: Weigh, least: float
    ) -> list[tuple[int, float, float]]:
        """Products of this story's heaviest terms with the stories that have them, and their squares in these.

        Only of stories that can be merged, the oldest first; of many only those whose product is no less than ``least``
        times the root of the squares.
        """
        terms = list(heaviest)
        weights = [weigh(term) for term in terms]
        own = [weight * story.sums[term] for weight, term in zip(weights, terms, strict=True)]
        holding = self._postings.holding(terms)
        is_few = sum(holding.counts) < FEW
        found = _few_dots(holding, own, weights) if is_few else _many_dots(holding, own, weights, least)
        keys, sizes = self._keys, self._sizes
        large = [(keys[slot], *both) for slot, both in found.items() if sizes[slot] >= LEAST_TO_BE_MERGED]
        return sorted(each for each in large if each[0] != story.key)

    def _norm(self, story: Story, weigh: Weigh, minutes: int = 1) -> float:
        size = len(story.members)
        fresh = self._minute - story.norm_minute < minutes
        if not fresh or abs(size - story.norm_size) >= max(1.0, story.norm_size * STALE):
            squares = 0.0  # a loop, not sum(), whose rounding differs between versions of Python
            for length in map(mul, map(weigh, story.sums), story.sums.values()):
                squares += length * length
            story.norm = math.sqrt(squares)
            story.norm_size, story.norm_minute = size, self._minute
            self._lengths[self._slots[story.key]] = story.norm
            self._measured.append((self._minute, story.key))
        return story.norm

    # -- slots ---------------------------------------------------------------------------------

    def _open(self, story: Story) -> int:
        self.open[story.key] = story
        slot = self._slots[story.key] = self._postings.begin()
        if slot == len(self._keys):
            self._keys.append(0)
            self._sizes.append(0)
            self._lengths.append(0.0)
        self._keys[slot], self._sizes[slot], self._lengths[slot] = story.key, 0, _UNKNOWN
        return slot

    def _close(self, story: Story) -> None:
        del self.open[story.key]
        self.changed.pop(story.key, None)
        self._postings.end(self._slots.pop(story.key))

    def _changed(self, story: Story) -> int:
        """Items came or went. Gives the slot."""
        slot = self._slots[story.key]
        self._sizes[slot], self._lengths[slot] = len(story.members), _UNKNOWN
        return slot

    def _forget_lengths(self) -> None:
        self._lengths = array("d", [_UNKNOWN]) * len(self._lengths)
        self._measured.clear()


def _heavy(parts: Sequence[tuple[float, str, float]], length: float) -> int:
    """How many of an item's terms are heavy; they are the first of ``parts`` (its squares, negative).

    Prefix filtering (Chaudhuri, Ganti & Kaushik 2006): a story that shares only the lightest of the item's
    terms, which make up less than ``LINK`` of its length together, cannot be as near as that. These are also
    the common words, which most stories hold.
    """
    left, enough = length * length, LINK * LINK * length * length
    for count, (square, _, _) in enumerate(parts):
        if left < enough:
            return count
        left += square
    return len(parts)


def _few_dots(
    holding: Holding, own: Sequence[float], weights: Sequence[float]
) -> dict[int, tuple[float, float]]:
    found: dict[int, tuple[float, float]] = {}
    for number, slot, total in holding:
        theirs = weights[number] * total
        dot, squares = found.get(slot, (0.0, 0.0))
        found[slot] = dot + own[number] * theirs, squares + theirs * theirs
    return found


def _many_dots(
    holding: Holding, own: Sequence[float], weights: Sequence[float], least: float
) -> dict[int, tuple[float, float]]:
    slots, sums = holding.columns()
    theirs = np.array(weights).repeat(holding.counts) * sums
    dots = np.bincount(slots, np.array(own).repeat(holding.counts) * theirs)
    squares = np.bincount(slots, theirs * theirs)
    near = ((dots > 0) & (dots >= least * np.sqrt(squares))).nonzero()[0]
    both = zip(dots[near].tolist(), squares[near].tolist(), strict=True)
    return dict(zip(near.tolist(), both, strict=True))


def _squares(terms: Mapping[str, int], weigh: Weigh) -> tuple[list[tuple[str, float]], float]:
    """(term, item weight times both bursting weights), and the item's length."""
    weights = [(term, weigh(term), weight) for term, weight in terms.items()]
    length = math.sqrt(sum([(w * x) ** 2 for _, w, x in weights]))
    return [(term, w * w * x) for term, w, x in weights], length
