"""Runs of the dispatcher wait for their calls, also on a busy machine."""

from __future__ import annotations

import pytest

from aggregator.events.webhooks import dispatcher
from tests.support.hang_limit import HANG_LIMIT_S


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """See the module."""
    monkeypatch.setattr(dispatcher, "PATIENCE_S", HANG_LIMIT_S)
