"""What is written down of an article can be read again, and that of another format is refused."""

from dataclasses import fields, replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.shingles import (
    IGNORED_LOW_BITS,
    MAX_SKETCH_KEYS,
    build_sketch,
    estimate_overlap,
    sketch_keys,
)
from aggregator.domain import ArticleRecord, Match, Outcome, Sketch
from aggregator.errors import StoreUnavailable
from aggregator.index.codec.records import (
    Binding,
    decode_binding,
    decode_record,
    encode_binding,
    encode_record,
)
from aggregator.index.codec.sketches import decode_sketch_sample, encode_sketch_sample

PINNED_RECORD = bytes.fromhex(
    "039b05a2656ecf0123456789abcdefc410000102030405060708090a0b0c0d0e0fc2c002c40b020012bea78f"
    "5843898909c402ff66c4041100000095a4706f7274aa506f7274206f70656e73b868747470733a2f2f657861"
    "6d706c652e6f72672f706f7274a74578616d706c65ad686172626f75720a6372616e65"
)


def record(sample: Sketch) -> ArticleRecord:
    """An article with this sample."""
    return ArticleRecord(
        number=7, first_version=5, id="port", space="en.0001", lang="en", fingerprint=0x0123456789ABCDEF,
        text_hash=bytes(range(16)), short=False, title="Port opens", url="https://example.org/port",
        source="Example", published_at_ms=None, sketch=sample, terms=(("harbour", 1.0), ("crane", 0.4)),
        figures=(17,),
    )  # fmt: skip


@given(st.sets(st.integers(0, 2**32 - 1), max_size=200))
def test_packed_samples_keep_bands_and_upper_bits(values: set[int]) -> None:
    """The first eight hashes come back whole, the others without their lowest bits."""
    sample = np.array(sorted(values), np.uint32)
    again = decode_sketch_sample(encode_sketch_sample(sample))
    assert again.dtype == np.uint32
    assert again[:MAX_SKETCH_KEYS].tolist() == sample[:MAX_SKETCH_KEYS].tolist()
    assert (again >> IGNORED_LOW_BITS).tolist() == (sample >> IGNORED_LOW_BITS).tolist()


