"""Constants of the rules against routine, chosen without one window and judged on it.

    python -m tests.benchmarks.bench_event_constants DATA EVENTS.json... [--snapshots DIR] [--jobs N]

Replays every window of the lists once and records, of each story that has more than the rule's items and
at least ``LOWEST_EXCESS`` times what is usual for it, what the rules compare with their constants: at the
time it first had so many, and with every further item up to 64. One value of one constant at a time is then
applied to these snapshots: a story alerts at its first snapshot that passes all rules. That takes no replay,
but what an alert changes afterwards (merges, the memory of series) stays as it was recorded; a constant of
the clustering cannot be chosen so.

For each constant and each window, the value is chosen that finds the most known events in all other windows,
then makes the fewest alerts that a person called routine or about nothing, or has not judged
(``alert_judgments.json``), then keeps the most others; of equals the one nearest to the present. Printed are
the figures of every value over all windows, the chosen values, and the sum over the windows of what each has
with the value chosen without it. ``--snapshots DIR`` keeps what was recorded (numbers and ids of stories, no
texts) for the next call.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from aggregator.analysis.models import load_term_rates
from aggregator.domain import StreamItem
from aggregator.events.detection import BurstDetector, BurstRule, expectation, named_subject, routine, subject
from aggregator.events.detection.clustering import MAX_EXAMINED_ITEMS, Story, latest_counted_items
from aggregator.events.detection.headline_case import title_case_share
from aggregator.events.detection.rare_words import is_rare_plain_word, is_rare_word, may_be_subject
from aggregator.offline.evaluation.event_metrics import KnownEvent
from aggregator.offline.evaluation.events import JUDGED_ITEMS, MIN_MATCHING_SHARE, read_known_events
from aggregator.offline.jsonl import read_rows
from aggregator.offline.replay import read_items
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.benchmarks.bench_alerts import JUDGMENTS

LOWEST_EXCESS = 2.0
# Beyond so many items the latest of them decide, and a snapshot is taken after each growth by a tenth.
FINE_ITEMS = MAX_EXAMINED_ITEMS


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the rules see of one story at one time.

    excess            items as a multiple of what is required at a ratio of 1
    expected          items that are usual
    known             share of the words outside the core that recur or are known, per dependent share
    has_rare_word     whether a rare plain word is in the core
    name, rare        largest share of the items that hold a name, and a rare word, per dependent share
    title_case        share of the headlines In Title Case; 0.0 where that is usual
    is_series         whether a rule without a constant of this list stops it
    matching          share of its first items that match the known event
    """

    story: str
    at_ms: int
    items: int
    excess: float
    expected: float
    known: float
    has_rare_word: bool
    name: float
    rare: float
    title_case: float
    is_series: bool
    matching: float


