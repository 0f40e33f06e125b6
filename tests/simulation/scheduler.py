"""Who runs next, and what goes wrong: deterministic, recorded, replayable.

A schedule is a list of small numbers, one per choice, 0 always being the quiet one (go on with the
same writer; nothing goes wrong). So a trace is what differs from 0, and zeroing entries makes it
shorter (``explore.shortest``).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from transport import Fault, Stop

BEFORE = (Fault.NONE, Fault.LOST, Fault.LATE, Fault.DEATH)
AFTER = (Fault.NONE, Fault.LOST, Fault.DEATH)


class Choices(Protocol):
    """Answers every question of a run."""

    def whom(self, count: int) -> int:
        """Which of ``count`` may run; 0 goes on with the present one."""

    def fault(self, count: int, applied: bool) -> int:
        """Which of ``count`` faults befalls the command; 0 is none."""


class Scripted:
    """Replays the choices of a trace, {position: choice}; 0 everywhere else."""

    def __init__(self, trace: Mapping[int, int]) -> None:
        self._trace = trace
        self._position = -1

    def whom(self, count: int) -> int:
        self._position += 1
        return min(self._trace.get(self._position, 0), count - 1)

    def fault(self, count: int, applied: bool) -> int:
        return self.whom(count)


class Dice:
    """Seeded choices. Each run has its own temper: how often writers alternate, fall asleep, meet faults."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._switch = rng.choice((0.03, 0.1, 0.3, 0.7))
        self._fault = rng.choice((0.0, 0.0, 0.01, 0.05, 0.15))
        self._nap = rng.choice((0, 0, 8, 30))
        self._quiet = 0

    def whom(self, count: int) -> int:
        if self._quiet:  # whoever was left sleeps while another one runs on
            self._quiet -= 1
            return 0
        if count < 2 or self._rng.random() >= self._switch:
            return 0
        if self._nap:
            self._quiet = self._rng.randrange(self._nap)
        return self._rng.randrange(1, count)

    def fault(self, count: int, applied: bool) -> int:
        return self._rng.randrange(1, count) if self._rng.random() < self._fault else 0


@dataclass
class Tally:
    """What happened in a run."""

    commands: int = 0
    switches: int = 0
    faults: int = 0
    deaths: int = 0


@dataclass
class Task:
    """A writer; ``stop`` is where it waits, None before it started."""

    name: str
    work: Coroutine[Any, Any, None]
    stop: Stop | None = None


@dataclass
class Scheduler:
    """Runs writers to their ends, one step at a time."""

    choices: Choices
    tasks: list[Task]
    late: list[Callable[[], object]]
    trace: dict[int, int] = field(default_factory=dict)
    story: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    now: int = 0
    _asked: int = 0

    def run(self) -> None:
        """Until every writer has ended; delayed commands arrive among and after them."""
        running = list(self.tasks)
        while running or self.late:
            choice = self._note(self.choices.whom(len(running) + len(self.late)))
            self.now += 1
            self.tally.switches += choice > 0
            if choice >= len(running):
                self.story.append("a delayed command arrives")
                self.late.pop(choice - len(running))()
                continue
            task = running.pop(choice)
            if self._advance(task):
                running.insert(0, task)

    def _advance(self, task: Task) -> bool:
        fault = Fault.NONE
        if task.stop is not None:
            faults = AFTER if task.stop.applied else BEFORE
            fault = faults[self._note(self.choices.fault(len(faults), task.stop.applied))]
            if not task.stop.applied or fault is not Fault.NONE:
                self.story.append(f"{task.name}: {task.stop.command}{_noted(task.stop, fault)}")
            self.tally.commands += not task.stop.applied
            self.tally.faults += fault is not Fault.NONE
        if fault is Fault.DEATH:
            self.tally.deaths += 1
            task.work.close()
            return False
        try:
            task.stop = task.work.send(None if task.stop is None else fault)
        except StopIteration:
            return False
        return True

    def _note(self, choice: int) -> int:
        if choice:
            self.trace[self._asked] = choice
        self._asked += 1
        return choice


def _noted(stop: Stop, fault: Fault) -> str:
    if fault is Fault.NONE:
        return ""
    return f" ({fault.value}, {'applied' if stop.applied else 'not applied'})"
