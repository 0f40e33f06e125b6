"""All settings: one frozen value, parsed once; the only module that reads the environment.

Each field carries its documentation and its check, so that README's table is generated from here
and every problem of a configuration is reported at once, in one sentence each. Inner modules take
plain numbers, never ``Settings``. A setting ``store_url`` is the variable ``AGGREGATOR_STORE_URL``
(``REDIS_URL`` is honoured too) and the option ``--store-url``.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from aggregator.errors import ConfigurationError

ENV_PREFIX = "AGGREGATOR_"
# Thresholds that are set together; a threshold that is given itself wins.
PRESETS: Mapping[str, Mapping[str, float]] = {
    "balanced": {},
    "precise": {
        "min_containment": 0.3,
        "min_shared_shingles": 90.0,
        "min_similarity": 0.3,
        "strong_containment": 0.85,
    },
}
STORE_SCHEMES = ("redis", "rediss", "redis+cluster", "rediss+cluster", "unix")


def _option(
    default: Any,
    doc: str,
    check: Callable[[Any], bool] | None = None,
    expects: str = "",
    secret: bool = False,
) -> Any:
    return field(default=default, metadata={"doc": doc, "check": check, "expects": expects, "secret": secret})


def _in_range(low: float, high: float) -> dict[str, Any]:
    return {"check": lambda v: low <= v <= high, "expects": f"a number from {low:g} to {high:g}"}


def _non_empty_text() -> dict[str, Any]:
    return {"check": lambda v: bool(v.strip()) and v.isprintable(), "expects": "a text that is not empty"}


def _is_http_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, a port that is no number
        return False


def _one_of(*names: str) -> dict[str, Any]:
    return {"check": lambda v: v in names, "expects": "one of " + ", ".join(names)}


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything an operator may choose."""

    host: str = _option("127.0.0.1", "Address to listen on.", **_non_empty_text())
    port: int = _option(8080, "Port to listen on (0: any free one).", **_in_range(0, 65535))
    public_url: str = _option(
        "",
        "Address under which readers reach the service, for links in feeds and webhooks; empty: the one they asked at.",
        lambda v: not v or _is_http_url(v),
        "an http:// or https:// address",
    )
    webhook_allow_private_addresses: bool = _option(
        False,
        "Webhooks may go to private addresses and plain http: for receivers in the newsroom's own network.",
    )
    workers: int = _option(1, "Server processes sharing the port.", **_in_range(1, 64))
    data_dir: str = _option("var", "Directory of the embedded store (its log and lock).", **_non_empty_text())
    store_url: str = _option(
        "",
        "URL of a Redis >= 7 or Valkey (redis://, rediss://, redis+cluster://, unix://), or memory; "
        "empty: embedded store. REDIS_URL is read too.",
        secret=True,
    )
    appendfsync: str = _option(
        "everysec",
        "Durability of the embedded store: always loses nothing, everysec may lose up to 2 s on a power loss.",
        **_one_of("always", "everysec"),
    )
    models_dir: str = _option("", "Directory of fitted models; empty: those that ship.")
    block_plan: str = _option(
        "4x16",
        "How fingerprints are cut into blocks (docs/OPERATING.md, Another model).",
        **_one_of("4x16", "5x13", "8x8"),
    )
    migration_models_dir: str = _option(
        "",
        "Directory of the models to change to: all articles are then written for both, and decided by models_dir.",
    )
    migration_block_plan: str = _option(
        "", "Block plan to change to, likewise; empty: the same.", **_one_of("", "4x16", "5x13", "8x8")
    )
    migration_serve: bool = _option(
        False,
        "Decide by what migration_models_dir and migration_block_plan name, once `aggregator reindex` has filled it.",
    )
    policy: str = _option(
        "verified",
        "Who decides: verified (fingerprint, then overlap), hamming (the paper's rule alone) or titled "
        "(one event, by headlines and terms).",
        **_one_of("verified", "hamming", "titled"),
    )
    preset: str = _option(
        "balanced",
        "Thresholds of verified: balanced (the defaults below) or precise (fewer false copies, more missed).",
        **_one_of(*PRESETS),
    )
    duplicate_bits: int = _option(3, "Largest Hamming distance of a duplicate.", **_in_range(0, 7))
    related_bits: int = _option(7, "Largest Hamming distance of a related article.", **_in_range(0, 7))
    related_min_cosine: float = _option(
        0.15,
        "Least cosine of their terms at which /related shows an article further away.",
        **_in_range(0, 1),
    )
    min_containment: float = _option(
        0.2, "Smallest share of the shorter text's wording that can make a copy ...", **_in_range(0.01, 1)
    )
    min_shared_shingles: float = _option(
        60.0,
        "... with at least so many shared shingles (two thirds of it when one has under two fifths of the "
        "other's length, five thirds when they are about equal) ...",
        **_in_range(1, 100_000),
    )
    min_similarity: float = _option(0.2, "... and terms whose cosine is at least this.", **_in_range(0, 1))
    strong_containment: float = _option(
        0.75, "Share of the shorter text's wording that makes a copy by itself.", **_in_range(0.01, 1)
    )
    updates_are_new: bool = _option(
        False, "A copy with other figures (tolls, prices) is an article of its own, not a duplicate."
    )
    fingerprints_only: bool = _option(
        False,
        "Store ids and fingerprints alone; needs policy hamming, and answers carry ids only.",
    )
    store_texts: bool = _option(False, "Keep each text, compressed, for explain, comparison and reindex.")
    retention_days: float = _option(
        90.0, "Forget articles after this many days (0: never).", **_in_range(0, 36500)
    )
    segment_max_articles: int = _option(
        10_000_000,
        "Articles after which the writable part of an index is sealed and the next one begun.",
        **_in_range(1, 10**9),
    )
    max_body_bytes: int = _option(
        2 * 1024 * 1024, "Largest request body or input line, decompressed.", **_in_range(1024, 2**30)
    )
    max_batch_lines: int = _option(10_000, "Most lines of one batch.", **_in_range(1, 10**6))
    analysis_processes: int = _option(
        1,
        "Processes of each worker that analyse batches, some 240 MB together and 20 MB for each further one, started when first needed (0: it does so itself).",
        **_in_range(0, 64),
    )
    max_inflight_articles: int = _option(
        128,
        "Articles sent one by one that a process works on at once, fewer when they take long; more are told to come again (503).",
        **_in_range(1, 100_000),
    )
    burst_items: int = _option(15, "An event fires above this many similar items ...", **_in_range(2, 10_000))
    burst_window_hours: float = _option(4.0, "... within this many hours.", **_in_range(0.1, 168))
    min_sources: int = _option(1, "Distinct sources an event needs.", **_in_range(1, 1000))
    sensitivity: float = _option(
        1.0, "How readily bursts above routine alert: 2 means twice as readily.", **_in_range(0.1, 10)
    )
    detector_interval_seconds: float = _option(
        2.0, "Pause between two readings of the article stream.", **_in_range(0.1, 60)
    )
    log_level: str = _option(
        "INFO", "Least severe log records shown.", **_one_of("DEBUG", "INFO", "WARNING", "ERROR")
    )
    log_format: str = _option("text", "Log records as lines of text or of json.", **_one_of("text", "json"))
    access_log: bool = _option(False, "A log record for each request.")
    key: str = _option(
        "",
        "The access key that commands send to a running service (`ingest`, `check`, `explain`, `work`).",
        lambda v: v.isascii() and v.isprintable() and len(v) <= 200,
        "printable ASCII characters",
        secret=True,
    )
    bootstrap_key: str = _option(
        "",
        "An admin key of your own making, of 32 to 200 characters, kept nowhere but here: "
        "for the first start, and for containers.",
        lambda v: not v or (32 <= len(v) <= 200 and v.isascii() and v.isprintable() and " " not in v),
        "32 to 200 printable ASCII characters without spaces",
        secret=True,
    )
    auth_disabled: bool = _option(
        False,
        "Ask nobody for a key, on any address: only behind a proxy with access control of its own.",
    )
    metrics_public: bool = _option(False, "Ask nobody for a key at /metrics.")
    rate_limit_per_second: float = _option(
        0.0,
        "Articles or other requests per second that one key may send (0: any number).",
        **_in_range(0, 1e6),
    )
    header_timeout_seconds: float = _option(
        10.0, "How long the head of a request may take to arrive.", **_in_range(0.01, 600)
    )
    body_timeout_seconds: float = _option(
        30.0, "How long a body may take to arrive, and a batch stand still.", **_in_range(0.01, 3600)
    )
    demo: bool = _option(False, "Replay the demonstration stream after start; keeps texts.")

    @property
    def in_memory(self) -> bool:
        """The store is this process's alone, and forgotten at its end."""
        return self.store_url.startswith("memory")


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach ``host``; a name other than localhost is not believed."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def load(
    environment: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Settings from the environment, then ``overrides`` (command line; None means not given).

    Raises ConfigurationError listing every wrong value and every unknown ``AGGREGATOR_*`` variable.
    """
    env = dict(os.environ if environment is None else environment)
    given = {k: v for k, v in (overrides or {}).items() if v is not None}
    fields = {f.name: f for f in dataclasses.fields(Settings)}
    values: dict[str, Any] = {}
    problems = _unknown_variables(env, fields)
    for name, option in fields.items():
        variable = ENV_PREFIX + name.upper()
        if name in given:
            raw, origin = given[name], "--" + name.replace("_", "-")
        elif variable in env:
            raw, origin = env[variable], variable
        elif name == "store_url" and env.get("REDIS_URL"):
            raw, origin = env["REDIS_URL"], "REDIS_URL"
        else:
            continue
        try:
            value = _parse_value(raw, type(option.default))
        except ValueError:
            shown = "the value" if option.metadata["secret"] else repr(raw)
            problems.append(f"{origin}: {shown} is not {_type_name(option)}.")
            continue
        check = option.metadata["check"]
        if check is not None and not check(value):
            shown = "the value" if option.metadata["secret"] else repr(value)
            problems.append(f"{origin}: {shown} must be {option.metadata['expects']}.")
        values[name] = value
    if not problems:
        settings = Settings(**(dict(PRESETS[values.get("preset", "balanced")]) | values))
        problems = _check_combinations(settings)
    if problems:
        raise ConfigurationError(problems)
    return settings


def _unknown_variables(env: Mapping[str, str], fields: Mapping[str, Any]) -> list[str]:
    known = {ENV_PREFIX + name.upper() for name in fields} | {ENV_PREFIX + "DATA"}
    return [
        f"{name}: there is no such setting; `aggregator serve --help` lists them."
        for name in sorted(env)
        if name.startswith(ENV_PREFIX) and name not in known
    ]


def _check_combinations(settings: Settings) -> list[str]:
    problems = []
    if settings.related_bits < settings.duplicate_bits:
        problems.append(
            f"related_bits ({settings.related_bits}) must not be below duplicate_bits ({settings.duplicate_bits})."
        )
    if settings.fingerprints_only and (settings.policy != "hamming" or settings.store_texts or settings.demo):
        problems.append("fingerprints_only: needs policy hamming, and neither store_texts nor demo.")
    url = settings.store_url
    scheme, separator, rest = url.partition("://")
    if url not in ("", "memory") and not (separator and rest and scheme in STORE_SCHEMES):
        expected = ", ".join(f"{scheme}://..." for scheme in STORE_SCHEMES)
        problems.append(f"store_url: expected memory or one of {expected}.")
    before_path = rest.partition("/")[0]
    # A name and a password may stand there; anything else would be taken for a host.
    if scheme == "unix" and before_path and not before_path.endswith("@"):
        problems.append(
            "store_url: give the path of the socket from the root, as in unix:///run/valkey.sock."
        )
    return problems


def _parse_value(raw: Any, kind: type) -> Any:
    if kind is bool:
        if isinstance(raw, bool):
            return raw
        lowered = str(raw).strip().lower()
        if lowered in {"1", "true", "yes", "on"}:
            return True
        if lowered in {"0", "false", "no", "off", ""}:
            return False
        raise ValueError(raw)
    if kind is float:
        value = float(raw)
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(raw)
        return value
    return kind(raw)


def _type_name(option: Any) -> str:
    names = {bool: "yes or no", int: "a whole number", float: "a number", str: "a text"}
    return names[type(option.default)]


def markdown_table() -> str:
    """The configuration table of README.md; a test keeps the two equal."""
    rows = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for option in dataclasses.fields(Settings):
        default = "" if option.default == "" else f"`{option.default}`"
        rows.append(f"| `{ENV_PREFIX}{option.name.upper()}` | {default} | {option.metadata['doc']} |")
    return "\n".join(rows)
