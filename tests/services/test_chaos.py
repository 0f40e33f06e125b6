"""Short form of ``scripts/chaos``: some kinds of fault on each deployment, once each."""

import pytest

from tests.chaos.faults import FAULTS
from tests.chaos.machine_faults import MACHINE_FAULTS
from tests.chaos.run import Fault, chaos

KINDS = {
    "replicas": (
        "store killed",
        "log torn",
        "store full",
        "connections cut",
        "answers nonsense",
        "clock moved",
    ),
    "machine": ("worker killed", "analysis killed", "machine's log torn", "machine suspended"),
}


@pytest.mark.services
@pytest.mark.parametrize("deployment", KINDS)
async def test_no_acknowledged_article_is_lost_and_no_event_is_repeated(deployment: str) -> None:
    """Under load; checked after each fault. Every refusal is explained."""
    known: dict[str, Fault] = {**FAULTS, **MACHINE_FAULTS}
    kinds = KINDS[deployment]
    report = await chaos(deployment, "always", {kind: known[kind] for kind in kinds}, len(kinds), rate=30)

    print(*report.lines(), sep="\n")
    assert report.failures == {}
    assert report.figures["acknowledged"] > 100
    assert min(count for counts in report.before.values() for count in counts) > 0
