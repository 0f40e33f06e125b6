"""Counts of what happened to articles at a client, and the log lines about those without a verdict.

Articles without a verdict, or rejected, are logged at most once per ``WARNING_INTERVAL_S``, with the totals
so far, and once more when the client is closed: as an error if they are more than ``ERROR_SHARE`` of all.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

WARNING_INTERVAL_S = 60.0
ERROR_SHARE = 0.01

log = logging.getLogger(__name__)


def unread_summary(count: int, noun: str, example: str = "") -> str:
    """One sentence; ``noun``: what was counted, in the plural; ``example``: one of the dates, quoted."""
    return (
        f"{count} {noun} had a date that could not be read{example and f', e.g. {example}'}; "
        "they were sent without one "
        "(use RFC 3339 such as 2026-11-20T08:00:00Z; a local time needs a declared time zone)"
    )


class Outcomes:
    """Outcome of each article that was submitted or checked.

    Args:
        noun: What is counted, in the plural.
        effect: What happens to one without a verdict, for the log lines; empty: none about those, since the
            caller gets an exception for each.
        on_count: Called with the name of each count that is incremented.
        clock: Monotonic, in seconds.

    Names of the counts: the verdicts "new", "related", "duplicate" and "taken_down", their sum "checked";
    "duplicate/kept" for a duplicate that the service keeps;
    "unchecked" and its parts "unchecked/REASON", where REASON is "forgotten" for an answer that is
    ``unchecked``, or the ``kind`` of ``errors.Unavailable``; "rejected" for what the service does not accept;
    "unread_date" for one whose date could not be read;
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
        self._last_problems = {"unchecked": "", "rejected": ""}
        self._closed, self._unread_example = False, ""
        self.counts: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Articles with an outcome."""
        return self.counts["checked"] + self.counts["unchecked"] + self.counts["rejected"]

    def add_checked(self, verdict: str, problems: Sequence[str] = (), *, keep: bool = False) -> None:
        """Count an article with a verdict, whether a duplicate is kept, and what was wrong with it."""
        kept = ["duplicate/kept"] if keep and verdict == "duplicate" else []
        self._add("checked", verdict, *kept, *(f"problem/{name}" for name in problems))

    def add_unchecked(self, kind: str, problem: str) -> None:
        """Count an article without a verdict. ``problem``: one sentence, the last of which is logged."""
        self._add("unchecked", f"unchecked/{kind}")
        self._warn("unchecked", problem)

    def add_rejected(self, problem: str) -> None:
        """Count an article that the service does not accept. ``problem``: one sentence."""
        self._add("rejected")
        self._warn("rejected", problem)

    def add_unread_date(self, article: Mapping[str, Any]) -> None:
        """Count an article that is sent without its date, which could not be read."""
        names = (f" of {article[name]}" for name in ("url", "source", "id", "title") if article.get(name))
        self._unread_example = f"{str(article['published_at'])!r}{next(names, '')}"
        self._add("unread_date")

    def add_undo_failure(self, article_id: str | None, problem: Exception) -> None:
        """Count and log an article that stays reserved although its insert failed."""
        self._add("undo_failed")
        remedy = "Later copies of it are duplicates: undo the decision again, or insert the article."
        log.error("the reservation of %s could not be removed: %s %s", article_id, problem, remedy)

    def summary(self) -> str:
        """How many articles got no verdict, by reason, or were rejected, and the last problems; or ""."""
        reasons = ", ".join(
            f"{name.removeprefix('unchecked/').replace('_', ' ')} {count}"
            for name, count in self.counts.most_common()
            if name.startswith("unchecked/")
        )
        effects = {
            "unchecked": f"{self._effect}: {reasons} (last error: " if self._effect else "",
            "rejected": "rejected by the service (last problem: ",
        }
        return "; ".join(
            f"{self.counts[name]} of {self.total} {self._noun} {effect}{self._last_problems[name]})"
            for name, effect in effects.items()
            if effect and self.counts[name]
        )

    def close(self) -> None:
        """Log the totals: articles sent without their date, problems, no verdicts. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if unread := self.counts["unread_date"]:
            log.warning("%s", unread_summary(unread, self._noun, self._unread_example))
        checked, found = self.counts["checked"], self.counts.most_common()
        problems = [f"{name[8:]} {count / checked:.0%}" for name, count in found if name[:8] == "problem/"]
        if problems:
            log.info("problems of %d %s: %s", checked, self._noun, ", ".join(problems))
        if summary := self.summary():
            is_error = self.counts["unchecked"] + self.counts["rejected"] > ERROR_SHARE * self.total
            log.log(logging.ERROR if is_error else logging.WARNING, "at the end: %s", summary)

    def _warn(self, name: str, problem: str) -> None:
        self._last_problems[name] = problem.rstrip(".")
        if (summary := self.summary()) and self._clock() >= self._next_warning_s:
            self._next_warning_s = self._clock() + WARNING_INTERVAL_S
            log.warning("%s", summary)

    def _add(self, *names: str) -> None:
        for name in names:
            self.counts[name] += 1
            self._on_count(name)
