"""Key layout of the index: what a space stores (other keys and owners: docs/design/data-model.md).

All keys of one **segment** of a space share the tag ``{space.segment}`` and so, on a cluster, one slot: they
are read at one instant and changed together. Records and texts are spread over all slots. A **suffix** is the
part of a key behind its tag, the same in all segments.

    {en.3f2a.0}b0:1f2e   block bucket: block 0 has the value 0x1f2e  postings (``codec/postings.py``)
    {en.3f2a.0}s1f2e3    sketch bucket: low 18 bits of a sketch key  postings (``wording_keys``)
    {en.3f2a.0}s21:01f2e3    the same after a rehash: 21 bits
    {en.3f2a.0}t1f2e3    term bucket: top 20 bits of a term's hash   postings, the newest only
    {en.3f2a.0}i<16 B>   binding of an id, by its xxh3_128 hash      ``bindings.encode_binding``
    {en.3f2a.0}p<8 B>    state of an article number                  its canonical article, or DEAD
    {en.3f2a.0}g<8 B>    tombstone of a deleted canonical article, by the number of its first version
    {en.3f2a.0}c<8 B>    duplicates of a canonical article           16-byte id hashes
    {en.3f2a.0}closed    present once the segment is sealed: when, in ms
    {en.3f2a.0}width     bits that name its sketch buckets, if not 18  ``snapshot.py``
    {en.3f2a.0}marks     sample of the segment's article numbers     ``segments.py``
    {en.3f2a.0}dead      numbers of versions that left while it was writable, 8 bytes each
    {en.3f2a.0}version   hash of all commits the segment took, in order
    {en.3f2a.0}stream    article stream in commit order
    {en.3f2a}segments    live segments of the space                  ``segments.SpaceHead``
    {en.3f2a}upkeep      position of compaction                      ``compaction.CompactionCursor``
    r:en.3f2a:<16 hex>   record of an article number                 ``record_codec.encode_record``
    x:<16 hex>           compressed text of an article number (setting ``store_texts``)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
import xxhash

from aggregator.analysis.shingles import MAX_SKETCH_KEYS, sketch_keys
from aggregator.analysis.term_profile import profile_weights
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.normalization import core_headline
from aggregator.domain import Analysis, ArticleRecord
from aggregator.index.blocks import ProbePlan

INDEXED_TERMS = 8
MAX_ARTICLES_PER_TERM = 512
_HASH_SEED = 0x70
_HASH_BITS = 36


def index_keys(article: Analysis | ArticleRecord) -> list[int]:
    """Hashes of the terms that an article is indexed under."""
    return [term_hash(term) for term, _ in profile_weights(article)[:INDEXED_TERMS]]


def wording_keys(article: Analysis | ArticleRecord, count: int = MAX_SKETCH_KEYS) -> tuple[int, ...]:
    """What its wording is looked up by, all distinct: text key, ``count`` sketch keys, headline key.

    The ``text_key`` is that for other spaces; a teaser has few of a long text's keys, but its headline.
    """
    found = (article.text_key, *sketch_keys(article.sketch, count), headline_key(article.title, article.lang))
    return tuple(dict.fromkeys(filter(None, found)))


@lru_cache(maxsize=4096)
def headline_key(title: str, lang: str) -> int:
    """32 bits of the distinct terms of a headline, in any order; 0 for fewer than three, which many have."""
    terms = sorted(set(tokenizer.tokenize(core_headline(title), lang)))
    return xxhash.xxh32_intdigest(" ".join(terms).encode("utf-8", "surrogatepass")) if len(terms) >= 3 else 0


@lru_cache(maxsize=4096)
def headline_words(title: str, lang: str) -> str:
    """The words of a headline, without the name of the outlet; "" for one that many have."""
    return " ".join(tokenizer.words(core_headline(title), lang)) if headline_key(title, lang) else ""


@lru_cache(maxsize=1 << 16)
def term_hash(term: str) -> int:
    """36 bits: the upper ones name the bucket, the others are in the posting."""
    return xxhash.xxh3_64_intdigest(term.encode("utf-8", "surrogatepass"), _HASH_SEED) >> (64 - _HASH_BITS)


# Of a sketch key, those that name its bucket in a new segment, and after the last rehash
# (``snapshot.py``). Entries have the upper 14 bits whatever names their bucket.
SKETCH_BUCKET_BITS = 18
MAX_SKETCH_BUCKET_BITS = 24
TERM_BUCKET_BITS = 20
TERM_REMAINDER_BITS = 16
RECORD_PREFIX = b"r:"
SPACE_REGISTRY = b"{spaces}"
SPACE_USE_PREFIX = b"{spaces}use:"
TEXT_PREFIX = b"x:"
# Suffixes of the keys that a segment has once, and of a binding before the hash of its id.
SEALED = b"closed"
WIDTH = b"width"
SAMPLES = b"marks"
DEAD_NUMBERS = b"dead"
VERSION = b"version"
STREAM = b"stream"
BINDING = b"i"
DEAD = b"\x00"
# Overrides older segments: the key is deleted. No other value starts with this byte.
ABSENT = b"\x02"


def tag(space: str, segment: int) -> bytes:
    """The tag of a segment."""
    return b"{%s.%d}" % (space.encode(), segment)


def tag_of(key: bytes) -> bytes:
    """The tag of ``key``."""
    return key[: key.index(b"}") + 1]


def space_of(key: bytes) -> str:
    """The space of ``key``."""
    return tag_of(key)[1:-1].rsplit(b".", 1)[0].decode()


def space_prefix(space: str) -> bytes:
    """Common prefix of the tags of all segments of a space."""
    return b"{%s." % space.encode()


def segment_of(key: bytes) -> int:
    """The segment number of ``key``."""
    return int(tag_of(key)[1:-1].rsplit(b".", 1)[1])


def kind_of(key: bytes) -> bytes:
    """The letter after the tag of a segment's key; b"" for all other keys."""
    tag_, brace, suffix = key.partition(b"}")
    return suffix[:1] if brace and tag_.startswith(b"{") and tag_.rpartition(b".")[2].isdigit() else b""


