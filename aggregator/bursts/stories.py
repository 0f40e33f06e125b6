"""Which story does an item belong to? Centroids over the window, never chains of neighbours.

A story is the items of the last window that joined it, and the sums of their term weights. An item's
similarity to it is the cosine between the item's terms and those sums, both weighted by what each term
says *now* (``Background.weight``): while a place bursts, headlines that share little else but that place
are alike; a day later they are not. Stories whose centroids have come together are merged.

An inverted index (term -> stories) finds the stories an item can be similar to at all. Everything here
is bounded by the window. Dictionaries keep their order of insertion, and no set is iterated, so that
equal input gives equal bytes.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Mapping
from operator import mul

import msgspec

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
_NONE: Mapping[int, int] = {}

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
        self._with: defaultdict[str, dict[int, int]] = defaultdict(dict)  # what sums say, by term
        # Norms that stand, with the number of items: none came or went since, and they are not too old; and when
        # each was worked out.
        self._lengths: dict[int, tuple[float, int]] = {}
        self._measured: deque[tuple[int, int]] = deque()

    def begin_minute(self, minute: int) -> None:
        """Time goes on: some lengths are too old now. When it goes back nobody knows how old they are."""
        if minute < self._minute:
            self._lengths.clear()
            self._measured.clear()
        self._minute = minute
        while self._measured and minute - self._measured[0][0] >= STALE_MINUTES:
            _, key = self._measured.popleft()
            if key in self._lengths and minute - self.open[key].norm_minute >= STALE_MINUTES:
                del self._lengths[key]

    def begin(self, id_: str) -> Story:
        """A new, empty story."""
        story = Story(self.next_key, id_)
        self.next_key += 1
        self.open[story.key] = story
        return story

    def nearest(
        self, terms: Mapping[str, int], weigh: Weigh
    ) -> Generator[None, None, tuple[Story | None, float]]:
        """The story with the highest cosine to ``terms`` (the older on a tie), and that cosine.

        None (and 0.0) when no story is as near as ``LINK``. In pieces, of which there are several when the lengths
        of many stories do not stand any more.
        """
        best, nearest, measured = None, 0.0, 0
        dots, light, length = self._candidates(terms, weigh)
        room = FULL_WEIGHT * sum([square for square, _ in light])
        least = LINK * length * SURELY
        for (key, dot), known in zip(dots.items(), map(self._lengths.get, dots), strict=True):
            if known is None:
                measured += 1
                if measured % MEASURED == 0:
                    yield
                known = self._norm(self.open[key], weigh, STALE_MINUTES), len(self.open[key].members)
            norm, size = known
            if dot + room * size < least * norm:
                continue
            for square, holding in light:
                if key in holding:
                    dot += square * holding[key]
            cosine = dot / (length * norm)
            if cosine > nearest or (cosine == nearest and best is not None and key < best):
                best, nearest = key, cosine
        return (self.open[best], min(1.0, nearest)) if best is not None and nearest >= LINK else (None, 0.0)

    def _candidates(
        self, terms: Mapping[str, int], weigh: Weigh
    ) -> tuple[dict[int, float], list[tuple[float, Mapping[int, int]]], float]:
        """Products of an item's heavy terms with the stories that have them, its light terms, and its length.

        Prefix filtering (Chaudhuri, Ganti & Kaushik 2006): a story that shares only the lightest of the item's
        terms, which make up less than ``LINK`` of its length together, cannot be as near as that. These are also
        the common words, which most stories hold: of each the factor, and what stories hold of it.
        """
        squares, length = _squares(terms, weigh)
        parts = sorted([(-square * terms[term], term, square) for term, square in squares])
        dots: defaultdict[int, float] = defaultdict(float)
        light = []
        left = length * length
        enough = LINK * LINK * length * length
        for _, term, square in parts:
            holding = self._with.get(term, _NONE)
            if left >= enough:
                for key, weight in holding.items():
                    dots[key] += square * weight
            else:
                light.append((square, holding))
            left -= square * terms[term]
        return dots, light, length

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
        self._lengths.pop(story.key, None)
        key, sums, holding = story.key, story.sums, self._with
        for term, weight in member.terms.items():
            total = sums[term] = sums.get(term, 0) + weight
            holding[term][key] = total
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
        self._lengths.pop(story.key, None)
        for term, weight in member.terms.items():
            left = story.sums[term] - weight
            if left:
                story.sums[term] = self._with[term][story.key] = left
            else:
                self._forget(story, term)
        if not story.members:
            del self.open[story.key]
            self.changed.pop(story.key, None)
        return story

    def merge(self, into: Story, other: Story) -> list[Member]:
        """Move all items of ``other``; returns them in order of time."""
        moved = sorted(other.members.values(), key=lambda m: (m.at_ms, m.number))
        for member in moved:
            member.story = into.key
            into.members[member.first] = member
            self.of_number[member.first] = self.of_number[member.number] = into.key
        for term, weight in list(other.sums.items()):
            self._forget(other, term)
            self._add(into, term, weight)
        into.sightings += other.sightings
        into.firing += other.firing
        into.norm_minute = -STALE_MINUTES
        self._lengths.pop(into.key, None)
        self._lengths.pop(other.key, None)
        del self.open[other.key]
        self.changed.pop(other.key, None)
        self.changed[into.key] = None
        return moved

    def converged(self, story: Story, heaviest: Iterable[str], weigh: Weigh, agree: Agree) -> Story | None:
        """The story nearest to this one, of those that are one with it by now and ``agree`` with it.

        ``heaviest``: its own most distinctive terms.
        """
        own = self._norm(story, weigh)
        best, nearest = None, MERGE
        for key, (dot, squares) in sorted(self._dots(story, heaviest, weigh).items()):
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
        """Stories with any of these terms, the oldest first."""
        return [self.open[key] for key in sorted({key for t in terms for key in self._with.get(t, ())})]

    def outdate(self) -> None:
        """Weights are not what they were: every norm is worked out again."""
        for story in self.open.values():
            story.norm_minute = -STALE_MINUTES
        self._lengths.clear()
        self._measured.clear()

    def restore(self, stories: Iterable[Story], next_key: int) -> None:
        """Put back saved stories."""
        self.next_key = next_key
        for story in stories:
            self.open[story.key] = story
            for member in story.members.values():
                self.of_number[member.first] = self.of_number[member.number] = story.key
            for term, weight in story.sums.items():
                self._with[term][story.key] = weight

    def _dots(self, story: Story, heaviest: Iterable[str], weigh: Weigh) -> dict[int, tuple[float, float]]:
        """Products of this story's heaviest terms with the stories that have them, and their squares in these."""
        dots: dict[int, tuple[float, float]] = {}
        for term in heaviest:
            weight = weigh(term)
            own = weight * story.sums[term]
            for key, others in self._with[term].items():
                if key != story.key and len(self.open[key].members) >= LEAST_TO_BE_MERGED:
                    theirs = weight * others
                    dot, squares = dots.get(key, (0.0, 0.0))
                    dots[key] = dot + own * theirs, squares + theirs * theirs
        return dots

    def _norm(self, story: Story, weigh: Weigh, minutes: int = 1) -> float:
        size = len(story.members)
        fresh = self._minute - story.norm_minute < minutes
        if not fresh or abs(size - story.norm_size) >= max(1.0, story.norm_size * STALE):
            squares = 0.0  # a loop, not sum(), whose rounding differs between versions of Python
            for length in map(mul, map(weigh, story.sums), story.sums.values()):
                squares += length * length
            story.norm = math.sqrt(squares)
            story.norm_size, story.norm_minute = size, self._minute
            self._lengths[story.key] = story.norm, size
            self._measured.append((self._minute, story.key))
        return story.norm

    def _add(self, story: Story, term: str, weight: int) -> None:
        total = story.sums.get(term, 0) + weight
        story.sums[term] = total
        self._with[term][story.key] = total

    def _forget(self, story: Story, term: str) -> None:
        del story.sums[term]
        keys = self._with[term]
        del keys[story.key]
        if not keys:
            del self._with[term]


def _squares(terms: Mapping[str, int], weigh: Weigh) -> tuple[list[tuple[str, float]], float]:
    """(term, item weight times both bursting weights), and the item's length."""
    weights = [(term, weigh(term), weight) for term, weight in terms.items()]
    length = math.sqrt(sum([(w * x) ** 2 for _, w, x in weights]))
    return [(term, w * w * x) for term, w, x in weights], length
