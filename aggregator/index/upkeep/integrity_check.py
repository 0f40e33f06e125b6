"""Integrity check: every record, binding and posting of one space is read and compared.

Records and bindings have checksums. A posting has none, but what it says follows from the record of its
article: the fingerprint, the sketch keys and the terms. So a posting that disagrees with its record, one
that is missing from some blocks, and one of an article that is not stored are found. Nothing is written.
Articles that arrive, leave or expire meanwhile are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import distinct
from aggregator.domain import article_number_at
from aggregator.errors import StoreUnavailable
from aggregator.index import Index, keys
from aggregator.index.bindings import decode_binding
from aggregator.index.blocks import PLAN
from aggregator.index.codec.postings import REMAINDER_SIZES, decode_numbers, decode_remainders
from aggregator.index.codec.record_codec import decode_record_uncached
from aggregator.index.snapshot import SegmentStack
from aggregator.time_units import MINUTE_MS

Numbers = npt.NDArray[np.uint64]
_NO_KEY = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # no sketch key or index key: they have 32 and 52 bits
MAX_NAMED_IDS = 20
# Bindings and buckets; the other keys of a segment are not checked.
_CHECKED_SUFFIX = re.compile(
    rb"i.{16}|b[0-9a-f]+:[0-9a-f]+|[st][0-9a-f]{5}|s[12][0-9]:[0-9a-f]{6}", re.DOTALL
)


@dataclass(slots=True)
class IntegrityReport:
    """The result for one space.

    ``damaged_ids``: some ids of damaged records. ``wrong_postings`` disagree with their record or are in
    sketch buckets of another width than their segment's; ``unknown_postings`` are of articles neither stored
    nor deleted nor expired; ``missing_postings``: articles without their posting in some block.
    """

    space: str
    records: int = 0
    bindings: int = 0
    postings: int = 0
    damaged_records: list[int] = field(default_factory=list)
    damaged_ids: list[str] = field(default_factory=list)
    damaged_bindings: int = 0
    damaged_buckets: int = 0
    wrong_postings: int = 0
    unknown_postings: int = 0
    missing_postings: int = 0

    @property
    def ok(self) -> bool:
        """Whether everything can be read and agrees."""
        postings = self.wrong_postings + self.unknown_postings + self.missing_postings
        return not (self.damaged_records or self.damaged_bindings or self.damaged_buckets or postings)


async def check_integrity(index: Index, space: str, now_ms: int) -> IntegrityReport:
    """Read and compare all that is stored of one space; about 200 bytes of memory per article."""
    return await _IntegrityCheck(index, space, now_ms).run()


class _IntegrityCheck:
    def __init__(self, index: Index, space: str, now_ms: int) -> None:
        self._index = index
        self._store = index.store
        self._space = space
        self._now_ms = now_ms
        self._report = IntegrityReport(space)
        self._unknown: list[Numbers] = []
        # By segment and width of sketch buckets, the postings in them.
        self._postings_by_width: Counter[tuple[bytes, int]] = Counter()
        # By bound number, whether it may share the postings of an exact copy.
        self._shares_postings: dict[int, bool] = {}

    async def run(self) -> IntegrityReport:
        stack = (await self._index.segments.read({self._space: ()})).stacks[self._space]
        self._tags = stack.tags
        # Articles of the last minute may be in the middle of their commit; others expire within the hour.
        floor = self._index.retention.stable_floor(stack)
        end = article_number_at(self._now_ms - MINUTE_MS)
        await self._read_records()
        # Whether each record has its posting in each block: (blocks, records).
        self._seen = np.zeros((len(PLAN.widths), len(self._numbers)), bool)
        for tag in self._tags:
            async for found in self._store.scan_batches(tag):
                checked = [key for key in found if _CHECKED_SUFFIX.fullmatch(key, len(tag))]
                for key, value in zip(checked, await self._store.read(checked), strict=True):
                    self._check_value(tag, key[len(tag) :], value or b"")
        await self._count_other_widths(stack)
        seen, shared = self._seen, self._shares_postings
        in_scope = (self._numbers >= np.uint64(floor)) & (self._numbers < np.uint64(end))
        bound = np.isin(self._numbers, np.array(sorted(shared), np.uint64))
        partly = seen.any(axis=0) & ~seen.all(axis=0)
        nowhere = ~seen.any(axis=0) & np.isin(
            self._numbers, np.array(sorted(n for n, shares in shared.items() if not shares), np.uint64)
        )
        self._report.missing_postings = int((in_scope & bound & (partly | nowhere)).sum())
        await self._count_unknown(floor, end)
        return self._report

    async def _read_records(self) -> None:
        prefix = keys.record_prefix(self._space)
        rows: dict[int, tuple[int, list[int], list[int]]] = {}
        async for found in self._store.scan_batches(prefix):
            values = await self._store.read(found)
            for key, value in zip(found, values, strict=True):
                number = int(key[-16:], 16)
                if value is None or number in rows:
                    continue
                self._report.records += 1
                try:
                    record = decode_record_uncached(value, self._space, number)
                except StoreUnavailable:
                    self._report.damaged_records.append(number)
                    continue
                rows[number] = record.fingerprint, list(keys.wording_keys(record)), keys.index_keys(record)
        numbers = sorted(rows)
        # Ascending by number.
        self._numbers = np.array(numbers, np.uint64)
        self._fingerprints = np.array([rows[n][0] for n in numbers], np.uint64)
        self._sketch_keys = _padded([rows[n][1] for n in numbers])
        self._term_keys = _padded([rows[n][2] for n in numbers])

    async def _count_other_widths(self, began: SegmentStack) -> None:
        """A rehash may have gone on meanwhile."""
        ended = (await self._index.segments.read({self._space: ()})).stacks[self._space]
        ended_widths = dict(zip(ended.tags, ended.sketch_widths, strict=True))
        for tag, width in zip(began.tags, began.sketch_widths, strict=True):
            last = ended_widths.get(tag, width)
            self._report.wrong_postings += sum(
                count
                for (found_tag, bits), count in self._postings_by_width.items()
                if found_tag == tag and not width.bits_to_read[0] <= bits <= last.bits
            )

    def _check_value(self, tag: bytes, suffix: bytes, value: bytes) -> None:
        kind = suffix[:1]
        if kind == b"i":
            self._check_binding(value)
            return
        block, _, digits = suffix[1:].rpartition(b":")
        remainder_bytes = REMAINDER_SIZES[kind]
        try:
            numbers = decode_numbers(value, remainder_bytes)
            remainders = decode_remainders(value, remainder_bytes)
        except StoreUnavailable:
            self._report.damaged_buckets += 1
            return
        if not len(numbers):
            return
        bucket = int(digits, 16)
        rows, known = self._find_rows(numbers)
        if kind == b"b":
            fingerprints = PLAN.join(int(block, 16), bucket, remainders)
            agree = self._fingerprints[rows] == fingerprints[known]
            self._seen[int(block, 16), rows[agree]] = True
        elif kind == b"s":
            bits = int(block or keys.SKETCH_BUCKET_BITS)
            self._postings_by_width[tag, bits] += len(numbers)
            found = remainders << np.uint64(keys.SKETCH_BUCKET_BITS)
            found |= np.uint64(bucket & (1 << keys.SKETCH_BUCKET_BITS) - 1)
            belongs = found & np.uint64((1 << bits) - 1) == np.uint64(bucket)
            agree = (self._sketch_keys[rows] == found[known][:, None]).any(axis=1) & belongs[known]
        else:
            found = np.uint64(bucket << keys.TERM_REMAINDER_BITS) | remainders
            agree = (self._term_keys[rows] == found[known][:, None]).any(axis=1)
        self._report.wrong_postings += int((~agree).sum())

    def _check_binding(self, value: bytes) -> None:
        if value in (b"", keys.ABSENT):
            return
        self._report.bindings += 1
        try:
            binding = decode_binding(value)
        except StoreUnavailable:
            self._report.damaged_bindings += 1
            return
        match = binding.outcome.match
        self._shares_postings[binding.number] = match is not None and match.rule == "exact"
        if binding.number in self._report.damaged_records and len(self._report.damaged_ids) < MAX_NAMED_IDS:
            self._report.damaged_ids.append(binding.id)

    def _find_rows(self, numbers: Numbers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        self._report.postings += len(numbers)
        rows = self._numbers.searchsorted(numbers)
        known = np.zeros(len(numbers), bool)
        inside = rows < len(self._numbers)
        known[inside] = self._numbers[rows[inside]] == numbers[inside]
        if not known.all():
            self._unknown.append(distinct(numbers[~known]))
        return rows[known], known

    async def _count_unknown(self, floor: int, end: int) -> None:
        """Count postings of numbers that were neither deleted nor replaced nor expired."""
        if not self._unknown:
            return
        dead = await self._store.read([tag + keys.DEAD_NUMBERS for tag in self._tags])
        left = [np.frombuffer(value or b"", "<u8") for value in dead]
        damaged = np.array(self._report.damaged_records, np.uint64)
        unknown = np.concatenate(self._unknown)
        in_scope = (unknown >= np.uint64(floor)) & (unknown < np.uint64(end))
        in_scope &= ~np.isin(unknown, np.concatenate([*left, damaged]))
        self._report.unknown_postings = int(in_scope.sum())


def _padded(rows: Sequence[Sequence[int]]) -> Numbers:
    padded = np.full((len(rows), max(map(len, rows), default=0)), _NO_KEY)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded
