"""Editor actions on events, and their transfer to the detector's next version."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import Conflict, NotFound
from aggregator.events import newsroom
from aggregator.events.detection.model import MuteScope
from aggregator.events.detection.numbers import Item, items_of
from aggregator.events.event import EditorAction, Event
from aggregator.events.selection import is_handled
from aggregator_client.wire import ActionName
from tests.support.factories import EVENT_MS, event

STORM = event("e1", "Storm closes pier", ["a1", "a2", "a3"], headline_id="a1")
item_lists = st.lists(st.sampled_from(["a1", "a2", "a3", "a4"]), unique=True)


def act(
    action: ActionName, actor: str = "Ada", *, item: str | None = None, scope: MuteScope | None = None
) -> EditorAction:
    """An action on the event e1."""
    return EditorAction(action, actor, EVENT_MS, "e1", scope=scope, item=item)


def test_the_first_editor_remains_responsible() -> None:
    """A second acknowledgement changes nothing and is not recorded."""
    acknowledged = newsroom.apply_action(STORM, act("acknowledge", "Ada"))

    assert acknowledged.acknowledged_by == "Ada"
    assert acknowledged.actions == (act("acknowledge", "Ada"),)
    assert newsroom.apply_action(acknowledged, act("acknowledge", "Ben")) is acknowledged


def test_an_event_that_is_back_is_handled_again() -> None:
    """The same status is an action again, which can be undone; work of a colleague stays theirs."""
    published = replace(act("set_work_status", "Ada"), work_status="published", id=1)
    done = replace(newsroom.apply_action(STORM, published), needed=1, times=(EVENT_MS + 1,) * 3)
    later = replace(published, actor="Ben", at_ms=EVENT_MS + 2, id=2)
    again = newsroom.apply_action(done, later)
    undone = newsroom.apply_action(again, replace(act("undo"), of=2, at_ms=EVENT_MS + 3, id=3))
    taken = replace(act("set_work_status", "Ada"), work_status="on_it")
    on_it = newsroom.apply_action(newsroom.apply_action(done, act("acknowledge")), taken)

    assert (is_handled(done), is_handled(again), is_handled(undone)) == (False, True, False)
    assert [action.actor for action in again.actions] == ["Ada", "Ben"]
    assert newsroom.apply_action(again, later) is again
    assert newsroom.apply_action(on_it, replace(taken, actor="Ben")) is on_it


def test_an_acknowledgement_can_be_withdrawn() -> None:
    """Both actions are recorded; without an acknowledgement it changes nothing."""
    acknowledged = newsroom.apply_action(STORM, act("acknowledge", "Ada"))
    withdrawn = newsroom.apply_action(acknowledged, act("unacknowledge", "Ben"))

    assert withdrawn.acknowledged_by is None
    assert [a.action for a in withdrawn.actions] == ["acknowledge", "unacknowledge"]
    assert newsroom.apply_action(STORM, act("unacknowledge", "Ben")) is STORM


def test_a_false_alarm_keeps_the_wider_mute() -> None:
    """A muted routine stays one; "unmute" undoes both."""
    routine = newsroom.apply_action(STORM, act("mute", scope="routine"))
    alarm = newsroom.apply_action(routine, act("false_alarm"))
    undone = newsroom.apply_action(alarm, act("unmute"))

    assert (alarm.muted, alarm.false_alarm) == ("routine", True)
    assert newsroom.apply_action(STORM, act("false_alarm")).muted == "story"
    assert (undone.muted, undone.false_alarm) == (None, False)
    assert [action.action for action in undone.actions] == ["mute", "false_alarm", "unmute"]


def test_an_unlinked_event_begins_a_storyline() -> None:
    """The detector's next version keeps that; a translation becomes an event that may alert."""
    linked = replace(STORM, story_id="e0", translation_of="e0")
    unlinked = newsroom.apply_action(linked, act("unlink"))

    assert (unlinked.story_id, unlinked.translation_of) == ("e1", None)
    assert newsroom.rejoin(replace(linked, story_id=""), unlinked).story_id == "e1"
    assert newsroom.apply_action(unlinked, act("unlink")) is unlinked


@pytest.mark.parametrize("action", [act("unlink"), act("unmute")])
def test_an_action_without_effect_returns_the_same_event(action: EditorAction) -> None:
    """So the caller writes nothing."""
    assert newsroom.apply_action(STORM, action) is STORM


def test_a_merge_is_not_an_action_on_one_event() -> None:
    """The caller must use the function for two events."""
    with pytest.raises(ValueError, match="more than one event"):
        newsroom.apply_action(STORM, act("merge"))


