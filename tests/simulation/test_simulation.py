"""Production ingest and index under an adversarial scheduler: a short run of ``explore.py``.

The invariants are in ``oracle.py``, the requests in ``programs.py``, wrong protocols in ``mutants.py``.
"""

import random
import sys
from dataclasses import replace

import pytest

from aggregator.domain import Outcome
from tests.simulation.explore import explore, report, schedules, shortest
from tests.simulation.mutants import MUTANTS
from tests.simulation.oracle import Call, has_one_new, is_linearizable, take_downs_hold
from tests.simulation.programs import SMALL, TEXTS, analysis, show
from tests.simulation.scheduler import Scripted
from tests.simulation.simulate import run
from tests.support.pair_evidence import are_copies

pytestmark = pytest.mark.integration

RUNS, SEED = 140, 21
SCHEDULES = 8  # of each small program; all of them take 2 minutes of processor time


def test_texts_are_near_copies_if_they_have_one_story() -> None:
    """Texts of one story are near-copies of each other but for two parts, texts of two stories are not."""
    analyses = {name: analysis(name, "en") for name in TEXTS}
    for a in TEXTS:
        for b in TEXTS:
            are_parts = {a[:5], b[:5]} == {"vhead", "vtail"}
            assert are_copies(analyses[a], analyses[b]) == (a[0] == b[0] and not are_parts)


@pytest.mark.parametrize("name", SMALL)
def test_no_single_preemption_violates_an_invariant(name: str) -> None:
    """Some schedules with one preemption; scripts/check runs all of them, with faults."""
    for result in schedules(
        SMALL[name], depth=1, faults=False, sample=(SCHEDULES, random.Random(random.random()))
    ):
        assert result.violations == [], (show(SMALL[name]), result.trace, result.log)


def test_random_programs_under_random_schedules_violate_no_invariant() -> None:
    """Two to four writers with pauses, lost and delayed commands, and crashes."""
    counts = explore(RUNS, SEED)
    for name, program, result in counts.failures[:1]:
        lines: list[str] = []
        report(name, program, result, lines.append)
        pytest.fail("\n".join(lines))

    assert counts.runs == RUNS
    assert min(counts.deaths, counts.faults, counts.switches) > 100


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_protocol_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its small program violates an invariant under some schedule with at most three preemptions.

    Schedules in random order come to a violation with a fifth of the runs.
    """
    program, patch = MUTANTS[name]
    patch(monkeypatch)

    shuffled = (sys.maxsize, random.Random(SEED))
    assert any(result.violations for result in schedules(SMALL[program], 3, faults=False, sample=shuffled))


def test_a_trace_replays_and_shortens(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure is reproduced by its trace, which is shortened to one choice."""
    program, patch = MUTANTS["bucket lengths are not checked"]
    patch(monkeypatch)
    found = next(r for r in schedules(SMALL[program], depth=2, faults=False) if r.violations)

    again = run(SMALL[program], Scripted(found.trace))
    _, short = shortest(SMALL[program], found)

    assert (again.violations, again.log) == (found.violations, found.log)
    assert short.violations
    assert len(short.trace) == 1


def test_of_simultaneous_copies_one_is_new() -> None:
    """Either of two; after it was deleted the other one; never both, and never none."""
    new, copy = Outcome("new"), Outcome("duplicate")
    a, b = Call("a", b"x", 1, 4, True, new), Call("b", b"y", 2, 3, True, copy)
    delete = Call("a", None, 5, 6, True)

    assert has_one_new([a, b])
    assert has_one_new([replace(a, outcome=copy), replace(b, outcome=new)])
    assert has_one_new([a, b, delete, Call("b", b"y", 7, 8, False, new)])
    assert not has_one_new([a, replace(b, outcome=new)])
    assert not has_one_new([replace(a, outcome=copy), b])
    assert not has_one_new([a, b, Call("b", b"y", 7, 8, False, new)])
    assert not has_one_new([replace(a, end=2), replace(b, start=3, end=4, outcome=new)])


def test_linearizability_of_answers() -> None:
    """Some order within the times of the calls yields every answer; unanswered calls may have no effect."""
    post, other = Call("a", b"x", 1, 2, True), Call("a", b"y", 3, 4, True)
    delete = Call("a", None, 3, 4, True)

    assert is_linearizable([post, other], b"y")
    assert not is_linearizable([post, other], b"x")
    assert not is_linearizable([post, delete], b"x")
    assert is_linearizable([post, Call("a", None, 3)], b"x")
    assert is_linearizable([post, Call("a", None, 3)], None)
    assert not is_linearizable([Call("a", b"x", 1, 2, False)], b"x")


def test_linearizability_of_answers_to_sources() -> None:
    """A bound call is refused if an article of another source is stored, and only then."""
    own, foreign = Call("a", b"x", 1, 2, source="g"), Call("a", b"y", 3, 4, source="r")
    refused = replace(foreign, is_refused=True)

    assert is_linearizable([own, refused], b"x")
    assert not is_linearizable([own, foreign], b"y")
    assert not is_linearizable([refused], None)
    assert is_linearizable([own, replace(foreign, source="")], b"y")
    assert is_linearizable([own, Call("a", None, 3, 4), foreign], b"y")
    version = Call("a", b"z", 3, 4, True)
    assert is_linearizable([own, version, replace(own, start=5, end=6)], b"x")
    assert not is_linearizable([own, replace(version, story="t"), replace(own, start=5, end=6)], b"x")


def test_linearizability_of_take_downs() -> None:
    """The text that a take-down removes is refused under all ids from then on, and no other text."""
    post, down = Call("a", b"x", 1, 2, True), Call("a", None, 5, 8, True, take_down=True)
    again = Call("b", b"x", 9, 10, False, is_taken_down=True)
    update = Call("a", b"y", 3, 6, True)

    assert take_downs_hold([post, down, again], {})
    assert not take_downs_hold([post, down, replace(again, effect=True, is_taken_down=False)], {"b": b"x"})
    assert not take_downs_hold([post, down, replace(again, text=b"y")], {})
    assert not take_downs_hold([post, replace(down, take_down=False), again], {})
    assert take_downs_hold([post, update, down], {})
    assert take_downs_hold([post, update, down], {"a": b"y"})
    assert take_downs_hold([post, update, down, replace(again, text=b"y")], {})
    removed_unrefused = replace(again, text=b"y", effect=True, is_taken_down=False)
    assert not take_downs_hold([post, replace(update, end=4), down, removed_unrefused], {"b": b"y"})
