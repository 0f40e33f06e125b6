"""Production ingest and index under a hostile scheduler: the short form of ``explore.py``.

What must hold is in ``oracle.py``, who plays in ``programs.py``, what a mutant is in ``mutants.py``.
"""

import pytest

from aggregator.analysis.shingles import estimate_overlap
from aggregator.dedup.verdict import Policy, is_copy
from tests.simulation.explore import explore, schedules, shortest, tell
from tests.simulation.mutants import MUTANTS
from tests.simulation.oracle import Call, explains
from tests.simulation.programs import SMALL, TEXTS, analysis, show
from tests.simulation.scheduler import Scripted
from tests.simulation.simulate import run

RUNS, SEED = 250, 20


def test_the_texts_are_kin_as_their_names_say() -> None:
    """Texts of one story are near-copies of one another, texts of two are not; each by its bands too."""
    sketches = {name: analysis(name, "en").sketch for name in TEXTS}
    for one in TEXTS:
        for other in TEXTS:
            assert is_copy(estimate_overlap(sketches[one], sketches[other]), 1.0, Policy()) == (
                one[0] == other[0]
            )


@pytest.mark.parametrize("name", SMALL)
def test_no_single_departure_from_the_quiet_schedule_breaks_anything(name: str) -> None:
    """Every one preemption of each small program; more departures and faults: ``explore.py --systematic``."""
    for result in schedules(SMALL[name], depth=1, faults=False):
        assert result.violations == [], (show(SMALL[name]), result.trace, result.story)


def test_random_programs_under_random_schedules_break_nothing() -> None:
    """2-4 writers; pauses, lost and late commands, deaths."""
    counts = explore(RUNS, SEED)
    for name, program, result in counts.failures[:1]:
        said: list[str] = []
        tell(name, program, result, said.append)
        pytest.fail("\n".join(said))

    assert counts.runs == RUNS
    assert min(counts.deaths, counts.faults, counts.switches) > 100


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_protocol_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out of the commit shows in the small program that betrays it, in two preemptions at most."""
    program, patch = MUTANTS[name]
    patch(monkeypatch)

    assert any(result.violations for result in schedules(SMALL[program], depth=2, faults=False))


def test_a_trace_replays_and_shortens(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure is the same again from its trace, and no longer than it must be."""
    program, patch = MUTANTS["buckets may have grown"]
    patch(monkeypatch)
    found = next(r for r in schedules(SMALL[program], depth=2, faults=False) if r.violations)

    again = run(SMALL[program], Scripted(found.trace))
    _, short = shortest(SMALL[program], found)

    assert (again.violations, again.story) == (found.violations, found.story)
    assert short.violations
    assert len(short.trace) == 1


def test_explanations_of_answers() -> None:
    """An order within the calls' times must give every answer; what was not answered may not have happened."""
    post, other = Call("a", b"x", 1, 2, True), Call("a", b"y", 3, 4, True)
    delete = Call("a", None, 3, 4, True)

    assert explains([post, other], b"y")
    assert not explains([post, other], b"x")
    assert not explains([post, delete], b"x")
    assert explains([post, Call("a", None, 3)], b"x")
    assert explains([post, Call("a", None, 3)], None)
    assert not explains([Call("a", b"x", 1, 2, False)], b"x")