def space_head(space: str) -> bytes:
    """Live segments and floor of a space."""
    return b"{%s}segments" % space.encode()


def block_bucket(tag_: bytes, block: int, value: int) -> bytes:
    """Bucket of one value of a block."""
    return b"%sb%x:%04x" % (tag_, block, value)


def block_buckets(tag_: bytes, probe_plans: Sequence[ProbePlan]) -> list[bytes]:
    """``block_bucket`` of all that lookups of one plan and radius read; 1/8 of the time that it takes."""
    probes = probe_plans[0].block_probes
    counts = [len(flips) for *_, flips in probes]
    own = np.array([[value for _, value, _, _ in plan.block_probes] for plan in probe_plans])
    values = own.repeat(counts, axis=1) ^ [flip for *_, flips in probes for flip in flips]
    prefixes = np.array([tag_ + _BLOCK_PREFIXES[block] for block, *_ in probes])
    rows = np.empty(values.shape, [("prefix", prefixes.dtype), ("upper", "<u2"), ("lower", "<u2")])
    rows["prefix"] = prefixes.repeat(counts)
    rows["upper"], rows["lower"] = _HEX_BYTES_UINT16[values >> 8], _HEX_BYTES_UINT16[values & 0xFF]
    built: list[bytes] = rows.view(f"S{rows.itemsize}").reshape(-1).tolist()
    return built


