"""Merging of clusters that converge, and division of those that hold two topics. Events follow.

The rules and their reasons: docs/design/event-detection.md. Bursty features: Fung, Yu, Yu & Lu 2005.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, islice

from aggregator.events.detection import description
from aggregator.events.detection.clustering import (
    MAX_TERM_WEIGHT,
    MIN_ITEMS_TO_MERGE,
    Cluster,
    ClusterIndex,
    MergePredicate,
    TermWeigher,
    WindowItem,
)
from aggregator.events.detection.description import KeyTermCache
from aggregator.events.detection.expectation import TermWeights
from aggregator.events.detection.items import NAME_SHARE, occurrences_inside
from aggregator.events.detection.lifecycle import OpenEvents
from aggregator.events.detection.model import CHANCE_ITEMS, NEARLY_ALL, NEGLIGIBLE_SHARE, EditorOverrides

MERGE_SHARE = 0.2  # share of the documents with the rarer key term that must hold the other too
# A story has this share of the items, at least and at most these numbers of them; fewer are a side of one.
MIN_PART_ITEMS = 5
MIN_PART_SHARE = 1 / 3
ENOUGH_ITEMS = 8
MAX_REST_SHARE = 0.1  # share of the items that hold no term of either story
# Share of the items of a story that hold what marks it; more items without an own term are no outliers.
FAIR_SHARE = 0.25
# Latest items of each cluster that are examined for a second story, so that the cost has a limit.
LATEST_TO_DIVIDE = 256

Stories = tuple[list[WindowItem], list[WindowItem]]


def find_merge_partner(
    clusters: ClusterIndex,
    cluster: Cluster,
    term_weights: TermWeights,
    key_terms: KeyTermCache,
    may_merge: MergePredicate,
) -> Cluster | None:
    """The cluster with the largest share of common documents (the older on a tie), if any qualifies."""
    own_term, *_ = *key_terms.top_terms(cluster), ""
    if not term_weights.is_bursting(own_term):
        return None
    own_count, sums = term_weights.window_count(own_term), cluster.term_sums

    def share_of(total: int, term: str) -> float:
        """Share of the documents with the rarer of both key terms that a sum of weights is."""
        return total / MAX_TERM_WEIGHT / min(own_count, term_weights.window_count(term))

    enough = [t for t in filter(term_weights.is_bursting, sums) if share_of(sums[t], t) >= MERGE_SHARE]
    own_terms = set(key_terms.top_terms(cluster))
    best, best_share = None, 0.0
    for other in clusters.with_any_term([own_term, *enough]):
        # A necessary condition on the key terms of the other cluster, cheaper than finding them.
        common = own_terms & other.term_sums.keys()
        if other is cluster or not description.terms_support_merge(common, term_weights.expected):
            continue
        other_term = key_terms.top_terms(other)[0]
        share = share_of(sums.get(other_term, 0) + other.term_sums.get(own_term, 0), other_term)
        if (
            share >= MERGE_SHARE
            and share > best_share
            and term_weights.is_bursting(other_term)
            and may_merge(cluster, other)
            and not (cluster.event_id and other.event_id and not key_terms.agree(cluster, other))
        ):
            best, best_share = other, share
    return best


class ClusterMerger:
    """Merges and divides the clusters of a detector. ``check_burst``: called for a cluster that changed."""

    def __init__(
        self,
        clusters: ClusterIndex,
        open_events: OpenEvents,
        term_weights: TermWeights,
        check_burst: Callable[[Cluster], None],
    ) -> None:
        self._clusters, self._open_events = clusters, open_events
        self._term_weights, self._check_burst = term_weights, check_burst
        self._arranged = set[str]()

    def place(self, overrides: EditorOverrides, clock_ms: int) -> None:
        """Move what editors put into an event to its cluster; an event without a cluster gets one."""
        for event_id in [id_ for id_ in self._open_events.merged if id_ not in overrides.merges]:
            self._separate(event_id, overrides.placed, clock_ms)
        events, by_key, new = self._open_events.by_id, self._clusters.by_key, dict[str, Cluster]()
        placed = [
            (member, cluster, event_id)
            for number, event_id in overrides.placed.values()
            if event_id and (member := self._clusters.find_item(number))
            if (cluster := by_key[member.cluster_key]).event_id != event_id
        ]
        for member, cluster, event_id in placed:
            if event_id not in events and event_id not in new:
                new[event_id] = self._clusters.create(member)
            elif event_id in events:
                events[event_id].forget_tolls(since_ms=member.at_ms)
                events[event_id].announced_size += events[event_id].announced_size > 0  # it did not grow
            self.move([member], cluster, new.get(event_id) or by_key[events[event_id].cluster_key])
            if not cluster.members and cluster.event_id is not None:
                self._open_events.close(cluster.event_id, clock_ms)
        for event_id, cluster in new.items():
            cluster.id = event_id
            for event in events.values():
                event.absorbed = [id_ for id_ in event.absorbed if id_ != event_id]
            self._open_events.fire(cluster, clock_ms, 0.0, 0)
            events[event_id].reason = ""

    def _separate(self, event_id: str, placed: Mapping[str, tuple[int, str]], clock_ms: int) -> None:
        """Undo a merge: both events are as before; what joined since joins the nearest cluster of all.

        While other merges into the survivor stand, it stays as it is without the items of the event.
        """
        events, clusters = self._open_events, self._clusters
        absorbed, survivor = events.merged.pop(event_id)
        if all(to != event_id for _, to in placed.values()):
            return  # the merge expired
        now = events.by_id.get(survivor.id)
        if now is not None and any(into.id == survivor.id for _, into in events.merged.values()):
            survivor = now
        known = {*absorbed.items, *survivor.items, *placed}
        for event in (absorbed, survivor):
            to = event.id
            event.items = {i: item for i, item in event.items.items() if placed.get(i, (0, to))[1] == to}
        held = [m for e in events.by_id.values() for m in clusters.by_key[e.cluster_key].members.values()]
        own = [m for m in held if m.id in absorbed.items]
        joined = [m for m in held if now and m.cluster_key == now.cluster_key and m.id not in known]
        for member in (*own, *joined):
            events.release_items(clusters.by_key[member.cluster_key], [member])
            clusters.remove_item(member)
        if own:
            cluster = clusters.create(own[0])
            cluster.id = cluster.event_id = event_id
            absorbed.cluster_key = cluster.key
            for member in own:
                clusters.add_item(cluster, member)
        events.reopen(absorbed)
        if now is not None:
            survivor.cluster_key = now.cluster_key
            events.reopen(survivor)
        for event in [e for e in events.by_id.values() if e.cluster_key not in clusters.by_key]:
            events.close(event.id, clock_ms)  # it held only what returned
        for event in (*events.by_id.values(), *(into for _, into in events.merged.values())):
            event.absorbed = [i for i in event.absorbed if i not in (event_id, *absorbed.absorbed)]
        self._join_nearest(joined, clock_ms, clusters.by_key.get(survivor.cluster_key))

    def merge_changed_steps(self, overrides: EditorOverrides, clock_ms: int) -> Iterator[None]:
        """Merge, then divide, what grew, oldest first, in steps, except what editors arranged."""
        key_terms = KeyTermCache(self._term_weights)
        merges, placed = overrides.merges, overrides.placed.values()
        self._arranged = {*merges, *(i for i, _ in merges.values()), *(i for _, i in placed)}
        for key in sorted(self._clusters.changed_keys):
            yield from self._merge_with_candidates(key, key_terms, clock_ms)
        has_event = False
        for key in sorted(self._clusters.changed_keys):
            if key in self._clusters.by_key:
                has_event |= self._clusters.by_key[key].event_id is not None
                self._divide(key, clock_ms)
        if has_event:
            self._open_events.refresh_headlines()

    def merge(self, into: Cluster, absorbed: Cluster, clock_ms: int) -> None:
        """Move all items of ``absorbed`` into ``into``; if both are events, that of ``absorbed`` closes."""
        absorbed_event = self._open_events.by_id.pop(absorbed.event_id or "", None)
        moved = self._clusters.merge(into, absorbed)
        if absorbed_event is not None:
            self._open_events.absorb(into, absorbed_event, clock_ms)
        elif into.event_id is not None:
            self._open_events.add_items(into, moved)
        else:
            self._check_burst(into)

    def _merge_with_candidates(self, key: int, key_terms: KeyTermCache, clock_ms: int) -> Iterator[None]:
        clusters, weights = self._clusters, self._term_weights
        mixed: list[tuple[Cluster, Cluster, Stories]] = []

        def may_merge(a: Cluster, b: Cluster) -> bool:
            are_arranged = a.event_id and b.event_id and self._arranged & {a.event_id, b.event_id}
            if are_arranged or not key_terms.support_merge(a, b):
                return False
            stories = find_division([*_latest(a), *_latest(b)], weights.idf)
            if stories is not None and not self._arranged & {a.event_id, b.event_id}:
                mixed.append((a, b, stories))
            return stories is None

        while (cluster := clusters.by_key.get(key)) and len(cluster.members) >= MIN_ITEMS_TO_MERGE:
            other = clusters.find_merge_candidate(
                cluster, key_terms.top_terms(cluster), weights.weigh, may_merge
            ) or find_merge_partner(clusters, cluster, weights, key_terms, may_merge)
            if other is None:
                young = map(clusters.by_key.__getitem__, self._open_events.clusters_of_young(cluster))
                other = next((each for each in young if may_merge(cluster, each)), None)
            yield
            if other is None:
                break
            into, absorbed = self._survivor(cluster, other)
            self.merge(into, absorbed, clock_ms)
            key_terms.invalidate(into)
            key = into.key
        for a, b, stories in mixed:
            if a.key in clusters.by_key and b.key in clusters.by_key:
                self._tell_apart(a, b, stories)
                key_terms.invalidate(a)
                key_terms.invalidate(b)

    def may_join_event(self, cluster: Cluster) -> bool:
        """Whether an open event shares a key term with a cluster, and they do not tell two stories."""
        weights, members = self._term_weights, _latest(cluster)
        own = set(description.heaviest_terms(cluster.term_sums, weights.weigh))
        for event in self._open_events.by_id.values():
            other = self._clusters.by_key[event.cluster_key]
            is_near = not own.isdisjoint(description.heaviest_terms(other.term_sums, weights.weigh))
            if is_near and find_division([*members, *_latest(other)], weights.idf) is None:
                return True
        return False

    def _divide(self, key: int, clock_ms: int) -> None:
        cluster = self._clusters.by_key[key]
        if cluster.event_id in self._arranged:
            return
        if cluster.event_id is not None:
            outliers = find_outliers(cluster, self._term_weights.window_count)
            for member in outliers:
                self.move([member], cluster, self._clusters.create(member, f":{clock_ms}"))
            self.divide(cluster, clock_ms)
        elif len(cluster.members) >= ENOUGH_ITEMS:
            self._assign_again([cluster], clock_ms)
            self._check_burst(cluster)

    def divide(self, cluster: Cluster, clock_ms: int) -> bool:
        """Divide a cluster whose latest items tell more than one story; returns whether it did."""
        stories = find_division(_latest(cluster), self._term_weights.idf)
        if stories and len(cluster.members) > LATEST_TO_DIVIDE:
            stories = find_division(list(cluster.members.values()), self._term_weights.idf)
        if stories is None:
            return False
        other = self._clusters.create(stories[1][0], f":{clock_ms}")
        self.move(stories[1], cluster, other)
        for each in (cluster, other):
            if not self.divide(each, clock_ms) and each.event_id is None:
                self._check_burst(each)
        return True

    def _tell_apart(self, a: Cluster, b: Cluster, stories: Stories) -> None:
        """Give each of two clusters the items of the story of which it has the larger share."""
        own = [sum(member.cluster_key == a.key for member in story) / len(story) for story in stories]
        if own[0] < own[1]:
            a, b = b, a
        to_a = [member for member in stories[0] if member.cluster_key == b.key]
        to_b = [member for member in stories[1] if member.cluster_key == a.key]
        if len(to_a) == len(b.members) or len(to_b) == len(a.members):
            return  # other items joined meanwhile; no cluster may become empty here
        self.move(to_a, b, a)
        self.move(to_b, a, b)
        for cluster in (a, b):
            if cluster.key in self._clusters.by_key and cluster.event_id is None:
                self._check_burst(cluster)

    def _assign_again(self, near: Iterable[Cluster], clock_ms: int) -> None:
        """Let the items of small clusters that hold a key term of these join the nearest cluster now."""
        clusters, weigh = self._clusters, self._term_weights.weigh
        terms = {term for cluster in near for term in description.heaviest_terms(cluster.term_sums, weigh)}
        members = [
            member
            for cluster in clusters.with_any_term(terms)
            if len(cluster.members) < MIN_PART_ITEMS and cluster.event_id is None
            for member in cluster.members.values()
            if len(terms & member.terms.keys()) >= description.MIN_COMMON_TERMS
        ]
        for member in members:
            clusters.remove_item(member)
        self._join_nearest(members, clock_ms)

    def _join_nearest(self, items: Iterable[WindowItem], clock_ms: int, home: Cluster | None = None) -> None:
        """Add items without a cluster to the nearest one each, or to ``home`` where that is not an event."""
        clusters, weigh = self._clusters, self._term_weights.weigh
        for member in items:
            cluster, member.cosine = clusters.nearest(member.terms, weigh)
            if home is not None and (cluster is None or cluster.event_id is None):
                cluster = home
            clusters.add_item(cluster or clusters.create(member, f":{clock_ms}"), member)
            if cluster is not None and cluster.event_id is not None:
                self._open_events.add_items(cluster, [member])

    def move(self, members: Sequence[WindowItem], cluster: Cluster, other: Cluster) -> None:
        """Move items from one cluster to another, and from event to event."""
        self._open_events.release_items(cluster, members)
        for member in members:
            self._clusters.remove_item(member)
            self._clusters.add_item(other, member)
        if other.event_id is not None:
            self._open_events.add_items(other, members)

    def _survivor(self, a: Cluster, b: Cluster) -> tuple[Cluster, Cluster]:
        """(survivor, absorbed): the older event, unless it is half as large now as one that is announced."""

        def rank(cluster: Cluster, other: Cluster) -> tuple[bool, bool, float, int, int]:
            event, rival = map(self._open_events.event_of_cluster, (cluster, other))
            may_yield = event and rival and (rival.announced_size or event.status == "fading")
            is_remnant = bool(may_yield) and 2 * cluster.counted_items < other.counted_items
            at_ms = event.detected_at_ms if event else 0
            return event is None, is_remnant, at_ms, -len(cluster.members), cluster.key

        return (a, b) if rank(a, b) < rank(b, a) else (b, a)


def _latest(cluster: Cluster) -> list[WindowItem]:
    return list(cluster.members.values())[-LATEST_TO_DIVIDE:]


def find_division(members: Sequence[WindowItem], idf: TermWeigher) -> Stories | None:
    """The items of each of two stories, the earlier one first; None if all tell one story.

    Two of the rarest terms that exclude each other begin a story each; the terms that occur with one of them
    alone extend it. Kinds of events share their words, not their names; languages share neither.
    """
    if len(members) < 2 * MIN_PART_ITEMS:
        return None
    needed = max(MIN_PART_ITEMS, min(ENOUGH_ITEMS, len(members) * MIN_PART_SHARE))
    holders: dict[str, int] = {}  # by term: the bits of the items that hold it
    languages: dict[str, int] = {}
    for i, member in enumerate(members):
        languages[member.lang] = languages.get(member.lang, 0) | 1 << i
        for term in member.terms:
            holders[term] = holders.get(term, 0) | 1 << i
    counts = {term: held.bit_count() for term, held in holders.items()}
    rarest = sorted((t for t in counts if counts[t] >= MIN_PART_ITEMS), key=lambda t: (-idf(t), t))
    frequent = sorted((t for t in counts if counts[t] >= CHANCE_ITEMS), key=lambda t: (-counts[t], t))
    pairs = (
        (a, b)
        for a, b in combinations(rarest[: 2 * description.KEY_TERMS_PER_CLUSTER], 2)
        if _exclude(holders[a], holders[b])
        and any(holders[a] & held and holders[b] & held for held in languages.values())
    )
    enough = [term for term in frequent if counts[term] >= MIN_PART_ITEMS]

    @cache
    def excluded_by(term: str) -> set[str]:
        return {t for t in enough if _exclude(holders[t], holders[term])}

    for pair in sorted(pairs, key=lambda pair: (-min(map(counts.__getitem__, pair)), pair)):
        seeds, further = list(pair), excluded_by(pair[0]) & excluded_by(pair[1])
        for term in enough:
            if term in further:
                seeds.append(term)
                further &= excluded_by(term)
        stories = [holders[term] for term in seeds]
        held = several = 0
        for story in stories:
            held, several = held | story, several | held & story
        owner = {term: i for i, term in enumerate(seeds)}
        for term in frequent:
            if term not in owner and holders[term] & held:
                single = _extend_one(stories, held, several, holders[term])
                if single is not None:
                    owner[term], held = single, held | holders[term]
        a, b = (story & ~several for story in stories[:2])
        rest = len(members) - (held & ~several).bit_count()
        if min(a.bit_count(), b.bit_count()) < needed or rest > MAX_REST_SHARE * len(members):
            continue
        common = [t for t in frequent if t not in owner and _mark(holders[t], a) and _mark(holders[t], b)]
        names = [_shows_name(term, members) for term in pair]
        own = [sum(owner[t] == i and _mark(holders[t], s) for t in owner) for i, s in enumerate((a, b))]
        # The more the stories share, the more each needs of its own, unless both have a name.
        has_own = all(names) or min(own) >= min(1 + len(common), 3 if False in names else 2)
        parts = [[i for i in range(len(members)) if story >> i & 1] for story in (a, b)]
        earlier, later = sorted(parts, key=lambda part: (sum(part) / len(part), part[0]))
        both = [members[i] for i in earlier], [members[i] for i in later]
        if has_own and not any({_shows_name(t, story) for story in both} - {None} == {True} for t in common):
            return both  # a bridge that collapses elsewhere is no "Ostrava Bridge"
    return None


def _extend_one(stories: list[int], held: int, several: int, added: int) -> int | None:
    """Add items with a term to the story that it alone occurs in, or None; ``held``: items of any story."""
    common = [(added & story).bit_count() for story in stories]
    best = common.index(max(common))
    others = held & ~stories[best] | several & stories[best]
    if (added & others).bit_count() > NEGLIGIBLE_SHARE * added.bit_count():
        return None
    stories[best] |= added & ~others
    return best


def _mark(held: int, story: int) -> bool:
    """Whether a fair share of the items of a story hold a term."""
    return (held & story).bit_count() >= max(CHANCE_ITEMS, FAIR_SHARE * story.bit_count())


def _exclude(a: int, b: int) -> bool:
    return (a & b).bit_count() <= NEGLIGIBLE_SHARE * min(a.bit_count(), b.bit_count())


def _shows_name(term: str, members: Sequence[WindowItem]) -> bool | None:
    """Whether capital letters show a name; None where they do not tell, as in Chinese, or on all nouns."""
    found = [word[0].isupper() for word in islice(occurrences_inside(term, members), ENOUGH_ITEMS)]
    if not found or 2 * sum(member.lang == "de" for member in members) > len(members):
        return None
    return sum(found) >= NAME_SHARE * len(found)


def find_outliers(cluster: Cluster, window_count: Callable[[str], int]) -> list[WindowItem]:
    """Return the items without an own term, in order of joining; none if they are too many."""
    counts = Counter(term for member in cluster.members.values() for term in member.terms)
    own = {
        term
        for term, count in counts.items()
        if count >= CHANCE_ITEMS and count >= NEARLY_ALL * window_count(term)
    }
    outliers = [member for member in cluster.members.values() if own.isdisjoint(member.terms)]
    return outliers if len(outliers) <= FAIR_SHARE * len(cluster.members) else []
