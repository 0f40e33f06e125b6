"""Fault injection under load (``scripts/chaos``), against five deployments.

    replicas    two replicas of the service that share one store through a proxy (``replicas.py``)
    machine     one service with two workers and its embedded store, on a small disk (``machine.py``)
    sentinel, address, cluster
                two workers whose store fails over: Sentinel promotes a replica, the address moves to one, a
                primary of the cluster is replaced (``failover.py``)

Crawlers post groups of three near-copies concurrently while one fault after another is injected. After each
fault, every article acknowledged since the previous one must be in the store with the verdict that was
answered, and the service must return it for the newest of them and some older ones; at the end all are read
again. Each group has exactly one new article. Each topic with more than fifteen reports, posted before,
during and after a fault, becomes exactly one event that fires once. Each article is exactly once in the
article stream.

Nothing is silent: every refusal says why and when to retry, no valid article is refused for good, nothing is
refused for lack of a store while the service says that it is ready, a full disk, a wrong clock and a damaged
log are reported by ``/readyz``, and the service is back within its restart time.

Runs, each on a new store, by deployment and setting. Any violation is a failure (exit code 1) under

    always      appendfsync always
    replicated  the same, and acknowledged is what every replica has

and is counted under

    everysec    appendfsync everysec
    power       the store killed and the end of its log cut off, with acknowledged articles
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path

from aggregator.runtime.event_loop import run_loop
from tests.chaos.failover import FAILOVER_FAULTS
from tests.chaos.faults import FAULTS, POWER_LOSS
from tests.chaos.machine_faults import MACHINE_FAULTS
from tests.chaos.report import ChaosReport
from tests.chaos.run import RATE, Fault, chaos

FAULTS_OF: Mapping[str, Mapping[str, Fault]] = {
    "replicas": FAULTS,
    "machine": MACHINE_FAULTS,
    **FAILOVER_FAULTS,
}
RUNS = (
    *("replicas,always", "machine,always", "replicas,power"),
    *(f"{deployment},replicated" for deployment in FAILOVER_FAULTS),
    *(f"{deployment},everysec" for deployment in FAULTS_OF),
)


async def run_all(args: argparse.Namespace) -> list[ChaosReport]:
    """Run the selected runs and print their summaries."""
    results = []
    for name in args.runs:
        deployment, setting = name.split(",")
        known = POWER_LOSS if setting == "power" else FAULTS_OF[deployment]
        faults = {kind: fault for kind, fault in known.items() if not args.kinds or kind in args.kinds}
        limits = {"seed": args.seed, "rate": args.rate, "longest_s": 60 * args.minutes}
        if faults:
            results.append(await chaos(deployment, setting, faults, args.each * len(faults), **limits))
            print("\n".join(results[-1].lines()), flush=True)
    return results


def main() -> int:
    """Exit code 1 if an invariant was violated under ``always`` or ``replicated``."""
    parser = argparse.ArgumentParser(
        prog="scripts/chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=30, help="faults of each kind in each run")
    parser.add_argument("--runs", nargs="*", choices=RUNS, default=RUNS, metavar="DEPLOYMENT,SETTING")
    kinds = [kind for faults in FAULTS_OF.values() for kind in faults]
    parser.add_argument("--kinds", nargs="*", choices=kinds, help="kinds of faults; default: all")
    parser.add_argument("--rate", type=float, default=RATE, help="articles posted per second")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="time limit for the faults of each run"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file, too")
    args = parser.parse_args()
    results: list[ChaosReport] = run_loop(run_all(args))
    if args.json:
        args.json.write_text(json.dumps([result.as_dict() for result in results], indent=1))
    failures = {
        r.setting: r.failures for r in results if r.setting.endswith(("always", "replicated")) and r.failures
    }
    if failures:
        print(f"FAILED: {failures}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