def test_the_headline_leaves_with_its_article() -> None:
    """The key terms replace it; the removal of another article keeps it."""
    without_headline = newsroom.remove_items(STORM, ["a1"])
    without_other = newsroom.remove_items(STORM, ["a2"])

    assert (without_headline.title, without_headline.headline_id) == ("harbour, bridge", "")
    assert (without_other.title, without_other.headline_id) == (STORM.title, "a1")
    assert (without_other.items, without_other.size, without_other.removed) == (("a1", "a3"), 2, ("a2",))


def test_the_headline_returns_with_its_article() -> None:
    """Also if the event got another one meanwhile, unless an editor chose it."""
    left = replace(act("remove_item"), headline=("a1", STORM.title, False))
    gone, items = newsroom.remove_items(STORM, ["a1"]), {"a1": items_of(STORM)["a1"]}
    other = replace(gone, headline_id="a2", title="Pier closed")

    assert newsroom.restore_items(gone, items, left).title == STORM.title
    assert newsroom.restore_items(other, items, left).headline_id == "a1"
    chosen = newsroom.apply_action(gone, act("choose_headline", item="a2"), "Pier closed")
    assert newsroom.restore_items(chosen, items, left).headline_id == "a2"
    assert newsroom.restore_items(gone, {"a9": items["a1"]}, left).headline_id == ""


@given(item_lists, item_lists)
def test_a_common_item_counts_once(items: list[str], other_items: list[str]) -> None:
    """The size is that of the union, and every item keeps a cosine."""
    merged = newsroom.merge_into(event("e1", "Storm", items), event("e2", "Wind", other_items))

    assert merged.size == len({*items, *other_items}) == len(merged.items) == len(merged.cosines)
    assert merged.items[: len(items)] == tuple(items)


def test_items_beyond_the_limit_only_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items that are not listed count although it is unknown which they are."""
    monkeypatch.setattr(newsroom, "MAX_EVENT_ITEMS", 3)
    other = replace(event("e2", "Wind", ["a3", "a4"]), times=(EVENT_MS,) * 10)

    merged = newsroom.merge_into(STORM, other)

    assert (merged.items, merged.size) == (("a1", "a2", "a3"), 3 + 10 - 1)


def test_a_merge_closes_the_absorbed_event() -> None:
    """Both record the action; the survivor has times, outlets and intervals of both."""
    wind = event(
        "e2",
        "Wind",
        ["a4", "a5"],
        sources=("two.example", "three.example"),
        absorbed=("e3",),
        times=(EVENT_MS, EVENT_MS + 9),
        expected=1.5,
    )
    merge = EditorAction("merge", "Ada", EVENT_MS, "e2", into="e1")

    survivor, absorbed = newsroom.merge_events(STORM, wind, merge)

    assert (absorbed.status, absorbed.merged_into, absorbed.actions) == ("closed", "e1", (merge,))
    assert (survivor.absorbed, survivor.actions, survivor.last_seen_ms) == (
        ("e2", "e3"),
        (merge,),
        EVENT_MS + 9,
    )
    assert survivor.sources == ("one.example", "two.example", "three.example")
    hour_before = (EVENT_MS - 3_600_000) // 600_000 * 600_000
    assert survivor.timeline == ((hour_before, 1), (hour_before + 3_600_000, 4))
    assert (survivor.rate, survivor.peak, survivor.expected) == (4, 5, 1.5)
    assert (survivor.status, survivor.title) == ("breaking", STORM.title)


def test_the_detectors_version_is_corrected_by_what_editors_did() -> None:
    """Its own counts are new, a merged event is absorbed again, and a removed article is removed again."""
    saved = replace(
        STORM, acknowledged_by="Ada", muted="story", removed=("a2",), actions=(act("mute"),), revision=7
    )
    detected = event("e1", "Storm grows", ["a1", "a2", "a5"], headline_id="a5")

    carried = newsroom.rejoin(detected, saved, [event("e2", "Wind", ["a4"])])

    assert (carried.items, carried.title, carried.size) == (("a1", "a5", "a4"), "Storm grows", 3)
    assert (carried.acknowledged_by, carried.muted, carried.removed) == ("Ada", "story", ("a2",))
    assert (carried.actions, carried.revision, carried.absorbed) == ((act("mute"),), 7, ("e2",))


def test_nothing_is_carried_from_an_untouched_event() -> None:
    """The detector's version remains as it is."""
    detected = event("e1", "Storm grows", ["a1"])

    assert newsroom.rejoin(detected, STORM) == detected


