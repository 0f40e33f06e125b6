"""Notes of editors on an event, and its audit trail: both limited in number and bytes. Pure.

An event is read and written as one value, so neither may grow without limit. A note beyond the limits is
refused, because an editor relies on it; of the audit trail the oldest entries are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count

from aggregator.errors import Conflict, NotFound
from aggregator.events.detection.model import EditorAction, Note

MAX_NOTES = 100
MAX_NOTES_BYTES = 32_000  # of the texts of all notes of an event, in UTF-8
MAX_ACTIONS = 300


def add_note(notes: tuple[Note, ...], action: EditorAction, revision: int) -> tuple[Note, ...]:
    """Return the notes with the text of ``action``; the same ones if the last note is the same.

    A repeated request thus adds one note. ``revision``: of the event; a note's id is greater. Raises Conflict
    when the event has too many notes, or too long ones.
    """
    text = action.text or ""
    if notes and (notes[-1].actor, notes[-1].text) == (action.actor, text):
        return notes
    if len(notes) >= MAX_NOTES:
        raise Conflict(f"text: the event has {MAX_NOTES} notes, which is the limit; delete one first.")
    used = _text_bytes(notes)
    if used + len(text.encode()) > MAX_NOTES_BYTES:
        raise Conflict(
            f"text: the notes of the event have {used} of at most {MAX_NOTES_BYTES} bytes; "
            "shorten the note, or delete one first."
        )
    id_ = max(revision, *(note.id for note in notes)) + 1 if notes else revision + 1
    return (*notes, Note(id_, action.actor, action.at_ms, text))


def delete_note(notes: tuple[Note, ...], note_id: int | None) -> tuple[Note, ...]:
    """Return the notes without one. Raises NotFound."""
    kept = tuple(note for note in notes if note.id != note_id)
    if len(kept) == len(notes):
        raise NotFound(f"note: the event has no note {note_id}; it may have been deleted.")
    return kept


def merge_notes(into: tuple[Note, ...], absorbed: tuple[Note, ...]) -> tuple[Note, ...]:
    """Return the notes of two events in order of time, the newest within the limits, with distinct ids."""
    if not absorbed:
        return into
    kept: list[Note] = []
    for note in sorted((*into, *absorbed), key=lambda n: n.at_ms, reverse=True):
        if len(kept) == MAX_NOTES or _text_bytes((*kept, note)) > MAX_NOTES_BYTES:
            break
        kept.append(note)
    own = set(into)
    free_ids = count(max(note.id for note in (*into, *absorbed)) + 1)
    return tuple(note if note in own else replace(note, id=next(free_ids)) for note in reversed(kept))


def append_action(actions: Iterable[EditorAction], action: EditorAction) -> tuple[EditorAction, ...]:
    """Return the audit trail with one more entry, the newest ``MAX_ACTIONS``."""
    return (*actions, action)[-MAX_ACTIONS:]


def _text_bytes(notes: Iterable[Note]) -> int:
    return sum(len(note.text.encode()) for note in notes)
