"""Who runs next, and what goes wrong: deterministic, recorded, replayable.

A schedule is a list of small numbers, one per choice, 0 always being the quiet one (go on with the
same writer; nothing goes wrong). So a trace is what differs from 0, and zeroing entries makes it
shorter (``explore.shortest``).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from tests.simulation.transport import Fault, Stop

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


@dataclass(eq=False)
class Task:
    """A writer, or work that it began beside; ``stop`` is where it waits, None before it started."""

    name: str
    work: Coroutine[Any, Any, Any]
    stop: Stop | Task | None = None  # a Task: for the end of that one
    parent: Task | None = None
    ended: bool = False
    result: Any = None
    error: Exception | None = None

    def __await__(self) -> Generator[Task, None, Any]:
        """``rounds.Begun``."""
        if not self.ended:
            yield self
        if self.error is not None:
            raise self.error
        return self.result

    def cancel(self) -> None:
        """It goes no further; what it has not sent stays unsent."""
        self.work.close()
        self.ended = True

    @property
    def waits(self) -> bool:
        """Whether it has nothing to do before another task has ended."""
        return isinstance(self.stop, Task) and not self.stop.ended


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
    _present: Task | None = None

    def run(self) -> None:
        """Until every writer has ended; delayed commands arrive among and after them."""
        while ready := [task for task in self.tasks if not task.waits] + list(self.late):
            choice = self._note(self.choices.whom(len(ready)))
            self.now += 1
            self.tally.switches += choice > 0
            chosen = ready[choice]
            if not isinstance(chosen, Task):
                self.story.append("a delayed command arrives")
                self.late.remove(chosen)
                chosen()
                continue
            self.tasks.remove(chosen)
            self.tasks.insert(0, chosen)
            self._present = chosen
            chosen.ended = not self._advance(chosen)
            self.tasks[:] = [task for task in self.tasks if not task.ended]

    def begin(self, work: Coroutine[Any, Any, Any]) -> Task:
        """``rounds.Begin``: work of the present writer beside it; it dies with it."""
        assert self._present is not None
        writer = self._present.parent or self._present
        task = Task(f"{writer.name} beside", work, parent=writer)
        self.tasks.insert(1, task)
        return task

    def _advance(self, task: Task) -> bool:
        fault = Fault.NONE
        if isinstance(task.stop, Stop):
            faults = AFTER if task.stop.applied else BEFORE
            fault = faults[self._note(self.choices.fault(len(faults), task.stop.applied))]
            if not task.stop.applied or fault is not Fault.NONE:
                self.story.append(f"{task.name}: {task.stop.command}{_noted(task.stop, fault)}")
            self.tally.commands += not task.stop.applied
            self.tally.faults += fault is not Fault.NONE
        if fault is Fault.DEATH:
            self.tally.deaths += 1
            writer = task.parent or task
            for each in [each for each in self.tasks if (each.parent or each) is writer]:
                each.cancel()
            return False
        try:
            task.stop = task.work.send(fault if isinstance(task.stop, Stop) else None)
        except StopIteration as end:
            task.result = end.value
            return False
        except Exception as error:
            if task.parent is None:
                raise
            task.error = error
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
