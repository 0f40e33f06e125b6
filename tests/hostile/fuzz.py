"""Mutated bytes against every decoder, and their CPU time per byte; a short form is part of the tests.

    python -m tests.hostile.fuzz [--guided [--seconds N]] [--share 1.0] [--only NAME ...] [--seed N]

Prints executions and the highest CPU time per input byte of each target; exit code 1 if any input raised an
error other than ``AggregatorError`` or exceeded the target's bound on CPU. Inputs are seeds with a few bytes
changed, in every eighth of them with a part repeated up to ``Target.max_bytes``, which shows costs that grow
faster than the input. An input counts with at least MIN_BYTES, and its CPU time is the least of REPEATS runs.
With ``--guided`` atheris (libFuzzer) searches for inputs that reach new code instead, in one process per
target, for ``--seconds`` or a number of executions, and CPU time is not measured. ``--share`` scales each
target's number of executions.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.hostile.targets import Target

ODD_BYTES = (
    b"<",
    b"\x00",
    b"\xff\xff\xff\xff",
    b"{",
    b"[" * 50,
    b"\xed\xa0\x80",
    b"&#",
    b"\r\n",
    b"\x80\x00\x00\x00",
    b"-1",
)
EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
MAX_INPUT_BYTES = 2000
MIN_BYTES = 1024  # a shorter input takes the time of the call itself
REPEATS = 5


@dataclass(slots=True)
class Executions:
    """What was run of one target, and its highest CPU time per byte, of an input of ``worst_bytes``."""

    count: int = 0
    seconds: float = 0.0
    worst_ns: float = 0.0
    worst_bytes: int = 0
    worst_input: bytes = b""
    bound_ns: int = 0


def fuzz(share: float, seed: int, only: Sequence[str] = ()) -> tuple[dict[str, Executions], list[str]]:
    """Executions per target, and the failures: unexpected errors, and inputs above the bound on CPU time."""
    from aggregator.errors import AggregatorError
    from tests.hostile.targets import targets

    def unexpected_error(target: Target, data: bytes) -> str | None:
        try:
            target.run(data)
        except AggregatorError:
            return None
        except Exception as error:
            return f"{target.name}: {type(error).__name__}: {error} on {data!r}"
        return None

    executions: dict[str, Executions] = {}
    failures = []
    with tempfile.TemporaryDirectory() as directory:
        for target in targets(Path(directory)):
            if only and target.name not in only:
                continue
            rng = random.Random(f"{seed} {target.name}")
            done = executions[target.name] = Executions(bound_ns=target.max_ns_per_byte)
            started_s = time.perf_counter()
            for number in range(max(1, round(share * target.runs))):
                data = mutate(rng, rng.choice(target.seeds)) if number else target.seeds[0]
                if number % 8 == 7:
                    data = repeat_part(rng, data, target.max_bytes)
                cpu_started_ns = time.thread_time_ns()
                error = unexpected_error(target, data)
                ns_per_byte = (time.thread_time_ns() - cpu_started_ns) / max(len(data), MIN_BYTES)
                done.count += 1
                if error is not None:
                    failures.append(error)
                    break
                if ns_per_byte > done.worst_ns and (ns_per_byte := least_cpu(target, data)) > done.worst_ns:
                    done.worst_ns, done.worst_bytes = ns_per_byte, len(data)
                    done.worst_input = data[:300]
                    if ns_per_byte > target.max_ns_per_byte:
                        failures.append(
                            f"{target.name}: {ns_per_byte:.0f} ns of CPU per byte, more than "
                            f"{target.max_ns_per_byte}, for {len(data)} bytes: {data[:300]!r} ..."
                        )
                        break
            done.seconds = time.perf_counter() - started_s
    return executions, failures


def least_cpu(target: Target, data: bytes) -> float:
    """CPU time in ns per byte of the fastest of REPEATS runs, without garbage collections."""
    found = []
    gc.disable()
    try:
        for _ in range(REPEATS):
            started_ns = time.thread_time_ns()
            with suppress(Exception):
                target.run(data)
            found.append(time.thread_time_ns() - started_ns)
    finally:
        gc.enable()
    return min(found) / max(len(data), MIN_BYTES)


def repeat_part(rng: random.Random, data: bytes, max_bytes: int) -> bytes:
    """A copy in which a part of at most 64 bytes is repeated until it has about ``max_bytes``."""
    at = rng.randrange(len(data) + 1)
    part = data[at : at + rng.randrange(1, 65)]
    if not part:
        return data
    return (data[:at] + part * ((max_bytes - len(data)) // len(part)) + data[at:])[:max_bytes]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Copy with a few bytes replaced, removed, repeated or inserted; every eighth one is truncated."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 5, 8))):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(4):
            case 0:
                out[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del out[at : at + rng.randrange(64)]
            case 2:
                out[at:at] = out[at : at + rng.randrange(64)]
            case _:
                out[at:at] = rng.choice(ODD_BYTES)
    if not rng.randrange(8):
        del out[rng.randrange(len(out) + 1) :]
    return bytes(out)


def fuzz_guided(
    limit: Sequence[str], seed: int, only: Sequence[str]
) -> tuple[dict[str, Executions], list[str]]:
    """The same with atheris, in one process per target, since atheris exits its process."""
    from tests.hostile.targets import targets

    executions: dict[str, Executions] = {}
    failures = []
    with tempfile.TemporaryDirectory() as directory:
        for target in targets(Path(directory)):
            if only and target.name not in only:
                continue
            options = ["--target", target.name, *limit, "--seed", str(seed)]
            started_s = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-m", "tests.hostile.fuzz", *options],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                env={**os.environ, "TMPDIR": directory},
            )
            output = done.stdout + done.stderr
            count = EXECUTED.search(output)
            executions[target.name] = Executions(
                int(count[1]) if count else 0, time.perf_counter() - started_s
            )
            print(f"{target.name}: done", file=sys.stderr, flush=True)
            if done.returncode or count is None:
                failures.append(f"{target.name}: {output[-3000:]}")
    return executions, failures


def run_atheris(name: str, share: float, seconds: int, seed: int) -> None:
    """Run one target with atheris; does not return."""
    import atheris

    with atheris.instrument_imports(include=["aggregator"]):
        from aggregator.errors import AggregatorError
        from tests.hostile.targets import targets
    directory = Path(tempfile.mkdtemp())
    (target,) = (target for target in targets(directory) if target.name == name)
    corpus = directory / "corpus"
    corpus.mkdir()
    for number, data in enumerate(target.seeds):
        (corpus / str(number)).write_bytes(data)

    def run(data: bytes) -> None:
        with suppress(AggregatorError):
            target.run(data)

    runs = max(1, round(share * target.runs))
    limit = f"-max_total_time={seconds}" if seconds else f"-runs={runs}"
    atheris.Setup(
        [
            sys.argv[0],
            limit,
            f"-seed={seed}",
            f"-max_len={MAX_INPUT_BYTES}",
            "-print_final_stats=1",
            "-timeout=20",
            f"-artifact_prefix={directory}/",
            str(corpus),
        ],
        run,
    )
    atheris.Fuzz()


def main() -> int:
    """Everything, as a table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--guided", action="store_true", help="by atheris, which looks for new code")
    options.add_argument("--share", type=float, default=1.0, help="of the usual number of executions")
    options.add_argument("--seconds", type=int, default=0, help="for each target, with --guided")
    options.add_argument("--only", nargs="*", default=(), metavar="TARGET")
    options.add_argument("--inputs", action="store_true", help="print the start of the slowest inputs")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--target", help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.target:
        run_atheris(args.target, args.share, args.seconds, args.seed)
    if args.guided:
        limit = ["--share", str(args.share), "--seconds", str(args.seconds)]
        executions, failures = fuzz_guided(limit, args.seed, args.only)
    else:
        executions, failures = fuzz(args.share, args.seed, args.only)
    print(f"{'fuzz target':22} {'executions':>10} {'s':>7} {'ns CPU/byte':>12} {'of bytes':>9} {'bound':>9}")
    for name, done in executions.items():
        print(
            f"{name:22} {done.count:10} {done.seconds:7.1f} {done.worst_ns:12.0f} {done.worst_bytes:9} "
            f"{done.bound_ns:9}"
        )
        if args.inputs:
            print("   ", done.worst_input)
    for failure in failures:
        print("FAILED", failure)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
