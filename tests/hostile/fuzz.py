"""Mutated bytes against every decoder (``scripts/check``); a short form is part of the tests.

    python -m tests.hostile.fuzz [--guided] [--share 1.0] [--only NAME ...] [--seed N]

Prints executions per target; exit code 1 if any input raised an error other than ``AggregatorError``. Inputs
are seeds with a few bytes changed; with ``--guided`` atheris (libFuzzer) searches for inputs that reach new
code instead, in one process per target. ``--share`` scales each target's number of executions.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

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


def fuzz(share: float, seed: int, only: Sequence[str] = ()) -> tuple[dict[str, tuple[int, float]], list[str]]:
    """Executions and seconds per target, and the unexpected errors."""
    from aggregator.errors import AggregatorError
    from tests.hostile.targets import Target, targets

    def unexpected_error(target: Target, data: bytes) -> str | None:
        try:
            target.run(data)
        except AggregatorError:
            return None
        except Exception as error:
            return f"{target.name}: {type(error).__name__}: {error} on {data!r}"
        return None

    executions: dict[str, tuple[int, float]] = {}
    failures = []
    with tempfile.TemporaryDirectory() as directory:
        for target in targets(Path(directory)):
            if only and target.name not in only:
                continue
            rng = random.Random(f"{seed} {target.name}")
            started_s, count = time.perf_counter(), max(1, round(share * target.runs))
            for number in range(count):
                data = mutate(rng, rng.choice(target.seeds)) if number else target.seeds[0]
                error = unexpected_error(target, data)
                if error is not None:
                    failures.append(error)
                    break
            executions[target.name] = number + 1, time.perf_counter() - started_s
    return executions, failures


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
    share: float, seed: int, only: Sequence[str]
) -> tuple[dict[str, tuple[int, float]], list[str]]:
    """The same with atheris, in one process per target, since atheris exits its process."""
    from tests.hostile.targets import targets

    executions: dict[str, tuple[int, float]] = {}
    failures = []
    with tempfile.TemporaryDirectory() as directory:
        for target in targets(Path(directory)):
            if only and target.name not in only:
                continue
            options = ["--target", target.name, "--share", str(share), "--seed", str(seed)]
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
            executions[target.name] = int(count[1]) if count else 0, time.perf_counter() - started_s
            print(f"{target.name}: done", file=sys.stderr, flush=True)
            if done.returncode or count is None:
                failures.append(f"{target.name}: {output[-3000:]}")
    return executions, failures


def run_atheris(name: str, share: float, seed: int) -> None:
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

    limits = [f"-runs={max(1, round(share * target.runs))}", f"-seed={seed}", f"-max_len={MAX_INPUT_BYTES}"]
    atheris.Setup(
        [
            sys.argv[0],
            *limits,
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
    options.add_argument("--only", nargs="*", default=(), metavar="TARGET")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--target", help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.target:
        run_atheris(args.target, args.share, args.seed)
    run = fuzz_guided if args.guided else fuzz
    executions, failures = run(args.share, args.seed, args.only)
    for name, (count, seconds) in executions.items():
        print(f"fuzz {name:22} {count:8} executions in {seconds:6.1f} s")
    for failure in failures:
        print("FAILED", failure)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
