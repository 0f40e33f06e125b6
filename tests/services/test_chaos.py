"""Short form of ``scripts/chaos``: some kinds of fault on each deployment, once each."""

import shutil

import pytest

from tests.chaos.harness import FAULTS_OF
from tests.chaos.run import chaos

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
    "sentinel": ("Sentinel: primary killed", "Sentinel: primary hangs", "all replicas killed"),
    "address": ("address: old server demoted", "address: old server hangs"),
    "cluster": ("cluster: primary killed",),
}


@pytest.mark.services
@pytest.mark.parametrize("deployment", KINDS)
async def test_no_acknowledged_article_is_lost_and_no_event_is_repeated(deployment: str) -> None:
    """Under load; checked after each fault. Every refusal is explained."""
    if deployment == "sentinel" and shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    setting = "always" if deployment in ("replicas", "machine") else "replicated"
    faults = {kind: FAULTS_OF[deployment][kind] for kind in KINDS[deployment]}
    report = await chaos(deployment, setting, faults, len(faults), rate=30)

    print(*report.lines(), sep="\n")
    assert report.failures == {}
    assert report.figures["acknowledged"] > 30 * len(faults)
    assert min(count for counts in report.before.values() for count in counts) > 0
