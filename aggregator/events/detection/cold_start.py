"""Cold start: what is expected while the stream has less than a day of history.

These rules apply in the first day only, 2 to 4 also later while the history has fewer documents than 0.3 of a
day at the present volume:

1. **General news.** A term is expected in as many documents of the window as in news in general
   (``analysis/term_frequencies.py``), at the present volume. So a frequent word does not look like a burst.
   The expectation decreases with each hour of history. The rarest of the terms that most items of a story
   hold must clearly exceed ``GENERAL_MARGIN`` times that.
2. **Excess.** What was measured for less than a day is uncertain: a story needs more of an excess
   (``FIRST_DAY_EXCESS``) over what the stream itself has shown.
3. **Time.** Items that one source publishes in the same minute are a list, not a story.
4. **One subject.** The items must be about one subject (``subject.py``) even if none of them is usual,
   and at most ``MAX_CORE_SHARE`` of their terms may be common to most items.

Sources that report independently are evidence too: of a story of several sources 1 requires less, down to
``INDEPENDENT_MARGIN``, and so do 3 and 4, down to nothing if every item has another source.

The constants were chosen on the first days of the development windows, without left-out ones. Without
``TermRates`` none of these rules applies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import exp

from aggregator.analysis.term_frequencies import TermRates
from aggregator.events.detection import subject
from aggregator.events.detection.baseline import Baseline
from aggregator.events.detection.clustering import Story, WindowItem
from aggregator.events.detection.known_history import HOURS_PER_DAY, KNOWN_VOLUME_SHARE
from aggregator.time_units import MINUTE_MS

# Multiple of the usual excess that a story needs.
FIRST_DAY_EXCESS = 1.5
# Multiple of its expectation in general news that the rarest common term of a story may have in any stream:
# every site has its own subjects. The known events have at most 0.4 expected documents, so 16 items suffice.
GENERAL_MARGIN = 10.0
# The same where every item has another source.
INDEPENDENT_MARGIN = 4.0
# Share of the items that differ in source or minute of publication.
MIN_DISTINCT_TIMES = 0.6
# As for ``subject.py``, on the first day.
MIN_KNOWN_SHARE = 0.7
# Share of its terms that a story may hold in common.
MAX_CORE_SHARE = 0.5


class ColdStart:
    """Documents and index terms in the window by language, and what is expected from them.

    ``rates``: how frequent terms are in news in general; None: unknown, and no rule applies.
    ``remaining``: missing part of the first day of history, 1 to 0, set by ``refresh``.
    """

    def __init__(self, rates: TermRates | None, baseline: Baseline) -> None:
        self.rates = rates
        self._baseline = baseline
        self._documents: Counter[str] = Counter()
        self._index_terms: Counter[str] = Counter()
        # By term of the first day: language of the latest item that holds it, and its rate.
        self._rate_of_term: dict[str, tuple[str, float]] = {}
        self.remaining = 0.0

    def refresh(self, hour: int) -> None:
        """Set the time."""
        self.remaining = self._baseline.missing_share(hour) if self.rates is not None else 0.0
        if not self.remaining:
            self._rate_of_term.clear()

    def add(self, member: WindowItem) -> None:
        """Count a document that entered the window."""
        self._documents[member.lang] += 1
        self._index_terms[member.lang] += len(member.terms)
        if self.remaining and self.rates is not None:
            known, lang = self._rate_of_term, member.lang
            for term in member.terms:
                if term not in known or known[term][0] != lang:
                    known[term] = lang, self.rates.rate(lang, term)

    def remove(self, member: WindowItem) -> None:
        """Undo ``add`` for a document that left the window."""
        self._documents[member.lang] -= 1
        self._index_terms[member.lang] -= len(member.terms)

    def expected(self, term: str) -> float:
        """Return how many documents of the window hold a term in general news, times ``remaining``."""
        if not self.remaining:
            return 0.0
        lang, rate = self._rate_of_term.get(term, ("", 0.0))
        documents = self._documents[lang] if rate else 0
        if not documents:
            return 0.0
        return self.remaining * documents * (1.0 - exp(-rate * self._index_terms[lang] / documents))

    def expected_items(self, story: Story, expected: float) -> float:
        """Return the items that are expected of a story where the stream's own history gives ``expected``.

        Infinite if it may be routine: its items have no term in common, are published together, or are about
        many subjects.
        """
        if self.rates is None or not (self.remaining or self._history_is_thin()):
            return expected
        members = [member for member in story.members.values() if member.is_counted]
        dependent_share = subject.dependent_share(members)
        # First, since it needs no term: it decides most calls.
        if _distinct_times(members) < MIN_DISTINCT_TIMES * dependent_share * len(members):
            return float("inf")
        counts = subject.count_terms(members)
        core = subject.core_terms(members, counts)
        # Headlines that share no term may be about what the openings of their texts share.
        common = core or subject.core_terms(members, Counter(t for member in members for t in member.terms))
        if (
            not common
            or _core_share(counts, core) > 1.0 - (1.0 - MAX_CORE_SHARE) * dependent_share
            or subject.known_share(members, counts, core, self.rates) < MIN_KNOWN_SHARE * dependent_share
        ):
            return float("inf")
        margin = INDEPENDENT_MARGIN + (GENERAL_MARGIN - INDEPENDENT_MARGIN) * dependent_share
        return max(expected * FIRST_DAY_EXCESS, margin * min(map(self.expected, common)))

    def _history_is_thin(self) -> bool:
        """Whether the history has fewer documents than make a day known at the present volume."""
        in_window = self._documents.total()
        windows = KNOWN_VOLUME_SHARE * HOURS_PER_DAY / self._baseline.window_hours
        return self._baseline.document_count - in_window < windows * in_window


def _core_share(counts: Counter[str], core: set[str]) -> float:
    """Share of the terms of all items that are ``core``, 0..1."""
    return sum(counts[term] for term in core) / counts.total() if core else 0.0


def _distinct_times(members: Iterable[WindowItem]) -> int:
    """Number of minutes in which the sources published these items, summed over the sources."""
    return len({(member.source, member.at_ms // MINUTE_MS) for member in members})
