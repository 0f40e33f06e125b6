"""Counts of what happened to articles at a client, and the log lines about those without a verdict.

Articles without a verdict are logged at most once per ``WARNING_INTERVAL_S``, with the totals so far, and
once more when the client is closed: as an error if they are more than ``ERROR_SHARE`` of all.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence

WARNING_INTERVAL_S = 60.0
ERROR_SHARE = 0.01

log = logging.getLogger(__name__)


def undated_summary(count: int, noun: str) -> str:
    """One sentence; ``noun``: what was counted, in the plural."""
    return (
        f"{count} {noun} had a date that could not be read; they were sent without one "
        "(a local time needs a declared time zone)"
    )


class Outcomes:
    """Outcome of each article that was submitted or checked.

    Args:
        noun: What is counted, in the plural.
        effect: What happens to one without a verdict, for the log lines; empty: log nothing, since the caller
            gets an exception for each.
        on_count: Called with the name of each count that is incremented.
        clock: Monotonic, in seconds.

    Names of the counts: the verdicts "new", "related", "duplicate" and "taken_down", their sum "checked";
    "duplicate/kept" for a duplicate that the service keeps;
    "unchecked" and its parts "unchecked/REASON", where REASON is "refused" for an article that the service
    rejected, "forgotten" for an answer that is ``unchecked``, or the ``kind`` of ``errors.Unavailable``;
    "undated" for one whose date could not be read;
    "problem/NAME", see ``VerdictOut.problems``.
    """

    def __init__(
        self,
        noun: str = "articles",
        effect: str = "passed unchecked",
        *,
        on_count: Callable[[str], None] = lambda name: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._noun, self._effect, self._on_count = noun, effect, on_count
        self._clock, self._next_warning_s = clock, float("-inf")
        self._last_problem = ""
        self._closed = False
        self.counts: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Articles with an outcome."""
        return self.counts["checked"] + self.counts["unchecked"]

    def add_checked(self, verdict: str, problems: Sequence[str] = (), *, keep: bool = False) -> None:
        """Count an article with a verdict, whether a duplicate is kept, and what was wrong with it."""
        kept = ["duplicate/kept"] if keep and verdict == "duplicate" else []
        self._add("checked", verdict, *kept, *(f"problem/{name}" for name in problems))

    def add_unchecked(self, kind: str, problem: str) -> None:
        """Count an article without a verdict. ``problem``: one sentence, the last of which is logged."""
        self._add("unchecked", f"unchecked/{kind}")
        self._last_problem = problem
        if self._effect and self._clock() >= self._next_warning_s:
            self._next_warning_s = self._clock() + WARNING_INTERVAL_S
            log.warning("%s", self.summary())

    def add_undated(self) -> None:
        """Count an article that is sent without its date, which could not be read."""
        self._add("undated")

    def summary(self) -> str:
        """One sentence: how many articles got no verdict, by reason, and the last problem."""
        prefix = "unchecked/"
        reasons = ", ".join(
            f"{name.removeprefix(prefix).replace('_', ' ')} {count}"
            for name, count in self.counts.most_common()
            if name.startswith(prefix)
        )
        return (
            f"{self.counts['unchecked']} of {self.total} {self._noun} {self._effect}: {reasons} "
            f"(last error: {self._last_problem.rstrip('.')})"
        )

    def close(self) -> None:
        """Log the totals: articles sent without their date, problems, no verdicts. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if undated := self.counts["undated"]:
            log.warning("%s", undated_summary(undated, self._noun))
        checked, found = self.counts["checked"], self.counts.most_common()
        problems = [f"{name[8:]} {count / checked:.0%}" for name, count in found if name[:8] == "problem/"]
        if problems:
            log.info("problems of %d %s: %s", checked, self._noun, ", ".join(problems))
        if not self._effect or not self.counts["unchecked"]:
            return
        is_error = self.counts["unchecked"] > ERROR_SHARE * self.total
        log.log(logging.ERROR if is_error else logging.WARNING, "at the end: %s", self.summary())

    def _add(self, *names: str) -> None:
        for name in names:
            self.counts[name] += 1
            self._on_count(name)