def test_the_packed_form_is_pinned() -> None:
    """Stores are read by later versions: what eight whole hashes and two gaps are written as."""
    sample = np.array([*range(1, 9), 3 << 12, 40 << 12], np.uint32)
    count, k = b"\x0a\x00", b"\x02"  # the mean gap is 4 steps
    fine = "".join(f"{n:012b}"[::-1] for n in range(1, 9))
    lower, above = "00" * 8 + "11" + "10", "1" * 8 + "1" + "0" * 9 + "1"  # of gaps 0, 3 and 37
    bits = fine + lower + above
    bits += "0" * (-len(bits) % 8)
    assert encode_sketch_sample(sample) == count + k + int(bits, 2).to_bytes(len(bits) // 8, "big")
    assert encode_sketch_sample(sample[:0]) == b""


def test_an_article_takes_twelve_bits_a_hash() -> None:
    """Of a text of 800 words, and twelve more for each of the eight that are kept whole."""
    made = build_sketch([f"word{n}" for n in range(800)])
    assert len(encode_sketch_sample(made.sample)) - MAX_SKETCH_KEYS * IGNORED_LOW_BITS / 8 < 12.1 / 8 * len(
        made.sample
    )


def test_stored_samples_compare_as_fresh_ones() -> None:
    """An article and its stored form say the same of a third, and have the same bands."""
    first, second = (
        build_sketch([f"word{n}" for n in range(900)]),
        build_sketch([f"word{n}" for n in range(500, 1400)]),
    )
    stored = decode_record(encode_record(record(first)), "en.0001", 7).sketch
    assert estimate_overlap(stored, second) == estimate_overlap(first, second)
    assert sketch_keys(stored) == sketch_keys(first)


def test_the_form_of_records_is_pinned() -> None:
    """Short texts stand as they are; number and space are the key's to say."""
    made = record(build_sketch(["nine", "ships", "called", "today"]))
    assert encode_record(made).hex() == PINNED_RECORD.hex()
    read = decode_record(PINNED_RECORD, "en.0001", 7)
    assert read.sketch.sample.tolist() == made.sketch.sample.tolist()
    assert read.terms[0] == ("harbour", 1.0) and read.terms[1] == ("crane", pytest.approx(0.4))
    others = [f.name for f in fields(ArticleRecord) if f.name not in ("sketch", "terms")]
    assert [getattr(read, name) for name in others] == [getattr(made, name) for name in others]


@given(st.lists(st.text(), min_size=4, max_size=4), st.integers(0, 40))
def test_texts_come_back_as_they_were(texts: list[str], times: int) -> None:
    """Whatever strangers wrote, short or long enough to be compressed."""
    names = ("id", "title", "url", "source")
    made = replace(record(build_sketch(["one"])), **{n: t * times for n, t in zip(names, texts, strict=True)})
    read = decode_record(encode_record(made), "en.0001", 7)
    assert [getattr(read, name) for name in names] == [getattr(made, name) for name in names]


def test_a_headline_that_stands_in_its_address_is_kept_once() -> None:
    """Texts are compressed together; what is cut off of that is damage."""
    title = "Harbour cranes stand still after the storm, and nobody says for how long they will"
    made = replace(
        record(build_sketch(["one"])), title=title, url="https://example.org/" + title.replace(" ", "-")
    )
    data = encode_record(made)
    assert len(data) < len(encode_record(replace(made, title="", url=""))) + 1.6 * len(title)
    texts = next(part for part in msgspec.msgpack.decode(data[1:])[::-1] if isinstance(part, bytes))
    cut = data.replace(bytes([0xC4, len(texts)]) + texts, bytes([0xC4, len(texts) - 1]) + texts[:-1])
    assert cut != data
    with pytest.raises(StoreUnavailable, match="A record in the store is damaged"):
        decode_record(cut, "en.0001", 7)


@pytest.mark.parametrize("first", [5, 7])
def test_the_first_version_of_a_record_is_kept(first: int) -> None:
    """Whether it is this one or an earlier one."""
    written = encode_record(replace(record(build_sketch(["one"])), first_version=first))
    read = decode_record(written, "en.0001", 7)
    assert (read.number, read.first_version) == (7, first)


@pytest.mark.parametrize("format_", ["01", "02", "09"])
def test_another_format_is_refused(format_: str) -> None:
    """A record of an earlier or later version is not guessed at."""
    with pytest.raises(StoreUnavailable, match=f"format {format_}, this version reads 03"):
        decode_record(bytes.fromhex(format_) + encode_record(record(build_sketch(["one"])))[1:], "en.0001", 7)


def test_a_damaged_sample_is_refused() -> None:
    """Bytes that end within a number, or hold one too many, are damage, not another sample."""
    whole = encode_sketch_sample(np.arange(0, 2**22, 2**14, dtype=np.uint32))
    for torn in (whole[:-1], whole[:2], whole + b"\x80", b"\xff" * len(whole)):
        with pytest.raises(ValueError, match=r"a sample|unpack_from"):
            decode_sketch_sample(torn)


def test_a_record_with_a_damaged_sample_is_one_clear_error() -> None:
    """Callers meet the store's error, whichever part of a record is damaged."""
    whole = encode_record(record(build_sketch(["one", "two", "three", "four"])))
    sample = encode_sketch_sample(build_sketch(["one", "two", "three", "four"]).sample)
    cut = whole.replace(bytes([len(sample)]) + sample, bytes([len(sample) - 1]) + sample[:-1])
    assert cut != whole
    with pytest.raises(StoreUnavailable, match=r"A record in the store is damaged \(a sample ends"):
        decode_record(cut, "en.0001", 7)


PINNED = (
    "029807c0c41068686868686868686868686868686868a471756179a96475706c696361746502c397a4706965"
    "7204a4706f72740302cb3fedc28f5c28f5c3a76f7665726c6170"
)
MATCHED = Outcome("duplicate", 2, Match("pier", 4, "port", 3, 2, 0.93, "overlap"), True)


@pytest.mark.parametrize("first", [5, 7])
@pytest.mark.parametrize(
    "outcome",
    [
        Outcome("new"),
        Outcome("related", 6, None, True),
        MATCHED,
        Outcome("duplicate", 0, Match("port", 3, "port", 3, 0, None, "exact")),
    ],
)
def test_bindings_come_back_as_they_were(first: int, outcome: Outcome) -> None:
    """Every kind of decision, in a first version and in a later one."""
    binding = Binding(7, first, b"h" * 16, "quay", outcome)
    assert decode_binding(encode_binding(binding)) == binding


def test_the_form_of_bindings_is_pinned() -> None:
    """A first version is not told twice which number it has."""
    data = encode_binding(Binding(7, 7, b"h" * 16, "quay", MATCHED))
    assert data.hex() == PINNED


def test_bindings_of_the_first_format_are_refused() -> None:
    """Their store is not taken at the start; who meets one all the same does not guess."""
    with pytest.raises(StoreUnavailable, match="format 01, this version reads 02"):
        decode_binding(b"\x01" + encode_binding(Binding(7, 5, b"h" * 16, "quay", MATCHED))[1:])
