"""Bulk loading of generated articles: buckets as a whole, records and bindings from templates.

What is written is what the inserts of the service would have left: the same buckets (full sketch keys
trimmed, term buckets cut to the newest), records and bindings of the same form, checksums included. Left out
are the article stream, and groups of exact copies. An article costs some 20 us instead of milliseconds.

The sketch of a generated article's record is that of one renamed copy, the same in all rounds but the last:
it shares with a real article what set phrases it has, which is what a look-up compares.
"""

from __future__ import annotations

import socket
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from aggregator.domain import Analysis, Article, ArticleRecord, Outcome, Sketch
from aggregator.index import keys
from aggregator.index.bindings import Binding, encode_binding
from aggregator.index.blocks import BlockPlan
from aggregator.index.codec.postings import SKETCH_REMAINDER_BYTES, TERM_POSTING_BYTES
from aggregator.index.codec.record_codec import RecordRow, encode_record
from aggregator.index.keys import MAX_ARTICLES_PER_TERM
from aggregator.index.segments import sample_entry
from aggregator.index.snapshot import FULL_KEY_ENTRIES, INITIAL_WIDTH, KEPT_KEY_ENTRIES, SketchWidth
from aggregator.index.upkeep.sketch_rehash import SPLIT_ENTRIES
from aggregator.store.decoding import CHECKSUM_BYTES
from tests.benchmarks.indexing.bulk import buckets as block_buckets
from tests.benchmarks.indexing.bulk import grouped, packed_entries
from tests.benchmarks.scale.replicas import NO_KEY, Replicas, Round, gather

PARTITIONS = 16  # of sketch and term buckets: bounds the memory of sorting
BATCH_BYTES, CHUNK = 1 << 20, 4000
ID = "news.example/%011x"
_ID_HOLE, _NUMBER_HOLE, _FINGERPRINT_HOLE = ID % 0xF0E1D2C3B4, 0xF1E2D3C4B5A69788, 0xF9E8D7C6B5A49382
_HASH_HOLE, _ID_HASH_HOLE = bytes(range(0xE0, 0xF0)), bytes(range(0xD0, 0xE0))
_TEXTS_FIELD = RecordRow.__struct_fields__.index("texts")
_TERM_REMAINDER_MASK = np.uint64((1 << keys.TERM_REMAINDER_BITS) - 1)
Numbers = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


class Connection:
    """Sends SET commands to a server's unix socket and reads their replies."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._pending: list[bytes] = []
        self._bytes = 0

    def set(self, key: bytes, value: bytes) -> None:
        """Send ``SET key value`` with others, soon."""
        self._pending.append(
            b"*3\r\n$3\r\nSET\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(key), key, len(value), value)
        )
        self._bytes += len(value)
        if self._bytes > BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send all commands; raises if one of them failed."""
        self.send(b"".join(self._pending), len(self._pending))
        self._pending, self._bytes = [], 0

    def send(self, commands: bytes | memoryview, count: int) -> None:
        """Send encoded commands, ``count`` of them, and read their replies."""
        self._socket.sendall(commands)
        left = count * len(b"+OK\r\n")
        while left:
            reply = self._socket.recv(1 << 16)
            if not reply or b"-" in reply:
                raise RuntimeError(f"the store refused a write: {reply[:200]!r}")
            left -= len(reply)

    def close(self) -> None:
        """Send what is left, and close the connection."""
        self.flush()
        self._socket.close()


# -- buckets ---------------------------------------------------------------------------------------


def buckets(
    replicas: Replicas, rounds: Sequence[Round], numbers: Numbers, tag: bytes, plan: BlockPlan
) -> Iterator[tuple[bytes, bytes]]:
    """All buckets of the articles with their names; ``numbers``: article numbers by position."""
    own = np.concatenate(list(gather(replicas, rounds, "positions")))
    indexed = numbers[own]
    prints = np.concatenate(list(gather(replicas, rounds, "fingerprints")))
    for block, value, bucket in block_buckets(plan, prints, indexed):
        yield keys.block_bucket(tag, block, value), bucket
    yield from _sketch_buckets(list(gather(replicas, rounds, "sketch_keys")), indexed, tag)
    yield from _term_buckets(list(gather(replicas, rounds, "term_keys")), indexed, tag)