def note(text: str, actor: str = "Ada", at_ms: int = EVENT_MS) -> EditorAction:
    """A note on the event e1."""
    return EditorAction("note", actor, at_ms, "e1", text=text)


def test_a_note_is_kept_once_and_the_audit_trail_does_not_repeat_it() -> None:
    """A repeated request adds nothing; ids increase also after a deletion."""
    first = newsroom.apply_action(STORM, note("Called the harbour office."))
    both = newsroom.apply_action(first, note("They confirm."))
    deleted = newsroom.apply_action(both, replace(act("delete_note"), note=both.notes[1].id))
    third = newsroom.apply_action(replace(deleted, revision=9), note("New picture."))

    assert [(n.actor, n.at_ms, n.text) for n in both.notes] == [
        ("Ada", EVENT_MS, "Called the harbour office."),
        ("Ada", EVENT_MS, "They confirm."),
    ]
    assert newsroom.apply_action(both, note("They confirm.")) is both
    assert [action.text for action in both.actions] == [None, None]
    assert deleted.notes == first.notes
    assert third.notes[-1].id > both.notes[1].id
    with pytest.raises(NotFound):
        newsroom.apply_action(deleted, replace(act("delete_note"), note=both.notes[1].id))


def test_a_deleted_note_is_restored() -> None:
    """Where it was, with its author and time; the undoing can itself be undone, and an added one leaves."""
    both = STORM
    for n, text in enumerate(("Called.", "They confirm."), start=1):
        both = newsroom.apply_action(both, replace(note(text, at_ms=EVENT_MS + n), id=n))
    gone = newsroom.apply_action(both, replace(act("delete_note", "Ben"), note=both.notes[0].id, id=3))
    more = newsroom.apply_action(replace(gone, revision=9), replace(note("Later.", at_ms=EVENT_MS + 4), id=4))
    back = newsroom.apply_action(more, replace(act("undo"), of=3, id=5))
    again = newsroom.apply_action(back, replace(act("undo"), of=5, id=6))
    without = newsroom.apply_action(back, replace(act("undo"), of=4, id=7))

    assert list(newsroom.undoable_actions(more)) == [4, 3, 2]  # the first note was deleted since
    assert back.notes == (*both.notes, more.notes[-1])
    assert again.notes == more.notes
    assert without.notes == both.notes


def test_notes_and_audit_trail_are_limited() -> None:
    """A note beyond either limit is refused with what to do; the oldest actions are dropped."""
    many, long = STORM, newsroom.apply_action(STORM, note("é" * 2000))
    for n in range(newsroom.MAX_NOTES):
        many = newsroom.apply_action(many, note(f"Note {n}"))
    while sum(len(n.text.encode()) for n in long.notes) <= newsroom.MAX_NOTES_BYTES - 4000:
        long = newsroom.apply_action(long, note("é" * 2000, f"Ada {len(long.notes)}"))
    with pytest.raises(Conflict, match="100 notes"):
        newsroom.apply_action(many, note("One more"))
    with pytest.raises(Conflict, match="32000 bytes"):
        newsroom.apply_action(long, note("é" * 100))

    toggled = STORM
    for _ in range(newsroom.MAX_ACTIONS):
        toggled = newsroom.apply_action(newsroom.apply_action(toggled, act("mute")), act("unmute"))
    assert len(toggled.actions) == newsroom.MAX_ACTIONS


def test_the_editor_who_begins_work_takes_the_event() -> None:
    """Unless it is assigned to somebody already; "" assigns it to nobody."""
    taken = newsroom.apply_action(STORM, replace(act("set_work_status"), work_status="on_it"))
    given = newsroom.apply_action(STORM, replace(act("assign"), assignee="Ben"))
    both = newsroom.apply_action(given, replace(act("set_work_status"), work_status="on_it"))
    free = newsroom.apply_action(both, replace(act("assign"), assignee=""))

    assert (taken.assignee, taken.work_status) == ("Ada", "on_it")
    assert (both.assignee, both.work_status) == ("Ben", "on_it")
    assert (free.assignee, free.work_status) == ("", "on_it")


