"""Editor overrides: what they cover, and when they expire."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from aggregator.domain import StreamItem, article_number_at
from aggregator.events.detection.model import HISTORY_MS, EditorOverrides, Mute

NOW_MS = 2 * HISTORY_MS
STORM, FERRY = (("storm", 1.0),), (("ferry", 1.0),)


@pytest.mark.parametrize(("now_ms", "scope"), [(99, "story"), (100, "story"), (101, None)])
def test_a_mute_ends_after_its_last_millisecond(now_ms: int, scope: str | None) -> None:
    """It covers similar events only."""
    overrides = EditorOverrides(mutes=(Mute("e1", "story", STORM, until_ms=100),))

    assert overrides.mute_scope(STORM, now_ms) == scope
    assert overrides.mute_scope(FERRY, now_ms) is None


def test_a_mute_without_end_covers_what_an_expired_one_did() -> None:
    """The first mute in force decides."""
    overrides = EditorOverrides(
        mutes=(Mute("e1", "story", STORM, until_ms=100), Mute("e2", "routine", STORM))
    )

    assert overrides.mute_scope(STORM, 100) == "story"
    assert overrides.mute_scope(STORM, 101) == "routine"


def test_a_removed_article_is_recognized_in_every_version() -> None:
    """An article stored anew under the same id after its deletion is another one."""
    item = StreamItem(number=30, first_version=10, id="a1", verdict="new", arrived_ms=0)
    overrides = EditorOverrides(placed={"a1": (10, ""), "a2": (10, "e1")})

    assert overrides.is_removed(item)
    assert overrides.is_removed(replace(item, number=40))
    assert not overrides.is_removed(replace(item, first_version=11))
    assert not overrides.is_removed(replace(item, id="a2"))


def test_an_action_drops_what_has_expired() -> None:
    """Exactly seven days old is still in force; the given overrides do not change."""
    edge_ms = NOW_MS - HISTORY_MS
    kept = EditorOverrides(
        revision=3,
        mutes=(Mute("e1", "story", STORM, until_ms=NOW_MS), Mute("e2", "routine", FERRY)),
        merges={"e3": ("e4", edge_ms)},
        placed={"a1": (article_number_at(edge_ms), "")},
    )
    given = msgspec.structs.replace(
        kept,
        mutes=(*kept.mutes, Mute("e5", "story", STORM, until_ms=NOW_MS - 1)),
        merges={**kept.merges, "e6": ("e4", edge_ms - 1)},
        placed={**kept.placed, "a2": (article_number_at(edge_ms - 1, 2**22 - 1), "e4")},
    )

    assert given.next_revision(NOW_MS) == msgspec.structs.replace(kept, revision=4)
    assert (len(given.mutes), len(given.merges), len(given.placed)) == (3, 2, 2)


def test_the_stored_format_is_the_order_of_the_fields() -> None:
    """Overrides of an earlier release are read again, with the mute's end as an optional last field."""
    stored = msgspec.msgpack.encode(
        [4, [["e1", "routine", [["storm", 1.0]]]], {"e2": ["e1", 7]}, {"a1": [9, ""]}]
    )

    assert msgspec.msgpack.decode(stored, type=EditorOverrides) == EditorOverrides(
        4, (Mute("e1", "routine", STORM),), {"e2": ("e1", 7)}, {"a1": (9, "")}
    )