_BLOCK_PREFIXES = [b"b%x:" % block for block in range(64)]
_HEX_BYTES = [b"%02x" % value for value in range(1 << 8)]  # a block has at most 16 bits
_HEX_BYTES_UINT16 = np.frombuffer(b"".join(_HEX_BYTES), "<u2")  # the two characters as one number
# The hex digits above the last byte of a sketch bucket, and of a term bucket.
_SKETCH_HEX_PREFIXES = [b"%03x" % value for value in range(1 << SKETCH_BUCKET_BITS - 8)]
_SKETCH_HEX_PREFIX_MASK = len(_SKETCH_HEX_PREFIXES) - 1
_TERM_HEX_PREFIXES = [b"%03x" % value for value in range(1 << TERM_BUCKET_BITS - 8)]


def sketch_buckets(tag_: bytes, sketch_keys: Iterable[int], bits: int = SKETCH_BUCKET_BITS) -> list[bytes]:
    """The buckets of sketch keys, named by the lowest ``bits`` of each."""
    if bits != SKETCH_BUCKET_BITS:
        prefix, mask = tag_ + b"s%d:" % bits, (1 << bits - 16) - 1
        return [
            prefix + _HEX_BYTES[value >> 16 & mask] + _HEX_BYTES[value >> 8 & 0xFF] + _HEX_BYTES[value & 0xFF]
            for value in sketch_keys
        ]
    prefix = tag_ + b"s"
    return [
        prefix + _SKETCH_HEX_PREFIXES[value >> 8 & _SKETCH_HEX_PREFIX_MASK] + _HEX_BYTES[value & 0xFF]
        for value in sketch_keys
    ]


def term_buckets(tag_: bytes, hashes: Iterable[int]) -> list[bytes]:
    """The buckets of terms (``term_hash``)."""
    prefix = tag_ + b"t"
    upper = TERM_REMAINDER_BITS + 8
    return [
        prefix + _TERM_HEX_PREFIXES[value >> upper] + _HEX_BYTES[value >> TERM_REMAINDER_BITS & 0xFF]
        for value in hashes
    ]


def id_hash(id_: str) -> bytes:
    """16 bytes: ids are untrusted text, which may be long or contain braces and newlines."""
    return xxhash.xxh3_128_digest(id_.encode("utf-8", "surrogatepass"))


def binding(id_: str) -> bytes:
    """Suffix of the binding of an id."""
    return BINDING + id_hash(id_)


@lru_cache(maxsize=4096)  # asked for three times per candidate, and articles of a batch share candidates
def state(number: int) -> bytes:
    """Suffix of the state of an article number."""
    return b"p" + number.to_bytes(8, "big")


def tombstone(first_version: int) -> bytes:
    """Suffix of the tombstone of a deleted canonical article."""
    return b"g" + first_version.to_bytes(8, "big")


def duplicate_ids(first_version: int) -> bytes:
    """Suffix of the id hashes of the duplicates of a canonical article."""
    return b"c" + first_version.to_bytes(8, "big")


def compaction_cursor(space: str) -> bytes:
    """Position of compaction in a space."""
    return b"{%s}upkeep" % space.encode()


def all_buckets(widths: Sequence[int], sketch_bits: int = SKETCH_BUCKET_BITS) -> Iterator[bytes]:
    """All buckets that a segment may have, without its tag, in a fixed order."""
    for block, width in enumerate(widths):
        yield from (block_bucket(b"", block, value) for value in range(1 << width))
    for start in range(0, 1 << sketch_bits, 1 << SKETCH_BUCKET_BITS):
        yield from sketch_buckets(b"", range(start, start + (1 << SKETCH_BUCKET_BITS)), sketch_bits)
    yield from (b"t%05x" % value for value in range(1 << TERM_BUCKET_BITS))


def record_prefix(space: str) -> bytes:
    """Common prefix of the records of a space."""
    return b"%s%s:" % (RECORD_PREFIX, space.encode())


@lru_cache(maxsize=4096)  # articles of a batch share candidates
def record(space: str, number: int) -> bytes:
    """Record of an article number."""
    return b"%s%s:%016x" % (RECORD_PREFIX, space.encode(), number)


def text(number: int) -> bytes:
    """Compressed text of an article number."""
    return b"%s%016x" % (TEXT_PREFIX, number)