def test_a_chosen_headline_survives_the_detector_and_can_be_undone() -> None:
    """The automatic headline, which the detector may have changed, returns."""
    chosen = newsroom.apply_action(STORM, act("choose_headline", item="a2"), "Pier closed until Monday")
    detected = replace(STORM, title="Storm grows", headline_id="a3")
    carried = newsroom.rejoin(detected, chosen)
    undone = newsroom.apply_action(carried, act("choose_headline"))

    assert (chosen.title, chosen.headline_id) == ("Pier closed until Monday", "a2")
    assert (carried.title, carried.headline_id) == ("Pier closed until Monday", "a2")
    assert (undone.title, undone.headline_id, undone.chosen_headline) == ("Storm grows", "a3", None)
    assert [action.item for action in undone.actions] == ["a2", None]
    gone = replace(detected, items=("a1", "a3"))
    assert newsroom.rejoin(gone, chosen).title == "Storm grows"


def test_a_choice_of_a_headline_is_undone() -> None:
    """The choice before returns, or the automatic headline of now; a choice without its article does not."""
    first = newsroom.apply_action(STORM, replace(act("choose_headline", item="a2"), id=1), "Pier closed")
    second = newsroom.apply_action(first, replace(act("choose_headline", item="a3"), id=2), "Ferries wait")
    back = newsroom.apply_action(second, replace(act("undo"), of=2))
    again = newsroom.rejoin(replace(STORM, title="Storm grows", headline_id="a3"), first)
    automatic = newsroom.apply_action(again, replace(act("undo"), of=1))
    gone = newsroom.apply_action(newsroom.remove_items(second, ["a2"]), replace(act("undo"), of=2))

    assert newsroom.undoable_actions(second).keys() == {2}
    assert (back.title, back.headline_id, back.chosen_headline) == (
        "Pier closed",
        "a2",
        first.chosen_headline,
    )
    assert (automatic.title, automatic.headline_id, automatic.chosen_headline) == ("Storm grows", "a3", None)
    assert (gone.title, gone.chosen_headline) == (STORM.title, None)


def test_a_chosen_headline_leaves_with_its_article() -> None:
    """And the automatic one must not return after its article was removed."""
    chosen = newsroom.apply_action(STORM, act("choose_headline", item="a2"), "Pier closed until Monday")

    without_chosen = newsroom.remove_items(chosen, ["a2"])
    without_automatic = newsroom.remove_items(chosen, ["a1"])
    without_both = newsroom.remove_items(without_automatic, ["a2"])

    assert (without_chosen.title, without_chosen.headline_id) == (STORM.title, "a1")
    assert (without_automatic.title, without_automatic.headline_id) == ("Pier closed until Monday", "a2")
    assert (without_both.title, without_both.headline_id) == ("harbour, bridge", "")
    assert STORM.title not in str(without_both)


def test_a_merge_keeps_the_notes_and_the_assignment_of_both() -> None:
    """In order of time with distinct ids; the survivor's own assignment takes precedence."""
    into = newsroom.apply_action(STORM, note("Second.", at_ms=EVENT_MS + 2))
    other = event("e2", "Wind", ["a4"])
    other = newsroom.apply_action(other, note("First.", "Ben", EVENT_MS + 1))
    other = newsroom.apply_action(other, replace(act("set_work_status"), work_status="on_it"))
    merge = EditorAction("merge", "Ada", EVENT_MS + 3, "e2", into="e1")

    survivor, _ = newsroom.merge_events(into, other, merge)
    assigned, _ = newsroom.merge_events(replace(into, assignee="Cem"), other, merge)

    assert [n.text for n in survivor.notes] == ["First.", "Second."]
    assert len({n.id for n in survivor.notes}) == 2
    assert (survivor.assignee, survivor.work_status) == ("Ada", "on_it")
    assert (assigned.assignee, assigned.work_status) == ("Cem", "open")


def test_the_history_of_a_merge_is_in_order_and_leaves_with_it() -> None:
    """What was done to the absorbed event is not said of the survivor once the merge is undone."""
    wind = event("e2", "Wind", ["a4"], headline_id="a4")
    steps: list[tuple[Event, int, ActionName]] = [
        (STORM, 1, "mute"),
        (wind, 2, "false_alarm"),
        (STORM, 3, "unmute"),
        (wind, 4, "unmute"),
    ]
    acts = [EditorAction(name, "Ada", EVENT_MS + at, e.id, id=at) for e, at, name in steps]
    moved = EditorAction("move_items", "Ada", EVENT_MS + 5, "e2", into="e1", items=("a3",), id=5)
    own, theirs = (*acts[::2], moved), (*acts[1::2], moved)
    merge = EditorAction("merge", "Ada", EVENT_MS + 6, "e2", into="e1", id=6)

    merged, absorbed = newsroom.merge_events(
        replace(STORM, actions=own[:2]), replace(wind, actions=theirs), merge
    )
    note = EditorAction("note", "Ada", EVENT_MS + 7, "e1", id=7)
    renamed = EditorAction("choose_headline", "", EVENT_MS + 6, "e1", item="a4", id=8)
    told = newsroom.record_action(newsroom.record_action(merged, note), renamed)
    after, _ = newsroom.separate(told, absorbed, merge)
    published, _ = newsroom.separate(replace(told, work_status="published"), absorbed, merge)

    assert [action.id for action in merged.actions] == [1, 2, 3, 4, 5, 6]
    assert [action.id for action in after.actions] == [1, 3, 5, 6, 7]
    assert [action.id for action in published.actions] == [1, 3, 5, 6, 7, 8]


