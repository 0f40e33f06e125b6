"""Deterministic scheduler of writers and faults; every run is recorded and can be replayed.

A schedule is a list of small integers, one per choice; 0 is the quiet choice (continue with the same writer;
no fault). A trace holds the choices that differ from 0, and setting entries to 0 shortens it
(``explore.shortest``).
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
    """Makes every choice of a run."""

    def task(self, count: int) -> int:
        """Which of ``count`` tasks runs next; 0 continues with the present one."""

    def fault(self, count: int, applied: bool) -> int:
        """Which of ``count`` faults the command meets; 0 means no fault."""


class Scripted:
    """Replays the choices of a trace, {position: choice}; 0 everywhere else."""

    def __init__(self, trace: Mapping[int, int]) -> None:
        self._trace = trace
        self._position = -1

    def task(self, count: int) -> int:
        """The choice of the trace."""
        self._position += 1
        return min(self._trace.get(self._position, 0), count - 1)

    def fault(self, count: int, applied: bool) -> int:
        """The choice of the trace."""
        return self.task(count)


class Dice:
    """Seeded random choices; each run has its own rates of switches, long pauses and faults."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._switch_rate = rng.choice((0.03, 0.1, 0.3, 0.7))
        self._fault_rate = rng.choice((0.0, 0.0, 0.01, 0.05, 0.15))
        self._max_pause = rng.choice((0, 0, 8, 30))
        self._quiet_choices = 0

    def task(self, count: int) -> int:
        """A switch with a fixed probability, followed by a pause in which the new writer runs alone."""
        if self._quiet_choices:
            self._quiet_choices -= 1
            return 0
        if count < 2 or self._rng.random() >= self._switch_rate:
            return 0
        if self._max_pause:
            self._quiet_choices = self._rng.randrange(self._max_pause)
        return self._rng.randrange(1, count)

    def fault(self, count: int, applied: bool) -> int:
        """A fault with a fixed probability."""
        return self._rng.randrange(1, count) if self._rng.random() < self._fault_rate else 0


@dataclass
class Tally:
    """Counts of one run."""

    commands: int = 0
    switches: int = 0
    faults: int = 0
    deaths: int = 0


@dataclass(eq=False)
class Task:
    """A writer, or work that it spawned.

    ``stop`` is what it waits for: a command, or the end of another task; None before it has started.
    """

    name: str
    work: Coroutine[Any, Any, Any]
    stop: Stop | Task | None = None
    parent: Task | None = None
    ended: bool = False
    result: Any = None
    error: Exception | None = None

    def __await__(self) -> Generator[Task, None, Any]:
        """As ``concurrency.TaskHandle``."""
        if not self.ended:
            yield self
        if self.error is not None:
            raise self.error
        return self.result

    def cancel(self) -> None:
        """End the task; what it has not sent yet stays unsent."""
        self.work.close()
        self.ended = True

    @property
    def waits(self) -> bool:
        """Whether it waits for a task that has not ended."""
        return isinstance(self.stop, Task) and not self.stop.ended


@dataclass
class Scheduler:
    """Runs tasks to their ends, one step at a time; ``log`` describes every step."""

    choices: Choices
    tasks: list[Task]
    delayed: list[Callable[[], object]]
    trace: dict[int, int] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    now: int = 0
    _choices_made: int = 0
    _present: Task | None = None

    def run(self) -> None:
        """Run until every writer has ended; delayed commands arrive in between and afterwards."""
        while ready := [task for task in self.tasks if not task.waits] + list(self.delayed):
            choice = self._record(self.choices.task(len(ready)))
            self.now += 1
            self.tally.switches += choice > 0
            chosen = ready[choice]
            if not isinstance(chosen, Task):
                self.log.append("a delayed command arrives")
                self.delayed.remove(chosen)
                chosen()
                continue
            self.tasks.remove(chosen)
            self.tasks.insert(0, chosen)
            self._present = chosen
            chosen.ended = not self._advance(chosen)
            self.tasks[:] = [task for task in self.tasks if not task.ended]

    def spawn(self, work: Coroutine[Any, Any, Any]) -> Task:
        """Start work in parallel with the present writer, with which it dies (``yielding.Spawn``)."""
        assert self._present is not None
        writer = self._present.parent or self._present
        task = Task(f"{writer.name} spawned", work, parent=writer)
        self.tasks.insert(1, task)
        return task

    def _advance(self, task: Task) -> bool:
        """Run the task to its next stop; False if it has ended."""
        fault = Fault.NONE
        if isinstance(task.stop, Stop):
            faults = AFTER if task.stop.applied else BEFORE
            fault = faults[self._record(self.choices.fault(len(faults), task.stop.applied))]
            if not task.stop.applied or fault is not Fault.NONE:
                self.log.append(f"{task.name}: {task.stop.command}{_describe_fault(task.stop, fault)}")
            self.tally.commands += not task.stop.applied
            self.tally.faults += fault is not Fault.NONE
        if fault is Fault.DEATH:
            self._crash(task.parent or task)
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

    def _crash(self, writer: Task) -> None:
        self.tally.deaths += 1
        for each in [each for each in self.tasks if (each.parent or each) is writer]:
            each.cancel()

    def _record(self, choice: int) -> int:
        if choice:
            self.trace[self._choices_made] = choice
        self._choices_made += 1
        return choice


def _describe_fault(stop: Stop, fault: Fault) -> str:
    if fault is Fault.NONE:
        return ""
    return f" ({fault.value}, {'applied' if stop.applied else 'not applied'})"
