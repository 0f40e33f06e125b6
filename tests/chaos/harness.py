"""Fault injection under load (``scripts/chaos``), against two deployments.

    replicas    two replicas of the service that share one store through a proxy (``replicas.py``)
    machine     one service with two workers and its embedded store, on a small disk (``machine.py``)

Crawlers post groups of three near-copies concurrently while one fault after another is injected. After each
fault, every article acknowledged since the previous one must be in the store with the verdict that was
answered, and the service must return it for the newest of them and some older ones; at the end all are read
again. Each group has exactly one new article. Each topic with more than fifteen reports, posted before,
during and after a fault, becomes exactly one event that fires once. Each article is exactly once in the
article stream.

Nothing is silent: every refusal says why and when to retry, no valid article is refused for good, nothing is
refused for lack of a store while the service says that it is ready, a full disk, a wrong clock and a damaged
log are reported by ``/readyz``, and the service is back within its restart time.

Runs, each on a new store:

    always      all faults in turn, appendfsync always: any loss is a failure (exit code 1)
    everysec    the store killed and its log torn, appendfsync everysec: losses are counted
    power       the store killed and the end of its log cut off, with acknowledged articles: losses are
                counted
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path

from aggregator.runtime.event_loop import run_loop
from tests.chaos.faults import FAULTS, POWER_LOSS
from tests.chaos.machine_faults import MACHINE_FAULTS
from tests.chaos.report import ChaosReport
from tests.chaos.run import DEPLOYMENTS, RATE, Fault, chaos

EVERYSEC = ("store killed", "log torn")


async def run_all(args: argparse.Namespace) -> list[ChaosReport]:
    """Run the selected runs and print their summaries."""

    def chosen(faults: Mapping[str, Fault]) -> Mapping[str, Fault]:
        return {kind: fault for kind, fault in faults.items() if not args.kinds or kind in args.kinds}

    replicas, machine = chosen(FAULTS), chosen(MACHINE_FAULTS)
    everysec = {kind: FAULTS[kind] for kind in EVERYSEC}
    runs: list[tuple[str, str, Mapping[str, Fault], int]] = [
        ("replicas", "always", replicas, args.each * len(replicas)),
        ("machine", "always", machine, args.each * len(machine)),
        ("replicas", "everysec", everysec, args.everysec),
        ("replicas", "power", POWER_LOSS, args.power),
    ]
    results = []
    for run in runs:
        if run[3] and args.deployment in (run[0], "both"):
            results.append(await chaos(*run, seed=args.seed, rate=args.rate, longest_s=60 * args.minutes))
            print("\n".join(results[-1].lines()), flush=True)
    return results


def main() -> int:
    """Exit code 1 if an invariant was violated under ``always``."""
    parser = argparse.ArgumentParser(
        prog="scripts/chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=30, help="faults of each kind, appendfsync always")
    parser.add_argument(
        "--everysec", type=int, default=20, metavar="FAULTS", help="faults of the everysec run"
    )
    parser.add_argument("--power", type=int, default=10, metavar="FAULTS", help="faults of the power run")
    parser.add_argument("--deployment", choices=[*DEPLOYMENTS, "both"], default="both")
    parser.add_argument(
        "--kinds",
        nargs="*",
        choices=[*FAULTS, *MACHINE_FAULTS],
        help="kinds of faults under appendfsync always; default: all",
    )
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
    failures = {r.setting: r.failures for r in results if r.setting.endswith("always") and r.failures}
    if failures:
        print(f"FAILED: {failures}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