def test_what_was_before_an_undone_action_can_be_undone() -> None:
    """And the undoing itself; not once that is undone."""

    def undoable(event: Event) -> list[int]:
        return sorted(newsroom.undoable_actions(event))

    storm = STORM
    for at, name, of in ((1, "mute", None), (2, "false_alarm", None), (3, "undo", 2)):
        act = EditorAction(name, "Ada", EVENT_MS + at, "e1", of=of, id=at)  # type: ignore[arg-type]
        storm = newsroom.apply_action(storm, act)
    assert undoable(storm) == [1, 3]
    storm = newsroom.apply_action(storm, EditorAction("undo", "Ada", EVENT_MS + 4, "e1", of=3, id=4))
    assert (storm.false_alarm, undoable(storm)) == (True, [1, 4])


def test_what_an_editor_merges_is_not_doubtful() -> None:
    """In either event, and in each later version of the detector; what the survivor doubted stays so."""
    wind = event("e2", "Wind", ["b1", "b2"], doubtful=("b1",))
    merge = EditorAction("merge", "Ada", EVENT_MS, "e2", into="e1")
    survivor, absorbed = newsroom.merge_events(replace(STORM, doubtful=STORM.items[:1]), wind, merge)
    again = replace(survivor, doubtful=survivor.items)

    assert survivor.doubtful == STORM.items[:1]
    assert absorbed.actions[-1].held.keys() == {"b1"}
    assert newsroom.rejoin(again, survivor, [wind]).doubtful == STORM.items


def test_an_earlier_article_that_an_editor_adds_is_the_first() -> None:
    """Of header and box alike; none is where the first one is not certain, or a doubtful one returns."""
    late, early = (EVENT_MS, "a", "A"), Item(1.0, EVENT_MS - 10**8, "B")
    told = replace(event("e1", "Quake", ["a"]), first=late)
    added = newsroom.add_items(told, {"b": early})
    assert added.first == (added.first_seen_ms, "b", "B")
    assert newsroom.rejoin(told, added).first == added.first
    again = newsroom.remove_items(added, ["b"])  # as undone
    assert again.first is not None and again.first[:2] == (again.first_seen_ms, "a")
    assert newsroom.remove_items(told, ["a"]).first is None
    assert newsroom.add_items(told, {"b": early._replace(doubtful=True)}).first == late
    assert newsroom.add_items(told, {"0": early._replace(at_ms=EVENT_MS)}).first == late
    assert newsroom.add_items(replace(told, first=None), {"b": early}).first is None
    assert newsroom.add_items(newsroom.split_off(told, act("move_items")), {"b": early}).first == added.first


def test_what_editors_kept_apart_is_known_by_the_history() -> None:
    """A split, a merge or move that was undone, and a storyline left; in both directions."""
    other = event("e2", "Wind", ["b1"], story_id="s2")
    split = EditorAction("move_items", "Ada", EVENT_MS, "e1", items=("a1",))
    split = replace(split, into=newsroom.split_off(STORM, split).id)
    merge = EditorAction("merge", "Ada", EVENT_MS, "e2", into="e1", id=7)
    undo = EditorAction("undo", "Ada", EVENT_MS, "e1", of=7, id=8)
    unlink = EditorAction("unlink", "Ada", EVENT_MS, "e1", before={"story_id": "s2"})
    new = replace(other, id=split.into or "")

    assert newsroom.are_apart(replace(STORM, actions=(split,)), new)
    assert newsroom.are_apart(other, replace(STORM, actions=(merge, undo)))
    assert newsroom.are_apart(replace(STORM, actions=(unlink,)), other)
    assert not newsroom.are_apart(replace(STORM, actions=(merge,)), other)
