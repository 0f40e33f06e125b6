"""``aggregator explain A B``: why two articles are duplicates, related, or neither.

A command of the server, which it imports; asked of a running service, or of a store with ``--store``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from aggregator import jsonl
from aggregator.cli.common_options import check_profile, requested_profile
from aggregator.cli.ingest_targets import check_target_options, client_errors_translated
from aggregator.contract.decoding import to_article
from aggregator.errors import EXIT_OK, InvalidInput, NotFound, StoreUnavailable
from aggregator.runtime.addresses import service_url
from aggregator.runtime.event_loop import run_loop
from aggregator.settings import Settings
from aggregator_client import wire
from aggregator_client.line_sender import LineSender

MAX_PASSAGES_SHOWN = 5


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Print the comparison. Raises NotFound for an unknown id."""
    check_target_options(args)
    sides = (_parse_side(args.first), _parse_side(args.second))
    compare = _compare_on_server if args.store is None else _compare_in_store
    try:
        explanation = run_loop(compare(args, settings, *sides))
    except (NotFound, StoreUnavailable) as error:
        if missing := " or ".join(repr(side) for side in sides if isinstance(side, str)):
            error.args = (f"There is no file {missing}, and as an id: {error}",)
        else:
            error.args = (f"{error} Two files need none with --store memory.",)
        raise
    for key, side, name in zip(("a", "b"), sides, (args.first, args.second), strict=True):
        if not isinstance(side, str):
            explanation[key]["label"] = name
    if not all(isinstance(side, str) for side in sides):
        explanation["summary"] += " A text file has no headline, outlet or date, which the rule uses too."
    print(json.dumps(explanation, ensure_ascii=False) if args.json else format_text(explanation))
    return EXIT_OK


Side = str | dict[str, str]


def _parse_side(argument: str) -> Side:
    if argument != jsonl.STDIN and not Path(argument).is_file():
        return argument
    try:
        data = sys.stdin.buffer.read() if argument == jsonl.STDIN else Path(argument).read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{argument} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{argument} is not UTF-8 text.") from None
    if not text.strip():
        raise InvalidInput(f"{argument} is empty.")
    return {"text": text}


async def _compare_in_store(args: argparse.Namespace, settings: Settings, a: Side, b: Side) -> dict[str, Any]:
    from aggregator.app import open_service

    first, second = (
        side if isinstance(side, str) else to_article(wire.ArticleIn(text=side["text"]), for_storage=False)
        for side in (a, b)
    )
    profile = requested_profile(args)
    async with open_service(settings) as service:
        if profile:
            check_profile(service.articles.policies, profile)
        explanation = await service.articles.explain.explain_pair(first, second, profile=profile)
    result: dict[str, Any] = msgspec.to_builtins(explanation)
    return result


async def _compare_on_server(
    args: argparse.Namespace, settings: Settings, a: Side, b: Side
) -> dict[str, Any]:
    url = args.server or service_url(settings.host, settings.port)
    profile = requested_profile(args)
    body = msgspec.json.encode({"a": a, "b": b} | ({"policy": profile} if profile else {}))
    with client_errors_translated():
        async with LineSender.open(url, settings.key) as server:
            result: dict[str, Any] = json.loads(await server.post("/v1/explain", body))
    return result


def format_text(explanation: dict[str, Any]) -> str:
    """The explanation as text for a terminal."""
    a, b = explanation["a"], explanation["b"]
    opposite = "One reverses the other by a negation, or by a word and its opposite."
    lines = [*([opposite] if explanation["reversed"] else []), explanation["summary"], ""]
    for side in (a, b):
        lines.append(f"  {side['fingerprint']}  {side['space']}  {side['label']}")
    if explanation["differing_bits"] is not None:
        lines += ["", *_format_bits(a["fingerprint"], b["fingerprint"]), ""]
    overlap = explanation["overlap"]
    lines.append(
        f"  shared wording: containment {overlap['containment']}, resemblance {overlap['resemblance']}, "
        f"{overlap['shared']} shingles"
    )
    if near := explanation["relatedness"]:
        lines.append(f"  relatedness: similarity {near['similarity']}. {near['summary']}")
    if explanation["updated_figures"]:
        lines.append(
            f"  different figures: {_format_figures(a['figures'])} | {_format_figures(b['figures'])}"
        )
    lines += [
        f'  both: "{passage}"' for passage in (explanation["shared_passages"] or [])[:MAX_PASSAGES_SHOWN]
    ]
    for name, side in (("first", a), ("second", b)):
        lines += [
            f'  only the {name}: "{passage}"' for passage in (side["own_passages"] or [])[:MAX_PASSAGES_SHOWN]
        ]
    return "\n".join(lines)


def _format_bits(a: str, b: str) -> list[str]:
    first, second = int(a, 16), int(b, 16)
    rows = (f"{first:064b}", f"{second:064b}", f"{first ^ second:064b}".translate({48: " ", 49: "^"}))
    return ["  " + " ".join(row[at : at + 16] for at in range(0, 64, 16)).rstrip() for row in rows]


def _format_figures(figures: list[str] | None) -> str:
    return ", ".join(figures) if figures else "(texts not stored)"
