"""Invariants of the store after every commit, and of the answers at the end.

``inconsistencies`` reads the raw store, so it sees what no look-up would show. ``is_linearizable`` checks
whether the answers about one id could come from one writer at a time (linearizability, Wing & Gong 1993);
``has_one_new`` whether those about the copies of one story could.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf

from aggregator.domain import Match, Outcome
from aggregator.index import keys
from aggregator.index.article_stream import decode_stream_entry, to_stream_item
from aggregator.index.bindings import Binding, decode_binding, decode_pointer, source_hash
from aggregator.index.blocks import PLAN
from aggregator.index.codec.postings import SKETCH_REMAINDER_BYTES, decode_numbers
from aggregator.index.codec.record_codec import decode_record
from aggregator.store.memory import MemoryStore
from tests.support.index_layout import block_values


@dataclass
class View:
    """One space, decoded and merged over its segments; the newest segment wins.

    bindings    by id hash
    states      by article number: b"" (canonical), a pointer, or dead
    tombstones  first numbers of removed articles
    duplicates  by first number of the group: 16-byte id hashes of its members
    entries     by bucket key: the article numbers in it
    unread      bucket keys that no look-up reads
    stream      (kind, number, id) of the article stream
    floor       article numbers below it have expired
    """

    space: str
    bindings: dict[bytes, Binding] = field(default_factory=dict)
    states: dict[int, bytes] = field(default_factory=dict)
    tombstones: set[int] = field(default_factory=set)
    duplicates: dict[int, bytes] = field(default_factory=dict)
    entries: dict[bytes, set[int]] = field(default_factory=dict)
    unread: list[bytes] = field(default_factory=list)
    stream: list[tuple[str, int, str]] = field(default_factory=list)
    segments: int = 0
    floor: int = 0


def view(store: MemoryStore, space: str, floor: int = 0) -> View:
    """Read everything in a space; bindings below the floor have expired."""
    found = View(space, floor=floor)
    prefix = keys.space_prefix(space)
    numbers = {keys.segment_of(key) for key in (*store._values, *store._streams) if key.startswith(prefix)}
    found.segments = len(numbers)
    newest: dict[bytes, bytes] = {}
    for number in sorted(numbers):
        tag = keys.tag(space, number)
        widths = store._values.get(tag + keys.WIDTH, b"18").split(b">")
        for key, value in store._values.items():
            if key.startswith(tag):
                _add(found, newest, key[len(tag) :], value, widths)
        for _, payload in store._streams.get(tag + keys.STREAM, ()):
            item = to_stream_item(decode_stream_entry(payload), space, None)
            found.stream.append((item.kind, item.number, item.id))
    for key, value in newest.items():
        if value == keys.ABSENT:
            continue
        if key[:1] == b"i":
            binding = decode_binding(value)
            if binding.number >= floor:
                found.bindings[key[1:]] = binding
        else:
            found.states[int.from_bytes(key[1:], "big")] = value
    return found


def _add(
    found: View, newest: dict[bytes, bytes], key: bytes, value: bytes, sketch_widths: Sequence[bytes]
) -> None:
    kind, rest = key[:1], key[1:]
    if kind in b"ip":
        newest[key] = value
    elif kind == b"g":
        found.tombstones.add(int.from_bytes(rest, "big"))
    elif kind == b"c" and key != keys.SEALED:
        first = int.from_bytes(rest, "big")
        found.duplicates[first] = found.duplicates.get(first, b"") + value
    elif kind in b"bs":
        remainder_bytes = PLAN.remainder_bytes if kind == b"b" else SKETCH_REMAINDER_BYTES
        if kind == b"s" and (rest.partition(b":")[0] if b":" in rest else b"18") not in sketch_widths:
            found.unread.append(key)
        found.entries.setdefault(key, set()).update(decode_numbers(value, remainder_bytes).tolist())


def inconsistencies(
    store: MemoryStore,
    space: str,
    floor: int = 0,
    oldest_findable: int = 0,
    *,
    trims: bool = False,
    is_copied: bool = False,
) -> list[str]:
    """Everything that is wrong with one space, in words.

    Articles below ``floor`` have expired; those from ``oldest_findable`` on must be found. ``trims``: full
    sketch keys lose entries. ``is_copied``: a migration wrote the space, which has no stream; rows
    of members that left stay in its lists.
    """
    found = view(store, space, floor)
    return [
        *_wrong_references(found),
        *_wrong_duplicate_lists(found, is_copied),
        *_wrong_records(store, found),
        *_unindexed_texts(store, found, oldest_findable, trims=trims),
        *(f"no look-up reads the bucket {key.decode()}" for key in found.unread),
        *_wrong_entries(found),
        *(_wrong_stream(found) if not is_copied else ()),
    ]


def _wrong_references(found: View) -> list[str]:
    """Bindings and states agree, and none refers to an article that is gone."""
    wrong = []
    by_id = {b.id: b for b in found.bindings.values()}
    for binding in found.bindings.values():
        match, state = binding.outcome.match, found.states.get(binding.number)
        if binding.first_version in found.tombstones:
            wrong.append(f"{binding.id} is live and has a tombstone")
        if match is None:
            if state is not None:
                wrong.append(f"{binding.id} is canonical, its number's state is not empty")
            continue
        if _has_expired_canonical(found, match, by_id):
            continue  # the original has expired; the copy still names it
        canonical = by_id.get(match.canonical_id)
        if canonical is None or canonical.first_version != match.canonical_first:
            wrong.append(f"{binding.id} refers to {match.canonical_id}, which is gone")
        elif canonical.outcome.match is not None:
            wrong.append(f"{binding.id} refers to {match.canonical_id}, which is itself a copy")
        if match.id not in by_id and match.number >= found.floor:
            wrong.append(f"{binding.id} was matched to {match.id}, which is gone")
        if state is None or state == keys.DEAD:
            wrong.append(f"{binding.id} is a copy, its number's state says otherwise")
        else:
            pointer = decode_pointer(state)
            if (pointer.id, pointer.first_version) != (match.canonical_id, match.canonical_first):
                wrong.append(f"the state of {binding.id} refers to {pointer.id}, its binding does not")
    return wrong


def _has_expired_canonical(found: View, match: Match, by_id: Mapping[str, Binding]) -> bool:
    canonical = by_id.get(match.canonical_id)
    return match.canonical_first < found.floor and (
        canonical is None or canonical.first_version != match.canonical_first
    )


def _wrong_duplicate_lists(found: View, rows_may_stay: bool) -> list[str]:
    """The list of each group has exactly the copies whose bindings refer to it."""
    wrong = []
    groups: dict[int, list[bytes]] = {}
    for hashed, binding in found.bindings.items():
        if binding.outcome.match is not None:
            groups.setdefault(binding.outcome.match.canonical_first, []).append(hashed)
    for first, rows in found.duplicates.items():
        listed = Counter(rows[i : i + 16] for i in range(0, len(rows), 16))
        if (
            rows_may_stay or found.segments > 1 or found.floor
        ):  # rows in sealed segments stay after their article left
            listed = Counter(set(listed) & set(groups.get(first, [])))
        if listed != Counter(groups.get(first, [])):
            wrong.append(f"the group {first} lists {len(listed)} of {len(groups.get(first, []))} copies")
    wrong += [f"copies of {first} are not listed" for first in groups if first not in found.duplicates]
    return wrong


def _wrong_records(store: MemoryStore, found: View) -> list[str]:
    """Every live version has its record, and the two agree."""
    wrong = []
    for binding in found.bindings.values():
        data = store._values.get(keys.record(found.space, binding.number))
        if data is None:
            wrong.append(f"{binding.id} has no record")
            continue
        record = decode_record(data, found.space, binding.number)
        expected = (binding.number, binding.first_version, binding.id, binding.text_hash, binding.source)
        source = source_hash(record.source)
        if (record.number, record.first_version, record.id, record.text_hash, source) != expected:
            wrong.append(f"the record of {binding.id} is of another version")
    return wrong


def _unindexed_texts(store: MemoryStore, found: View, oldest_findable: int, *, trims: bool) -> list[str]:
    """Every live text is in all its buckets, itself or through an exact copy of its group."""
    wrong = []
    indexed: set[tuple[int, bytes]] = set()
    for binding in found.bindings.values():
        data = store._values.get(keys.record(found.space, binding.number))
        if data is None:
            continue
        record = decode_record(data, found.space, binding.number)
        buckets = [keys.block_bucket(b"", b, v) for b, v in enumerate(block_values(PLAN, record.fingerprint))]
        if not trims and not _has_sketch_entries(found, binding.number, keys.wording_keys(record)):
            continue
        if all(binding.number in found.entries.get(bucket, ()) for bucket in buckets):
            indexed.add((_group(binding), binding.text_hash))
    for binding in found.bindings.values():
        if binding.number >= oldest_findable and (_group(binding), binding.text_hash) not in indexed:
            wrong.append(f"the text of {binding.id} is in no bucket")
    return wrong


def _has_sketch_entries(found: View, number: int, own_keys: Sequence[int]) -> bool:
    """Whether the number is in a bucket of each of these sketch keys."""
    return all(
        any(
            number in found.entries.get(keys.sketch_buckets(b"", [key], bits)[0], ())
            for bits in range(keys.SKETCH_BUCKET_BITS, keys.MAX_SKETCH_BUCKET_BITS + 1)
        )
        for key in own_keys
    )


def _wrong_entries(found: View) -> list[str]:
    """Every number in a bucket is a live version or marked dead."""
    live = {b.number for b in found.bindings.values()}
    numbers = set().union(*found.entries.values()) if found.entries else set()
    return [
        f"number {n} is in a bucket, neither live nor dead"
        for n in numbers - live
        if found.states.get(n) != keys.DEAD and n >= found.floor
    ]


def _wrong_stream(found: View) -> list[str]:
    """The stream has every committed version once, and replays to the bindings."""
    wrong = []
    articles = Counter(number for kind, number, _ in found.stream if kind == "article")
    wrong += [f"number {n} is {count} times in the stream" for n, count in articles.items() if count > 1]
    live: dict[str, int] = {}
    for kind, number, id_ in found.stream:
        if kind == "article":
            live[id_] = number
        elif live.pop(id_, None) != number and number >= found.floor:
            wrong.append(f"the stream deletes a version of {id_} that was not live")
    unexpired = {id_: number for id_, number in live.items() if number >= found.floor}
    if unexpired != {b.id: b.number for b in found.bindings.values()}:
        wrong.append("the stream does not replay to the bindings")
    return wrong


def _group(binding: Binding) -> int:
    return binding.outcome.group(binding.first_version)


@dataclass(frozen=True)
class Call:
    """One request about one id: ``text`` is its content (None: delete), ``end`` is inf if unanswered.

    ``effect`` is whether, by the answer, it changed something (None: no answer, or it may be either).
    ``source``: the one that the caller is bound to (empty: to none); ``is_refused``: the answer says that an
    article of another source is stored, and names another id (``stored_as``). ``take_down``: a delete that
    refuses the text; ``is_taken_down``: the answer says that the text is refused. ``story``: equal for
    versions of one article, another one for a reused id; None if it may be either.
    """

    id: str
    text: bytes | None
    start: int
    end: float = inf
    effect: bool | None = None
    outcome: Outcome | None = None
    source: str = ""
    is_refused: bool = False
    take_down: bool = False
    is_taken_down: bool = False
    story: object = None


def is_linearizable(calls: Sequence[Call], final: bytes | None) -> bool:
    """Whether some order of the calls yields all answers and the content ``final``.

    Each call takes effect at one instant between its start and end; an unanswered one may have none. A call
    that is bound to a source is refused if, and only if, an article of another source is stored. A version
    that names no source keeps the one stored; another article under the id has none.
    """
    story_of = {call.text: call.story for call in calls}

    @cache
    def search(done: int, state: bytes | None, owner: str) -> bool:
        open_calls = [i for i in range(len(calls)) if not done >> i & 1]
        if all(calls[i].end == inf for i in open_calls) and state == final:
            return True
        horizon = min((calls[i].end for i in open_calls), default=inf)
        for i in open_calls:
            call = calls[i]
            if call.start > horizon:
                continue
            if call.effect is not None and call.effect != (state != call.text):
                continue
            is_foreign = bool(call.source) and state is not None and owner != call.source
            if is_foreign != call.is_refused:
                continue
            after = state if is_foreign else call.text
            for next_owner in {owner} if is_foreign else owners_after(call, state, owner):
                if search(done | 1 << i, after, next_owner):
                    return True
        return False

    def owners_after(call: Call, state: bytes | None, owner: str) -> set[str]:
        if call.source or call.text is None or state is None:
            return {call.source}
        if call.story is None and call.text != state:
            return {owner, ""}
        return {owner if story_of[state] == call.story else ""}

    return search(0, None, "") if calls else final is None


def has_one_new(calls: Sequence[Call]) -> bool:
    """Whether one writer at a time could have given these answers about the copies of one story.

    It knows the ids that are stored: of them one is new, the others are duplicates; when the new one is
    deleted, one of the others becomes new. Judges by the answers alone.
    """

    @cache
    def search(done: int, stored: frozenset[str], new: str) -> bool:
        open_calls = [i for i in range(len(calls)) if not done >> i & 1]
        horizon = min((calls[i].end for i in open_calls), default=inf)
        return horizon == inf or any(
            search(done | 1 << i, *after)
            for i in open_calls
            if calls[i].start <= horizon
            for after in _answered(calls[i], stored, new)
        )

    return search(0, frozenset(), "")


def _answered(call: Call, stored: frozenset[str], new: str) -> list[tuple[frozenset[str], str]]:
    """What may be stored after a call, and which of it is new; nothing if its answer is wrong."""
    if call.text is None:
        if call.effect is not None and call.effect != (call.id in stored):
            return []
        left = stored - {call.id}
        return [(left, next_new) for next_new in (left if call.id == new else {new}) or {""}]
    new = new or call.id
    is_wrong = call.outcome is not None and (call.outcome.verdict == "duplicate") == (call.id == new)
    return [] if is_wrong else [(stored | {call.id}, new)]


def take_downs_hold(calls: Sequence[Call], final: Mapping[str, bytes]) -> bool:
    """Whether one writer at a time could have given the answers about all ids, and left what is stored.

    A take-down refuses the text of its id, then removes it: only a text that is refused is removed, and a
    refused text is stored under no id. Calls name no sources.
    """

    @cache
    def search(done: int, stored: frozenset[tuple[str, bytes]], refused: frozenset[bytes]) -> bool:
        open_calls = [i for i in range(len(calls)) if not done >> i & 1]
        if all(calls[i].end == inf for i in open_calls) and dict(stored) == final:
            return True
        horizon = min((calls[i].end for i in open_calls), default=inf)
        content = dict(stored)
        for i in open_calls:
            call, state = calls[i], content.get(calls[i].id)
            if call.start > horizon:
                continue
            if call.take_down and state is not None and state not in refused:
                if search(done, stored, refused | {state}):
                    return True
                continue  # a text that is not refused is not removed
            if (call.text in refused) != call.is_taken_down and call.text is not None and call.end != inf:
                continue
            after = state if call.text in refused else call.text
            if call.effect is not None and call.effect != (state != after):
                continue
            left = {**content, call.id: after}
            if search(done | 1 << i, frozenset((k, v) for k, v in left.items() if v), refused):
                return True
        return False

    return search(0, frozenset(), frozenset())