# Constants: present value, and the values to compare.
CONSTANTS: dict[str, tuple[float, tuple[float, ...]]] = {
    "excess": (expectation.EXCESS_RATIO, (2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 8.0)),
    "name": (named_subject.NAME_SHARE, (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7)),
    "rare": (named_subject.RARE_WORD_SHARE, (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    "known": (subject.MIN_KNOWN_SHARE, (0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7)),
    "known_of_usual": (subject.MIN_KNOWN_SHARE_OF_USUAL, (0.6, 0.65, 0.7, 0.75, 0.8, 0.85)),
    "usual_items": (subject.MANY_USUAL_ITEMS, (1.0, 1.5, 1.9, 2.2, 2.5, 3.0, 4.0, 6.0)),
    "title_case": (routine.TITLE_CASE_SHARE, (0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9, 1.1)),
}
PRESENT = {name: present for name, (present, _) in CONSTANTS.items()}


def passes(snapshot: Snapshot, constants: Mapping[str, float]) -> bool:
    """Whether the story alerts with these constants."""
    required = constants["known"]
    if snapshot.expected > constants["usual_items"] and not snapshot.has_rare_word:
        required = max(required, constants["known_of_usual"])
    return (
        snapshot.excess >= constants["excess"]
        and not snapshot.is_series
        and snapshot.title_case < constants["title_case"]
        and snapshot.known >= required
        and (snapshot.name >= constants["name"] or snapshot.rare >= constants["rare"])
    )


class Recorder(BurstDetector):
    """Detector that records snapshots; ``known_event``: for the share of matching headlines."""

    known_event: KnownEvent

    def record(self, items: Iterable[StreamItem], known_event: KnownEvent) -> list[Snapshot]:
        """Return the snapshots of the judged part of a window, in order of time."""
        self.known_event, self.snapshots, self._recorded = known_event, list[Snapshot](), dict[int, int]()
        for item in items:
            self.observe(item, item.arrived_ms)
            self.drain_changes()
        return self.snapshots

    def _check_burst(self, story: Story) -> None:
        if story.counted_items > self.rule.items and self.clock_ms >= self.known_event.day_ms - DAY_MS:
            self._take_snapshot(story)
        super()._check_burst(story)

    def _take_snapshot(self, story: Story) -> None:
        hour, items = self.clock_ms // HOUR_MS, story.counted_items
        recorded = self._recorded.get(story.key, 0)
        if items <= recorded or (items > FINE_ITEMS and items < 1.1 * recorded):
            return
        expected = expectation.expected_items(story, self.baseline, hour)
        if items < LOWEST_EXCESS * expected:
            return
        expected *= expectation.volume_ratio(story, self.baseline, self.term_weights.window_count, hour)
        required = expected + max(0.0, expected - expectation.REGULAR_TOPIC_ITEMS)
        required = max(required, self.cold_start.expected_items(story, expected), 1e-9)
        if items < LOWEST_EXCESS * required:
            return
        self._recorded[story.key] = items
        members, rates = latest_counted_items(story), self.cold_start.rates
        assert rates is not None
        counts, dependent = subject.count_terms(members), subject.dependent_share(members) or 1e-9
        core = subject.core_terms(members, counts)
        share = 1.0 / (dependent * len(members))
        common = [t for t, count in counts.most_common() if count * share >= 0.2 and may_be_subject(t)]
        one_publisher = routine.is_one_publisher(members)
        in_another_style = one_publisher and not routine.title_case_is_usual(members, self.window)
        in_title_case = title_case_share(members) if in_another_style else 0.0
        first = sorted(story.members.values(), key=lambda member: (member.at_ms, member.number))
        matching = sum(bool(self.known_event.pattern.search(m.title)) for m in first[:JUDGED_ITEMS])
        in_series = self.series.expected_items(story, self.clock_ms)
        self.snapshots.append(
            Snapshot(
                story=story.id,
                at_ms=self.clock_ms,
                items=items,
                excess=items / required,
                expected=expected,
                known=subject.known_share(members, counts, core, rates) / dependent,
                has_rare_word=any(
                    is_rare_plain_word(term, members, rates)
                    and self.baseline.days_with(term, subject.BUSY_DAY_ITEMS, hour)
                    < subject.EVERYDAY_BUSY_DAYS
                    for term in core
                ),
                name=_largest(common, counts, partial(self._is_name, story)) * share,
                rare=_largest(common, counts, lambda term: is_rare_word(term, members, rates)) / len(members),
                title_case=in_title_case,
                is_series=(one_publisher and routine.is_series(members, self.window))
                or not expectation.exceeds_expectation(items, in_series, self.rule),
                matching=matching / JUDGED_ITEMS,
            )
        )

    def _is_name(self, story: Story, term: str) -> bool:
        return named_subject.is_name(term, latest_counted_items(story), self.window, self.cold_start.rates)


def _largest(terms: Sequence[str], counts: Counter[str], holds: Callable[[str], bool]) -> int:
    """Return the count of the first of ``terms``, most frequent first, that ``holds`` accepts."""
    return next((counts[term] for term in terms if holds(term)), 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one window, or of several: known events found, alerts by verdict (``routine``: or about nothing)."""

    found: int = 0
    routine: int = 0
    news: int = 0
    not_judged: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.found + other.found,
            self.routine + other.routine,
            self.news + other.news,
            self.not_judged + other.not_judged,
        )

    def __str__(self) -> str:
        return f"{self.found} found, {self.routine} routine, {self.news} news, {self.not_judged} not judged"


def outcome(
    snapshots: Sequence[Snapshot],
    known: KnownEvent,
    constants: Mapping[str, float],
    verdicts: Mapping[str, str],
) -> Outcome:
    """Return what these constants make of the snapshots of one window."""
    first: dict[str, Snapshot] = {}
    for snapshot in snapshots:
        if snapshot.story not in first and passes(snapshot, constants):
            first[snapshot.story] = snapshot
    found = known.t16_ms is not None and any(
        known.day_ms <= s.at_ms <= known.t16_ms + DAY_MS and s.matching >= MIN_MATCHING_SHARE
        for s in first.values()
    )
    routine_alerts = sum(verdicts.get(story) in ("routine", "none") for story in first)
    not_judged = sum(story not in verdicts for story in first)
    return Outcome(int(found), routine_alerts, len(first) - routine_alerts - not_judged, not_judged)


def choose(name: str, outcomes: Mapping[float, Outcome]) -> float:
    """Return the value with the best outcome; of equals the one nearest to the present."""

    def rank(value: float) -> tuple[int, int, int, float]:
        of_value = outcomes[value]
        bad = of_value.routine + of_value.not_judged
        return of_value.found, -bad, of_value.news, -abs(value - PRESENT[name])

    return max(outcomes, key=rank)


def main() -> None:
    options = _options()
    known = [event for path in options.lists for event in read_known_events(Path(path))]
    verdicts: dict[str, str] = json.loads(JUDGMENTS.read_text(encoding="utf-8"))
    with ProcessPoolExecutor(options.jobs) as executor:
        recorded = list(executor.map(partial(_snapshots, Path(options.data), options.snapshots), known))
    windows = list(zip(recorded, known, strict=True))
    print(f"present: {sum((outcome(*w, PRESENT, verdicts) for w in windows), Outcome())}")
    for name, (_, values) in CONSTANTS.items():
        by_value = {v: [outcome(*w, {**PRESENT, name: v}, verdicts) for w in windows] for v in values}
        totals = {value: sum(outcomes, Outcome()) for value, outcomes in by_value.items()}
        chosen: Counter[float] = Counter()
        left_out = Outcome()
        for i in range(len(windows)):
            rest = {v: sum(outcomes[:i] + outcomes[i + 1 :], Outcome()) for v, outcomes in by_value.items()}
            value = choose(name, rest)
            chosen[value] += 1
            left_out += by_value[value][i]
        print(f"\n{name}, now {PRESENT[name]:g}")
        for value, total in totals.items():
            print(f"  {value:<5g} {total}")
        print(f"  chosen without one window: {dict(chosen.most_common())}; left out: {left_out}")


def _snapshots(data: Path, directory: str | None, known: KnownEvent) -> list[Snapshot]:
    """Return the snapshots of one window, recorded now or before."""
    cached = Path(directory, known.window_file + ".json") if directory else None
    if cached is not None and cached.exists():
        return [Snapshot(**entry) for entry in json.loads(cached.read_text(encoding="utf-8"))]
    detector = Recorder(BurstRule(), load_term_rates())
    snapshots = detector.record(read_items(read_rows([str(data / known.window_file)]), detector), known)
    if cached is not None:
        cached.parent.mkdir(parents=True, exist_ok=True)
        cached.write_text(json.dumps([asdict(snapshot) for snapshot in snapshots]), encoding="utf-8")
    return snapshots


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", help="directory of the windows")
    parser.add_argument("lists", nargs="+", help="lists of known events")
    parser.add_argument("--snapshots", metavar="DIR")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
