"""Every key the index keeps, in one place.

All keys of one **segment** of a space share the tag ``{space.segment}`` and so, on a cluster, one
slot: they are read at one instant and changed together. Records and texts are spread. With an empty
tag the functions give the rest of a key, which is the same in all segments.

    {en.3f2a.0}b0:1f2e   bucket: block 0 has value 0x1f2e      packed entries (``entries.py``)
    {en.3f2a.0}s1f2e3    band bucket: low 18 bits of a band    packed entries
    {en.3f2a.0}t1f2e3    topic bucket: top 20 bits of a value  packed entries, the newest only
    {en.3f2a.0}i<16 B>   id binding, by xxh3_128 of the id     ``records.Binding``
    {en.3f2a.0}p<8 B>    state of an article number            canonical it is a copy of, or DEAD
    {en.3f2a.0}g<8 B>    tombstone of a canonical article that was deleted, by first number
    {en.3f2a.0}c<8 B>    copies of a canonical article         16-byte id hashes, packed
    {en.3f2a.0}closed    present once the segment is sealed: when, in ms
    {en.3f2a.0}marks     a sample of the numbers it took        ``index/segments.py``
    {en.3f2a.0}dead      numbers of versions that left while it was written to, 8 bytes each
    {en.3f2a.0}version   hash of all commits it took, in their order
    {en.3f2a.0}stream    article stream in commit order
    {en.3f2a}segments    which segments are live               ``index/segments.Head``
    {en.3f2a}upkeep      how far compaction is                 ``index/upkeep.Round``
    r:en.3f2a:<16 hex>   record of an article number           ``records.encode_record``
    {format}             format of the data               ``stamp.py``
    {reindex}<spaces>    how far a fill of these spaces is     ``reindexing.py``
    {singles}            there for seconds: articles come singly ``presence.py``
    x:<16 hex>           its text, compressed (store_texts)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import xxhash

from aggregator.index.blocks import ProbePlan

SKETCH_BUCKET_BITS = 18
TERM_BUCKET_BITS = 20
TERM_REMAINDER_BITS = 32
RECORD_PREFIX = b"r:"
INTERACTIVE_BEACON = b"{singles}"
DEAD = b"\x00"
# "Nothing here, whatever older segments say." No value that is written otherwise begins so.
ABSENT = b"\x02"


def tag(space: str, segment: int) -> bytes:
    return b"{%s.%d}" % (space.encode(), segment)


def tag_of(key: bytes) -> bytes:
    """The tag that ``key`` carries."""
    return key[: key.index(b"}") + 1]


def space_of(key: bytes) -> str:
    """The space whose tag ``key`` carries."""
    return tag_of(key)[1:-1].rsplit(b".", 1)[0].decode()


def space_prefix(space: str) -> bytes:
    """What the tags of all segments of a space begin with."""
    return b"{%s." % space.encode()


def segment_of(key: bytes) -> int:
    """The number of the segment whose tag ``key`` carries."""
    return int(tag_of(key)[1:-1].rsplit(b".", 1)[1])


def space_head(space: str) -> bytes:
    return b"{%s}segments" % space.encode()


def block_bucket(tag_: bytes, block: int, value: int) -> bytes:
    return b"%sb%x:%04x" % (tag_, block, value)


def block_buckets(tag_: bytes, probe_plan: ProbePlan) -> list[bytes]:
    """``bucket`` of all that a look-up reads: half the cost of formatting each."""
    blocks = [
        (tag_ + _BLOCK_PREFIXES[block], value, flips) for block, value, _, flips in probe_plan.block_probes
    ]
    return [
        block + _HEX_BYTES[(value ^ flip) >> 8] + _HEX_BYTES[(value ^ flip) & 0xFF]
        for block, value, flips in blocks
        for flip in flips
    ]


def block_buckets_each(tag_: bytes, probe_plans: Sequence[ProbePlan]) -> list[bytes]:
    """``buckets`` of one look-up after another, all of one plan and radius: a quarter of the time for a dozen."""
    cells = probe_plans[0].block_probes
    steps = [len(flips) for *_, flips in cells]
    own = np.array([[value for _, value, _, _ in around.block_probes] for around in probe_plans])
    values = own.repeat(steps, axis=1) ^ [flip for *_, flips in cells for flip in flips]
    blocks = np.array([tag_ + _BLOCK_PREFIXES[block] for block, *_ in cells])
    rows = np.empty(values.shape, [("block", blocks.dtype), ("upper", "<u2"), ("lower", "<u2")])
    rows["block"] = blocks.repeat(steps)
    rows["upper"], rows["lower"] = _HEX_BYTES_UINT16[values >> 8], _HEX_BYTES_UINT16[values & 0xFF]
    spelt: list[bytes] = rows.view(f"S{rows.itemsize}").reshape(-1).tolist()
    return spelt


_BLOCK_PREFIXES = [b"b%x:" % block for block in range(64)]
_HEX_BYTES = [b"%02x" % value for value in range(1 << 8)]  # a block has at most 16 bits
_HEX_BYTES_UINT16 = np.frombuffer(b"".join(_HEX_BYTES), "<u2")  # the same, two letters as one number
_SKETCH_HEX_PREFIXES = [
    b"%03x" % value for value in range(1 << SKETCH_BUCKET_BITS - 8)
]  # of a band, above its last byte
_SKETCH_HEX_PREFIX_MASK = len(_SKETCH_HEX_PREFIXES) - 1
_TERM_HEX_PREFIXES = [b"%03x" % value for value in range(1 << TERM_BUCKET_BITS - 8)]


def sketch_bucket(tag_: bytes, sketch_key: int) -> bytes:
    return sketch_buckets(tag_, (sketch_key,))[0]


def sketch_buckets(tag_: bytes, sketch_keys: Iterable[int]) -> list[bytes]:
    """``band`` of each: as ``buckets``, by tables."""
    prefix = tag_ + b"s"
    return [
        prefix + _SKETCH_HEX_PREFIXES[value >> 8 & _SKETCH_HEX_PREFIX_MASK] + _HEX_BYTES[value & 0xFF]
        for value in sketch_keys
    ]


def term_bucket(tag_: bytes, index_key: int) -> bytes:
    return term_buckets(tag_, (index_key,))[0]


def term_buckets(tag_: bytes, index_keys: Iterable[int]) -> list[bytes]:
    """``topic`` of each: as ``buckets``, by tables."""
    prefix = tag_ + b"t"
    upper = TERM_REMAINDER_BITS + 8
    return [
        prefix + _TERM_HEX_PREFIXES[value >> upper] + _HEX_BYTES[value >> TERM_REMAINDER_BITS & 0xFF]
        for value in index_keys
    ]


def id_hash(id_: str) -> bytes:
    """16 bytes: ids are strangers' text and may be long, hold braces or newlines."""
    return xxhash.xxh3_128_digest(id_.encode("utf-8", "surrogatepass"))


