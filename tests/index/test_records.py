"""Records in the store: reading, inserting under fresh numbers, replacing and deleting."""

import numpy as np

from aggregator.domain import ArticleRecord, Sketch
from aggregator.index import keys
from aggregator.index.records import Records
from aggregator.store.base import Store
from tests.support.store_steps import scan

SPACE = "en.0001"


def record(number: int, title: str = "Ferry departs") -> ArticleRecord:
    """A stored version."""
    sketch = Sketch(3, np.array([1, 2, 3], np.uint32), np.array([True, False, True]))
    return ArticleRecord(
        number, number, f"a{number}", SPACE, "en", 1, b"h" * 16, False, title, "", "", None, sketch
    )


async def test_inserted_records_are_read_by_number(store: Store) -> None:
    """Absent ones are left out, also those of the same number in another space."""
    records = Records(store)

    assert await records.insert([record(1), record(2)], {}) == set()

    found = await records.read({2: SPACE, 3: SPACE, 1: "de.0001"})
    assert {number: read.id for number, read in found.items()} == {2: "a2"}
    assert await records.read({}) == {}


async def test_a_taken_number_keeps_its_record_and_text(store: Store) -> None:
    """Two processes may choose one number; the second learns it, and its other articles are written."""
    records = Records(store)
    await records.insert([record(1, "First")], {1: b"first"})

    taken = await records.insert([record(1, "Second"), record(2)], {1: b"second", 2: b"other"})

    assert taken == {1}
    assert (await records.read({1: SPACE}))[1].title == "First"
    assert [await records.read_text(n) for n in (1, 2, 3)] == [b"first", b"other", None]


async def test_a_replaced_record_keeps_its_text(store: Store) -> None:
    """Newer metadata does not change the text."""
    records = Records(store)
    await records.insert([record(1)], {1: b"text"})

    await records.replace(record(1, "Ferry departs late"))

    assert (await records.read({1: SPACE}))[1].title == "Ferry departs late"
    assert await records.read_text(1) == b"text"


async def test_deleted_records_leave_nothing(store: Store) -> None:
    """Record and text; other versions stay, and deleting an absent one is allowed."""
    records = Records(store)
    await records.insert([record(1), record(2)], {1: b"one", 2: b"two"})

    await records.delete({1: SPACE, 9: SPACE})

    assert await scan(store, b"r:") == [keys.record(SPACE, 2)]
    assert await scan(store, b"x:") == [keys.text(2)]
