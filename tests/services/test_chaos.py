"""Short form of ``scripts/chaos``: six kinds of fault, once each."""

import pytest

from tests.chaos.faults import FAULTS
from tests.chaos.harness import chaos

KINDS = ("store killed", "log torn", "store full", "connections cut", "answers nonsense", "clock moved")


@pytest.mark.services
@pytest.mark.timeout(240)
async def test_no_acknowledged_article_is_lost_and_no_event_is_repeated() -> None:
    """Two replicas under load; checked after each fault."""
    report = await chaos("always", {kind: FAULTS[kind] for kind in KINDS}, len(KINDS), rate=30)

    print(*report.lines(), sep="\n")
    assert report.failures == {}
    assert report.figures["acknowledged"] > 100
    assert min(count for counts in report.before.values() for count in counts) > 0