def binding_by_hash(tag_: bytes, hashed_id: bytes) -> bytes:
    return tag_ + b"i" + hashed_id


def binding_by_id(tag_: bytes, id_: str) -> bytes:
    return binding_by_hash(tag_, id_hash(id_))


def state(tag_: bytes, number: int) -> bytes:
    return tag_ + b"p" + number.to_bytes(8, "big")


def tombstone(tag_: bytes, first_version: int) -> bytes:
    return tag_ + b"g" + first_version.to_bytes(8, "big")


def duplicate_ids(tag_: bytes, first_version: int) -> bytes:
    return tag_ + b"c" + first_version.to_bytes(8, "big")


def sealed(tag_: bytes) -> bytes:
    return tag_ + b"closed"


def sampled_numbers(tag_: bytes) -> bytes:
    return tag_ + b"marks"


def dead_numbers(tag_: bytes) -> bytes:
    return tag_ + b"dead"


def compaction_cursor(space: str) -> bytes:
    return b"{%s}upkeep" % space.encode()


def compaction_keys(widths: Sequence[int]) -> Iterator[bytes]:
    """The keys of all buckets that a segment may have, without its tag: a fixed order."""
    for block, width in enumerate(widths):
        yield from (block_bucket(b"", block, value) for value in range(1 << width))
    yield from (sketch_bucket(b"", value) for value in range(1 << SKETCH_BUCKET_BITS))
    yield from (b"t%05x" % value for value in range(1 << TERM_BUCKET_BITS))


def version(tag_: bytes) -> bytes:
    return tag_ + b"version"


def stream(tag_: bytes) -> bytes:
    return tag_ + b"stream"


def backfill_position(spaces: Sequence[str]) -> bytes:
    return b"{reindex}" + ",".join(sorted(spaces)).encode()


def record(space: str, number: int) -> bytes:
    return b"%s%s:%016x" % (RECORD_PREFIX, space.encode(), number)


def text(number: int) -> bytes:
    return b"x:%016x" % number
