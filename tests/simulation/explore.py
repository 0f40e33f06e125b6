"""Search for schedules that violate an invariant of the commit; prints counts and shortened failures.

    python -m tests.simulation.explore --runs 20000 --seed 1     random programs under random schedules
    python -m tests.simulation.explore --systematic --depth 2    small programs, up to 2 preemptions

Exit code 1 if any invariant was violated.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from tests.simulation.programs import SMALL, Batch, Program, random_program, show
from tests.simulation.scheduler import Dice, Scripted
from tests.simulation.simulate import Result, run


@dataclass
class Counts:
    """Totals of a search."""

    runs: int = 0
    commands: int = 0
    switches: int = 0
    faults: int = 0
    deaths: int = 0
    schedules: set[int] = field(default_factory=set)
    failures: list[tuple[str, Program, Result]] = field(default_factory=list)

    def add(self, name: str, program: Program, result: Result) -> None:
        """Count one run."""
        self.runs += 1
        self.commands += result.tally.commands
        self.switches += result.tally.switches
        self.faults += result.tally.faults
        self.deaths += result.tally.deaths
        self.schedules.add(hash((program, tuple(result.trace.items()))))
        if result.violations:
            self.failures.append((name, program, result))

    def __str__(self) -> str:
        return (
            f"{self.runs} runs, {len(self.schedules)} different interleavings, {self.commands} commands, "
            f"{self.switches} switches, {self.faults} faults, {self.deaths} crashes, "
            f"{len(self.failures)} runs with violations"
        )


def explore(runs: int, seed: int, counts: Counts | None = None, stop_after: int = 1 << 30) -> Counts:
    """Run random programs under random schedules; run i of a seed is always the same."""
    counts = counts or Counts()
    for i in range(runs):
        rng = Random(f"{seed}/{i}")
        program = random_program(rng)
        counts.add(f"seed {seed} run {i}", program, run(program, Dice(rng)))
        if len(counts.failures) >= stop_after:
            break
    return counts


def schedules(
    program: Program, depth: int, faults: bool, sample: tuple[int, Random] | None = None
) -> Iterator[Result]:
    """Run every schedule that departs from the quiet one in at most ``depth`` choices.

    A departure continues with another writer (a preemption) or, with ``faults``, loses or delays the command
    or crashes the writer. ``sample``: run a random sample of this size of the schedules of each depth.
    """
    frontier: list[dict[int, int]] = [{}]
    for level in range(depth + 1):
        following = []
        for trace in frontier:
            recorder = _Recorder(trace)
            yield run(program, recorder)
            if level < depth:
                last = max(trace, default=-1)
                for position, (count, is_fault) in enumerate(recorder.choices):
                    if position > last and (faults or not is_fault):
                        following += [{**trace, position: choice} for choice in range(1, count)]
        frontier = (
            following if sample is None else sample[1].sample(following, min(sample[0], len(following)))
        )


class _Recorder(Scripted):
    """Replays a trace and records (number of alternatives, is a fault) of each choice."""

    def __init__(self, trace: dict[int, int]) -> None:
        super().__init__(trace)
        self.choices: list[tuple[int, bool]] = []

    def task(self, count: int) -> int:
        self.choices.append((count, False))
        return super().task(count)

    def fault(self, count: int, applied: bool) -> int:
        choice = self.task(count)
        self.choices[-1] = (count, True)
        return choice


def systematic(depth: int, faults: bool, counts: Counts | None = None) -> Counts:
    """Run all small programs under all schedules."""
    counts = counts or Counts()
    for name, program in SMALL.items():
        for result in schedules(program, depth, faults):
            counts.add(name, program, result)
    return counts


def shortest(program: Program, result: Result) -> tuple[Program, Result]:
    """Drop requests and choices one by one as long as some invariant is still violated."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(program):
            for trace in (result.trace, {}):
                attempt = run(smaller, Scripted(trace))
                if attempt.violations:
                    program, result, changed = smaller, attempt, True
                    break
            if changed:
                break
        for position in sorted(result.trace, reverse=True):
            attempt = run(program, Scripted({p: c for p, c in result.trace.items() if p != position}))
            if attempt.violations:
                result, changed = attempt, True
                break
    return program, result


def _smaller(program: Program) -> Iterator[Program]:
    for i, requests in enumerate(program):
        if len(program) > 1:
            yield program[:i] + program[i + 1 :]
        for j, request in enumerate(requests):
            yield (*program[:i], requests[:j] + requests[j + 1 :], *program[i + 1 :])
            posts = request.posts if isinstance(request, Batch) else ()
            for k in range(len(posts)):
                if len(posts) > 1:
                    smaller = Batch(posts[:k] + posts[k + 1 :])
                    yield (*program[:i], (*requests[:j], smaller, *requests[j + 1 :]), *program[i + 1 :])


def report(name: str, program: Program, result: Result, write: Callable[[str], object] = print) -> None:
    """Shorten a failure and write its program, trace and log."""
    program, result = shortest(program, result)
    write(f"\n{name}, shortened; trace {result.trace}")
    write(show(program))
    for line in result.log:
        write(f"  {line}")


def main() -> int:
    """Search, print the totals and the first failures of each kind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=2000, help="random runs (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--systematic", action="store_true", help="small programs under all schedules")
    parser.add_argument(
        "--depth", type=int, default=2, help="departures from the quiet schedule (systematic)"
    )
    parser.add_argument("--no-faults", action="store_true", help="systematic: preemptions only")
    parser.add_argument("--show", type=int, default=3, help="failures to shorten and print")
    options = parser.parse_args()
    started = time.perf_counter()
    if options.systematic:
        counts = systematic(options.depth, not options.no_faults)
    else:
        counts = explore(options.runs, options.seed)
    print(f"{counts}; {time.perf_counter() - started:.1f} s")
    shown: set[str] = set()
    for name, program, result in counts.failures:
        kind = result.violations[0].translate({ord(c): None for c in "0123456789abcdef"})
        if kind not in shown and len(shown) < options.show:
            shown.add(kind)
            report(name, program, result)
    return 1 if counts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