def _sketch_buckets(columns: list[Numbers], indexed: Numbers, tag: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The sketch buckets, and the width that they have; the only place that knows which bucket a key has."""
    all_keys, articles = _flat(columns, NO_KEY)
    parts: list[npt.NDArray[np.uint32]] = []
    for part in range(PARTITIONS):
        at = np.flatnonzero(all_keys % PARTITIONS == part)
        parts.append(at[newest_of_full_keys(all_keys[at])].astype(np.uint32))
    width = grown_width(sum(map(len, parts)))
    if value := width.encode():
        yield tag + keys.WIDTH, value
    for of_part in parts:
        wanted = all_keys[of_part]
        remainders = (wanted >> keys.SKETCH_BUCKET_BITS).astype(np.uint64)
        entries = packed_entries(remainders, indexed[articles[of_part]], SKETCH_REMAINDER_BYTES)
        found = list(grouped(entries, wanted & np.uint64((1 << width.bits) - 1)))
        names = keys.sketch_buckets(tag, [value for value, _ in found], width.bits)
        yield from zip(names, (content for _, content in found), strict=True)


def entries_left(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The entries that a sketch key has after so many were appended, (n,): full keys are trimmed."""
    turn = FULL_KEY_ENTRIES - KEPT_KEY_ENTRIES
    trimmed = KEPT_KEY_ENTRIES + 1 + (counts - FULL_KEY_ENTRIES - 1) % turn
    return np.where(counts <= FULL_KEY_ENTRIES, counts, trimmed)


def grown_width(entries: int) -> SketchWidth:
    """The width that a segment with so many sketch entries has after all rehashes."""
    width = INITIAL_WIDTH
    while width.bits < keys.MAX_SKETCH_BUCKET_BITS and entries > SPLIT_ENTRIES << width.bits:
        width = SketchWidth(width.bits + 1)
    return width


def _term_buckets(columns: list[Numbers], indexed: Numbers, tag: bytes) -> Iterator[tuple[bytes, bytes]]:
    rest_bytes = keys.TERM_REMAINDER_BITS // 8
    joined = np.concatenate(columns)
    present = joined != 0
    articles = np.repeat(np.arange(len(joined), dtype=np.uint32), present.sum(axis=1))
    all_keys = joined[present]
    del joined, present
    part_of = (all_keys >> np.uint64(keys.TERM_REMAINDER_BITS)).astype(np.uint32)
    for part in range(PARTITIONS):
        at = np.flatnonzero(part_of % PARTITIONS == part)
        entries = packed_entries(all_keys[at] & _TERM_REMAINDER_MASK, indexed[articles[at]], rest_bytes)
        for value, content in grouped(entries, part_of[at]):
            (name,) = keys.term_buckets(tag, [value << keys.TERM_REMAINDER_BITS])
            yield name, content[-MAX_ARTICLES_PER_TERM * TERM_POSTING_BYTES :]


def _flat(
    columns: list[Numbers], missing: np.uint64
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """All values of the columns, and the row of each; ``columns`` is emptied, to save memory."""
    values, rows, first = [], [], 0
    while columns:
        column = columns.pop(0)
        present = column != missing
        values.append(column[present].astype(np.uint32))
        rows.append(np.repeat(np.arange(first, first + len(column), dtype=np.uint32), present.sum(axis=1)))
        first += len(column)
    return np.concatenate(values), np.concatenate(rows)


def newest_of_full_keys(entry_keys: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Which entries, (n,) in order of arrival, are left when full keys are trimmed as they fill."""
    order = np.argsort(entry_keys, kind="stable")
    ordered = entry_keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    counts = np.diff(np.append(starts, len(ordered)))
    left = entries_left(counts)
    rank = np.arange(len(ordered)) - np.repeat(starts, counts)
    kept = np.empty(len(ordered), bool)
    kept[order] = rank >= np.repeat(counts - left, counts)
    return kept


# -- records and bindings --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Templates:
    """SET commands of one kind of value, one per real article, with holes; positions within ``joined``."""

    joined: Bytes
    ends: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]  # (n, 2): start and end of the value without its checksum
    holes: dict[str, npt.NDArray[np.int64]]

    def filled(
        self, members: npt.NDArray[np.int64], fields: dict[str, Bytes], seeds: Numbers | None
    ) -> bytes:
        """The commands of these articles with these fields, one row of bytes per article."""
        starts = np.append(0, self.ends[:-1])[members]
        lengths = self.ends[members] - starts
        new_starts = np.append(0, lengths.cumsum()[:-1])
        source = np.repeat(starts - new_starts, lengths) + np.arange(lengths.sum())
        made = self.joined[source]
        shift = (new_starts - starts)[:, None]
        for name, rows in fields.items():
            made[self.holes[name][members][:, None] + shift + np.arange(rows.shape[1])] = rows
        view, sums = memoryview(made), []
        for i, (start, end) in enumerate((self.values[members] + shift).tolist()):
            seed = int(seeds[i]) & 0xFFFF_FFFF if seeds is not None else 0
            sums.append(xxhash.xxh32_intdigest(view[start:end], seed))
        ends = self.values[members][:, 1:] + shift
        made[ends + np.arange(CHECKSUM_BYTES)] = (
            np.array(sums, "<u4").view(np.uint8).reshape(-1, CHECKSUM_BYTES)
        )
        return bytes(made)


class ArticleWriter:
    """Writes records and bindings of generated articles of one space."""

    def __init__(self, replicas: Replicas, articles: Sequence[Article], space: str, tag: bytes) -> None:
        self._replicas = replicas
        records = [
            _template_record(a, article, space)
            for a, article in zip(replicas.analyses, articles, strict=True)
        ]
        renamed = replicas.rename_samples([record.sketch.sample for record in records])
        later = [
            replace(record, sketch=Sketch(record.sketch.size, sample, record.sketch.marks[: len(sample)]))
            for record, sample in zip(records, renamed, strict=True)
        ]
        self._records = {True: _record_templates(records, space), False: _record_templates(later, space)}
        self._bindings = _binding_templates(records, tag)

    def write(
        self,
        connection: Connection,
        rounds: Sequence[Round],
        numbers: Numbers,
        wanted: npt.NDArray[np.bool_] | None = None,
        *,
        chunk: int = CHUNK,
    ) -> int:
        """Write the articles of all rounds, or those at ``wanted`` positions (flags); how many."""
        count = 0
        for round_ in rounds:
            at = np.arange(round_.first, round_.last)
            members, prints = self._replicas.members(round_), self._replicas.fingerprints_of(round_)
            columns: list[npt.NDArray[Any]] = [at, members, prints, self._replicas.text_hashes_of(round_)]
            if wanted is not None:
                columns = [column[wanted[at]] for column in columns]
            for start in range(0, len(columns[0]), chunk):
                part = [column[start : start + chunk] for column in columns]
                self._write_chunk(connection, round_, numbers[part[0]], *part)
            count += len(columns[0])
        return count

    def _write_chunk(
        self,
        connection: Connection,
        round_: Round,
        own: Numbers,
        positions: npt.NDArray[np.int64],
        members: npt.NDArray[np.int64],
        prints: Numbers,
        hashes: Numbers,
    ) -> None:
        ids = [ID % position for position in positions.tolist()]
        texts = {
            "text_hash": hashes.astype("<u8").view(np.uint8).reshape(-1, 16),
            "id": _rows("".join(ids).encode(), len(_ID_HOLE)),
        }
        fields = {
            "hex": _rows(b"".join(b"%016x" % n for n in own.tolist()), 16),
            "fingerprint": prints.astype(">u8").view(np.uint8).reshape(-1, 8),
            **texts,
        }
        connection.send(self._records[round_.number == 0].filled(members, fields, own), len(own))
        fields = {
            "id_hash": _rows(b"".join(map(keys.id_hash, ids)), 16),
            "number": own.astype(">u8").view(np.uint8).reshape(-1, 8),
            **texts,
        }
        connection.send(self._bindings.filled(members, fields, None), len(own))


def _rows(joined: bytes, width: int) -> Bytes:
    return np.frombuffer(joined, np.uint8).reshape(-1, width)


def _template_record(a: Analysis, article: Article, space: str) -> ArticleRecord:
    return ArticleRecord(
        number=_NUMBER_HOLE, first_version=_NUMBER_HOLE, id=_ID_HOLE, space=space, lang=a.lang,
        fingerprint=_FINGERPRINT_HOLE, text_hash=_HASH_HOLE, short=a.short, title=article.title,
        url=article.url, source=article.source, published_at_ms=None, sketch=a.sketch, terms=a.terms,
        figures=a.figures, minor_terms=a.minor_terms,
    )  # fmt: skip


def _record_templates(records: Sequence[ArticleRecord], space: str) -> _Templates:
    rows = [(keys.record(space, _NUMBER_HOLE), _record_value(record)) for record in records]
    holes = {
        "hex": b"%016x" % _NUMBER_HOLE,
        "fingerprint": _FINGERPRINT_HOLE.to_bytes(8, "big"),
        "text_hash": _HASH_HOLE,
        "id": _ID_HOLE.encode(),
    }
    return _templates(rows, holes)


def _record_value(record: ArticleRecord) -> bytes:
    """An encoded record without checksum in which the id is not compressed, so that it can be replaced."""
    encoded = encode_record(record)
    row = msgspec.msgpack.decode(encoded[1:-CHECKSUM_BYTES])
    if isinstance(row[_TEXTS_FIELD], bytes):
        plain = zlib.decompress(row[_TEXTS_FIELD], wbits=-zlib.MAX_WBITS)
        head = plain[: plain.index(_ID_HOLE.encode()) + len(_ID_HOLE)]
        # A stored block of deflate, and after it the rest compressed as before.
        stored = b"\0" + len(head).to_bytes(2, "little") + (len(head) ^ 0xFFFF).to_bytes(2, "little") + head
        row[_TEXTS_FIELD] = stored + zlib.compress(plain[len(head) :], wbits=-zlib.MAX_WBITS)
    return encoded[:1] + msgspec.msgpack.encode(row)


def _binding_templates(records: Sequence[ArticleRecord], tag: bytes) -> _Templates:
    rows = []
    for record in records:
        binding = Binding(record.number, record.number, record.text_hash, record.id, Outcome("new"))
        rows.append((tag + keys.BINDING + _ID_HASH_HOLE, encode_binding(binding)[:-CHECKSUM_BYTES]))
    holes = {
        "id_hash": _ID_HASH_HOLE,
        "number": _NUMBER_HOLE.to_bytes(8, "big"),
        "text_hash": _HASH_HOLE,
        "id": _ID_HOLE.encode(),
    }
    return _templates(rows, holes)


def _templates(rows: Sequence[tuple[bytes, bytes]], holes: dict[str, bytes]) -> _Templates:
    commands, values, at = [], [], 0
    found: dict[str, list[int]] = {name: [] for name in holes}
    for key, value in rows:
        size = len(value) + CHECKSUM_BYTES
        head = b"*3\r\n$3\r\nSET\r\n$%d\r\n%b\r\n$%d\r\n" % (len(key), key, size)
        command = head + value + bytes(CHECKSUM_BYTES) + b"\r\n"
        values.append((at + len(head), at + len(head) + len(value)))
        for name, hole in holes.items():
            found[name].append(at + command.index(hole))
        commands.append(command)
        at += len(command)
    return _Templates(
        np.frombuffer(b"".join(commands), np.uint8),
        np.cumsum([len(command) for command in commands]),
        np.array(values),
        {name: np.array(positions) for name, positions in found.items()},
    )


def sampled_numbers(numbers: Numbers, exponent: int) -> bytes:
    """The sample of a segment with these articles."""
    candidates = numbers[numbers & np.uint64((1 << exponent) - 1) == 0]
    return b"".join(sample_entry(number, exponent) for number in candidates.tolist())
