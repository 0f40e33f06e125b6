"""What is written down of an article can be read again: in this format, and in the one before it."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import Match, Outcome, Record, Sketch
from aggregator.errors import StoreUnavailable
from aggregator.overlap import BANDS, COARSE_BITS, bands, compare, sketch
from aggregator.store.records import Binding, decode_binding, decode_record, encode_binding, encode_record
from aggregator.store.samples import packed, unpacked

# A record of format 1, as the version before wrote it: a plain uint32 sample.
OLD = bytes.fromhex(
    "01dc00110705a4706f7274a7656e2e30303031a2656ecf0123456789abcdefc410000102030405060708090a"
    "0b0c0d0e0fc2aa506f7274206f70656e73b868747470733a2f2f6578616d706c652e6f72672f706f7274a745"
    "78616d706c65c002c4087da5211c1eef679ead686172626f75720a6372616e65c402ff66c40411000000"
)


def record(sample: Sketch) -> Record:
    """An article with this sample."""
    return Record(
        number=7, first=5, id="port", space="en.0001", lang="en", fingerprint=0x0123456789ABCDEF,
        text_hash=bytes(range(16)), short=False, title="Port opens", url="https://example.org/port",
        source="Example", published_at_ms=None, sketch=sample, terms=(("harbour", 1.0), ("crane", 0.4)),
        figures=(17,),
    )  # fmt: skip


@given(st.sets(st.integers(0, 2**32 - 1), max_size=200))
def test_packed_samples_keep_bands_and_upper_bits(values: set[int]) -> None:
    """The first eight hashes come back whole, the others without their lowest bits."""
    sample = np.array(sorted(values), np.uint32)
    again = unpacked(packed(sample))
    assert again.dtype == np.uint32
    assert again[:BANDS].tolist() == sample[:BANDS].tolist()
    assert (again >> COARSE_BITS).tolist() == (sample >> COARSE_BITS).tolist()


def test_the_packed_form_is_pinned() -> None:
    """Stores are read by later versions: eight whole hashes, a gap of three steps, a long one, one of none."""
    sample = np.array(
        [*range(1, 9), 3 << 10, (3 + 0xFFFF + 2) << 10, ((3 + 0xFFFF + 2) << 10) + 9], np.uint32
    )
    whole = b"".join(n.to_bytes(4, "little") for n in range(1, 9))
    assert packed(sample) == whole + bytes.fromhex("0300ffff02000000")


def test_an_article_takes_two_bytes_a_hash() -> None:
    """Of a text of 800 words the sample fits into 2.3 bytes a hash."""
    made = sketch([f"word{n}" for n in range(800)])
    assert len(packed(made.sample)) < 2.3 * len(made.sample)


def test_stored_samples_compare_as_fresh_ones() -> None:
    """An article and its stored form say the same of a third, and have the same bands."""
    first, second = sketch([f"word{n}" for n in range(900)]), sketch([f"word{n}" for n in range(500, 1400)])
    stored = decode_record(encode_record(record(first))).sketch
    assert compare(stored, second) == compare(first, second)
    assert bands(stored) == bands(first)


def test_records_of_the_former_format_are_read() -> None:
    """A store that was filled by the version before needs no conversion."""
    made = record(sketch(["nine", "ships", "called", "today"]))
    read = decode_record(OLD)
    assert read.sketch.sample.tolist() == made.sketch.sample.tolist()
    assert read.terms[0] == ("harbour", 1.0) and read.terms[1] == ("crane", pytest.approx(0.4))
    others = [f.name for f in fields(Record) if f.name not in ("sketch", "terms")]
    assert [getattr(read, name) for name in others] == [getattr(made, name) for name in others]


@pytest.mark.parametrize("first", [5, 7])
def test_the_first_version_of_a_record_is_kept(first: int) -> None:
    """Whether it is this one or an earlier one."""
    written = encode_record(replace(record(sketch(["one"])), first=first))
    assert (decode_record(written).number, decode_record(written).first) == (7, first)


def test_a_foreign_format_is_refused() -> None:
    """A record of a later version is not guessed at."""
    with pytest.raises(StoreUnavailable, match="format 09, this version reads 02 and 01"):
        decode_record(b"\x09" + encode_record(record(sketch(["one"])))[1:])


def test_a_damaged_sample_is_refused() -> None:
    """Bytes that end within a number are damage, not a shorter sample."""
    with pytest.raises(ValueError, match="buffer size"):
        unpacked(packed(np.arange(0, 2**20, 2**12, dtype=np.uint32))[:-1])


def test_a_record_with_a_damaged_sample_is_one_clear_error() -> None:
    """Callers meet the store's error, whichever part of a record is damaged."""
    whole = encode_record(record(sketch(["one", "two", "three", "four"])))
    sample = packed(sketch(["one", "two", "three", "four"]).sample)
    cut = whole.replace(bytes([len(sample)]) + sample, bytes([len(sample) - 1]) + sample[:-1])
    assert cut != whole
    with pytest.raises(StoreUnavailable, match=r"A record in the store is damaged \(buffer size"):
        decode_record(cut)


OLD_BINDING = bytes.fromhex(
    "01950705c41068686868686868686868686868686868a47175617984a776657264696374a96475706c696361"
    "7465a864697374616e636502a56d6174636887a26964a470696572a66e756d62657204ac63616e6f6e696361"
    "6c5f6964a4706f7274af63616e6f6e6963616c5f666972737403a864697374616e636502a76f7665726c6170"
    "cb3fedc28f5c28f5c3a472756c65a76f7665726c6170af757064617465645f66696775726573c3"
)
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


def test_bindings_of_the_former_format_are_read() -> None:
    """The version before wrote the names of the outcome's fields."""
    assert decode_binding(OLD_BINDING) == Binding(7, 5, b"h" * 16, "quay", MATCHED)
