"""``aggregator explain A B``: why two articles are copies, related, or neither."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from aggregator.cli.ingest import check_where
from aggregator.cli.ingest_targets import Server, patiently, refusal
from aggregator.contract import encoding, requests
from aggregator.contract.decoding import to_article
from aggregator.errors import BadInput, NotFound
from aggregator.offline import jsonl
from aggregator.runtime.addresses import url_of
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import OK
from aggregator.settings import Settings

SHOWN_PASSAGES = 5


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Print the comparison. Raises NotFound for an unknown id."""
    check_where(args)
    sides = (_side(args.first), _side(args.second))
    compare = _by_server if args.store is None else _by_store
    try:
        found = run_loop(compare(args, settings, *sides))
    except NotFound as error:
        raise NotFound(f"{str(error).rstrip('.')}, and there is no file of that name.") from None
    for side, given, name in zip(("a", "b"), sides, (args.first, args.second), strict=True):
        if not isinstance(given, str):
            found[side]["label"] = name
    print(json.dumps(found, ensure_ascii=False) if args.json else as_text(found))
    return OK


Side = str | dict[str, str]


def _side(given: str) -> Side:
    """A file's text when there is such a file (or ``-``), else an id."""
    if given != jsonl.STDIN and not Path(given).is_file():
        return given
    try:
        data = sys.stdin.buffer.read() if given == jsonl.STDIN else Path(given).read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise BadInput(f"{given} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{given} is not UTF-8 text.") from None
    if not text.strip():
        raise BadInput(f"{given} is empty.")
    return {"text": text}


async def _by_store(args: argparse.Namespace, settings: Settings, a: Side, b: Side) -> dict[str, Any]:
    from aggregator.app import open_service

    first, second = (
        side if isinstance(side, str) else to_article(requests.ArticleIn(text=side["text"]), stored=False)
        for side in (a, b)
    )
    async with open_service(settings) as service:
        found = await patiently(lambda: service.explain.pair(first, second))
    answer: dict[str, Any] = msgspec.to_builtins(encoding.explanation(found))
    return answer


async def _by_server(args: argparse.Namespace, settings: Settings, a: Side, b: Side) -> dict[str, Any]:
    url = args.server or url_of(settings.host, settings.port)
    body = msgspec.json.encode({"a": a, "b": b})
    async with Server.open(url, settings.key) as server:
        status, answer = await server.request("POST", "/v1/explain", body, "application/json")
    if status != 200:
        raise refusal(status, answer, url)
    found: dict[str, Any] = json.loads(answer)
    return found


def as_text(found: dict[str, Any]) -> str:
    """The comparison for a terminal."""
    a, b = found["a"], found["b"]
    lines = [found["summary"], ""]
    for side in (a, b):
        lines.append(f"  {side['fingerprint']}  {side['space']}  {side['label']}")
    if found["differing_bits"] is not None:
        lines += ["", *_bits(a["fingerprint"], b["fingerprint"]), ""]
    overlap = found["overlap"]
    lines.append(
        f"  shared wording: containment {overlap['containment']}, resemblance {overlap['resemblance']}, "
        f"{overlap['shared']} shingles"
    )
    if found["updated_figures"]:
        lines.append(f"  figures that differ: {_listed(a['figures'])} | {_listed(b['figures'])}")
    lines += [f'  both: "{passage}"' for passage in (found["shared_passages"] or [])[:SHOWN_PASSAGES]]
    for name, side in (("first", a), ("second", b)):
        lines += [
            f'  only the {name}: "{passage}"' for passage in (side["own_passages"] or [])[:SHOWN_PASSAGES]
        ]
    return "\n".join(lines)


def _bits(a: str, b: str) -> list[str]:
    """Both fingerprints bit by bit, most significant first, in blocks of 16; what differs is marked below."""
    first, second = int(a, 16), int(b, 16)
    rows = (f"{first:064b}", f"{second:064b}", f"{first ^ second:064b}".translate({48: " ", 49: "^"}))
    return ["  " + " ".join(row[at : at + 16] for at in range(0, 64, 16)).rstrip() for row in rows]


def _listed(figures: list[str] | None) -> str:
    return ", ".join(figures) if figures else "(texts not kept)"
