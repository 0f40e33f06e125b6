"""Readiness: named checks that say why the service must not receive requests now.

``/readyz``, the metric ``aggregator_not_ready``, the log and ``aggregator doctor`` all report what the checks
find. Each part of the service that can be unfit to serve adds a check in ``app.py``; the store's own state
(``StoreInfo``) is reported separately and first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from aggregator.errors import AggregatorError
from aggregator.log_limits import ChangeFilter

ReadinessCheck = Callable[[], Awaitable[str | None]]
"""Returns why the service is not ready, as one sentence that names the repair; None if it is ready."""

CHECK_TIMEOUT_S = 2.0

logger = logging.getLogger(__name__)


class Readiness:
    """Runs all checks and remembers their results.

    ``problems`` maps the name of each failing check (a short word for a metric label, such as ``clock``) to
    its sentence, as of the run that started last of those that have ended. A change is logged once.
    """

    def __init__(self, checks: Mapping[str, ReadinessCheck]) -> None:
        self._checks = dict(checks)
        self._changes = {name: ChangeFilter() for name in self._checks}
        self._runs_started = 0
        self._newest_ended = 0
        self.problems: dict[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all checks."""
        return tuple(self._checks)

    async def run(self) -> Mapping[str, str]:
        """Run all checks in parallel; returns ``problems``. A check that fails or hangs is a problem too.

        Runs may overlap: one that hung since before a fault of the store ended changes nothing if a later
        one has ended before it.
        """
        self._runs_started += 1
        run = self._runs_started
        sentences = await asyncio.gather(*map(self._run_one, self._checks))
        if run > self._newest_ended:
            self._newest_ended = run
            self._set_problems(dict(zip(self._checks, sentences, strict=True)))
        return self.problems

    async def _run_one(self, name: str) -> str | None:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                return await self._checks[name]()
        except TimeoutError:
            return f"The check of the {name} did not finish within {CHECK_TIMEOUT_S:g} s."
        except AggregatorError as error:
            return str(error)

    def _set_problems(self, sentences: Mapping[str, str | None]) -> None:
        self.problems = {name: sentence for name, sentence in sentences.items() if sentence}
        for name, changes in self._changes.items():
            sentence = self.problems.get(name)
            if sentence is None:
                if changes.clear():
                    logger.warning("ready again: the problem of the %s has ended", name)
            elif changes.is_new(sentence):
                logger.error("not ready (%s): %s", name, sentence)
