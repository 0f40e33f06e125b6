"""Readiness: named checks that say why the service must not receive requests now.

``/readyz``, the metric ``aggregator_not_ready``, the log and ``aggregator doctor`` report what the checks of
``app.py`` find; the store's own state (``StoreInfo``) is reported separately and first.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping

from aggregator.errors import AggregatorError, StoreUnavailable
from aggregator.log_limits import ChangeFilter

# Returns why the service is not ready, as one sentence that names the repair; None if it is ready.
ReadinessCheck = Callable[[], Awaitable[str | None]]

CHECK_TIMEOUT_S = 2.0
# How long a check that does not finish (overloaded process, broken connection) keeps its last result.
MAX_RESULT_AGE_S = 15.0

logger = logging.getLogger(__name__)


class Readiness:
    """Runs all checks; ``problems`` maps the name of each failing one (a metric label) to its sentence."""

    def __init__(self, checks: Mapping[str, ReadinessCheck]) -> None:
        self._checks, self.names = dict(checks), tuple(checks)
        self._changes = {name: ChangeFilter() for name in self._checks}
        self._finished_s = dict.fromkeys(self._checks, -math.inf)
        self.problems: dict[str, str] = {}

    async def run(self) -> Mapping[str, str]:
        """Run all checks in parallel; returns ``problems``. Runs may overlap."""
        await asyncio.gather(*map(self._run_one, self._checks))
        return self.problems

    async def _run_one(self, name: str) -> None:
        late = f"The check of the {name} did not finish within {CHECK_TIMEOUT_S:g} s."
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                sentence = await self._checks[name]()
        except TimeoutError:
            if time.monotonic() - self._finished_s[name] > MAX_RESULT_AGE_S:
                self._set(name, late)
            return
        except AggregatorError as error:
            sentence = str(error)
            if type(error) is StoreUnavailable:  # reported on its own; posts go on as soon as it answers
                sentence = None if self.problems.get(name) == late else self.problems.get(name)
        self._finished_s[name] = time.monotonic()
        self._set(name, sentence)

    def _set(self, name: str, sentence: str | None) -> None:
        if sentence is None:
            self.problems.pop(name, None)
            if self._changes[name].clear():
                logger.info("ready again: the problem of the %s has ended", name)
        else:
            self.problems[name] = sentence
            if self._changes[name].is_new(sentence):
                logger.error("not ready (%s): %s", name, sentence)
