"""What must hold: of the store after every commit, and of the answers once all is over.

``sound`` reads the raw store, so it sees what no look-up would show. ``explains`` asks whether the
answers about one id could have come from one writer at a time (linearizability, Wing & Gong 1993).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf

from aggregator.domain import Outcome
from aggregator.index import keys
from aggregator.index.blocks import PLANS
from aggregator.index.codec.postings import SKETCH_REMAINDER_BYTES, decode_numbers
from aggregator.index.codec.records import (
    Binding,
    decode_binding,
    decode_pointer,
    decode_record,
)
from aggregator.index.codec.stream_entries import decode_stream_item
from aggregator.store.memory import MemoryStore

PLAN = PLANS["4x16"]


@dataclass
class View:
    """One space, decoded: what its segments say together, the newest that says anything being right."""

    space: str
    bindings: dict[bytes, Binding] = field(default_factory=dict)
    states: dict[int, bytes] = field(default_factory=dict)
    tombstones: set[int] = field(default_factory=set)
    copies: dict[int, bytes] = field(default_factory=dict)
    entries: dict[bytes, set[int]] = field(default_factory=dict)
    rows: list[tuple[str, int, str]] = field(default_factory=list)
    segments: int = 0
    floor: int = 0


def view(store: MemoryStore, space: str, floor: int = 0) -> View:
    """Read everything in a space; bindings below the floor have expired."""
    seen = View(space, floor=floor)
    prefix = keys.space_prefix(space)
    numbers = {keys.segment_of(key) for key in (*store._values, *store._streams) if key.startswith(prefix)}
    seen.segments = len(numbers)
    layered: dict[bytes, bytes] = {}
    for number in sorted(numbers):
        tag = keys.tag(space, number)
        for key, value in store._values.items():
            if key.startswith(tag):
                _add(seen, layered, key[len(tag) :], value)
        for _, payload in store._streams.get(keys.stream(tag), ()):
            item = decode_stream_item(payload, space, None)
            seen.rows.append((item.kind, item.number, item.id))
    for key, value in layered.items():
        if value == keys.ABSENT:
            continue
        if key[:1] == b"i":
            binding = decode_binding(value)
            if binding.number >= floor:
                seen.bindings[key[1:]] = binding
        else:
            seen.states[int.from_bytes(key[1:], "big")] = value
    return seen


def _add(seen: View, layered: dict[bytes, bytes], key: bytes, value: bytes) -> None:
    kind, rest = key[:1], key[1:]
    if kind in b"ip":
        layered[key] = value
    elif kind == b"g":
        seen.tombstones.add(int.from_bytes(rest, "big"))
    elif kind == b"c" and key != keys.sealed(b""):
        first = int.from_bytes(rest, "big")
        seen.copies[first] = seen.copies.get(first, b"") + value
    elif kind in b"bs":
        rest_bytes = PLAN.remainder_bytes if kind == b"b" else SKETCH_REMAINDER_BYTES
        seen.entries.setdefault(key, set()).update(decode_numbers(value, rest_bytes).tolist())


def sound(store: MemoryStore, space: str, floor: int = 0, promised: int = 0) -> list[str]:
    """Everything that is wrong with one space, in words.

    Articles below ``floor`` have expired; those from ``promised`` on must be found.
    """
    seen = view(store, space, floor)
    return [
        *_pointing(seen),
        *_records(store, seen),
        *_standing(store, seen, promised),
        *_entries(seen),
        *_streamed(seen),
    ]


def _pointing(seen: View) -> list[str]:
    """Bindings, pointers and copies agree, and none names an article that is gone."""
    wrong = []
    by_id = {b.id: b for b in seen.bindings.values()}
    groups: dict[int, list[bytes]] = {}
    for hashed, binding in seen.bindings.items():
        match, state = binding.outcome.match, seen.states.get(binding.number)
        if binding.first_version in seen.tombstones:
            wrong.append(f"{binding.id} is live and has a tombstone")
        if match is None:
            if state is not None:
                wrong.append(f"{binding.id} is canonical, its number's state is not empty")
            continue
        groups.setdefault(match.canonical_first, []).append(hashed)
        canonical = by_id.get(match.canonical_id)
        if match.canonical_first < seen.floor and (
            canonical is None or canonical.first_version != match.canonical_first
        ):
            continue  # the original has expired; its name stays
        if canonical is None or canonical.first_version != match.canonical_first:
            wrong.append(f"{binding.id} points at {match.canonical_id}, which is gone")
        elif canonical.outcome.match is not None:
            wrong.append(f"{binding.id} points at {match.canonical_id}, which is itself a copy")
        if match.id not in by_id and match.number >= seen.floor:
            wrong.append(f"{binding.id} was matched to {match.id}, which is gone")
        if state is None or state == keys.DEAD:
            wrong.append(f"{binding.id} is a copy, its number's state says otherwise")
        else:
            pointer = decode_pointer(state)
            if (pointer.id, pointer.first_version) != (match.canonical_id, match.canonical_first):
                wrong.append(f"the state of {binding.id} points at {pointer.id}, its binding elsewhere")
    for first, rows in seen.copies.items():
        listed = Counter(rows[i : i + 16] for i in range(0, len(rows), 16))
        if seen.segments > 1 or seen.floor:  # rows of a frozen segment stay; who left is known by its binding
            listed = Counter(set(listed) & set(groups.get(first, [])))
        if listed != Counter(groups.get(first, [])):
            wrong.append(f"copies of {first} list {len(listed)} of {len(groups.get(first, []))}")
    wrong += [f"copies of {first} are not listed" for first in groups if first not in seen.copies]
    return wrong


def _records(store: MemoryStore, seen: View) -> list[str]:
    """Every live version has its record, and the two agree."""
    wrong = []
    for binding in seen.bindings.values():
        data = store._values.get(keys.record(seen.space, binding.number))
        if data is None:
            wrong.append(f"{binding.id} has no record")
            continue
        record = decode_record(data, seen.space, binding.number)
        mine = (binding.number, binding.first_version, binding.id, binding.text_hash)
        if (record.number, record.first_version, record.id, record.text_hash) != mine:
            wrong.append(f"the record of {binding.id} is of another version")
    return wrong


def _standing(store: MemoryStore, seen: View, promised: int) -> list[str]:
    """Every live text stands in all its buckets, itself or through an exact copy of its group."""
    wrong = []
    carried: set[tuple[int, bytes]] = set()
    for binding in seen.bindings.values():
        data = store._values.get(keys.record(seen.space, binding.number))
        if data is None:
            continue
        fingerprint = decode_record(data, seen.space, binding.number).fingerprint
        places = [keys.block_bucket(b"", b, v) for b, v in enumerate(PLAN.block_values(fingerprint))]
        if all(binding.number in seen.entries.get(p, ()) for p in places):
            carried.add((_group(binding), binding.text_hash))
    for binding in seen.bindings.values():
        if binding.number >= promised and (_group(binding), binding.text_hash) not in carried:
            wrong.append(f"the text of {binding.id} is in no bucket")
    return wrong


def _entries(seen: View) -> list[str]:
    """Every number in a bucket is a live version or known to be dead."""
    live = {b.number for b in seen.bindings.values()}
    numbers = set().union(*seen.entries.values()) if seen.entries else set()
    return [
        f"number {n} is in a bucket, neither live nor dead"
        for n in numbers - live
        if seen.states.get(n) != keys.DEAD and n >= seen.floor
    ]


def _streamed(seen: View) -> list[str]:
    """The stream has every committed version once, and replays to what is bound."""
    wrong = []
    articles = Counter(number for kind, number, _ in seen.rows if kind == "article")
    wrong += [f"number {n} is {count} times in the stream" for n, count in articles.items() if count > 1]
    live: dict[str, int] = {}
    for kind, number, id_ in seen.rows:
        if kind == "article":
            live[id_] = number
        elif live.pop(id_, None) != number and number >= seen.floor:
            wrong.append(f"the stream deletes a version of {id_} that was not live")
    kept = {id_: number for id_, number in live.items() if number >= seen.floor}
    if kept != {b.id: b.number for b in seen.bindings.values()}:
        wrong.append("the stream does not replay to what is bound")
    return wrong


def _group(binding: Binding) -> int:
    return binding.outcome.match.canonical_first if binding.outcome.match else binding.first_version


@dataclass(frozen=True)
class Call:
    """One request about one id: ``text`` is its content (None: delete), ``end`` is inf when unanswered.

    ``effect``: whether the answer said that it changed something (None: no answer).
    """

    id: str
    text: bytes | None
    start: int
    end: float = inf
    effect: bool | None = None
    outcome: Outcome | None = None


def explains(calls: Sequence[Call], final: bytes | None) -> bool:
    """Is there an order of ``calls``, each at one instant between start and end, that gives all answers and ``final``?"""
    everyone = (1 << len(calls)) - 1

    @cache
    def search(done: int, state: bytes | None) -> bool:
        left = [i for i in range(len(calls)) if not done >> i & 1]
        if all(calls[i].end == inf for i in left) and state == final:
            return True  # what was never answered need not have happened
        horizon = min((calls[i].end for i in left), default=inf)
        for i in left:
            call = calls[i]
            if call.start > horizon:
                continue
            if call.effect is not None and call.effect != (state != call.text):
                continue
            if search(done | 1 << i, call.text):
                return True
        return False

    return search(0, None) if everyone else final is None
