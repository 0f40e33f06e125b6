"""Settings of the service: one frozen value, parsed once from file, environment and command line.

The only module that reads the environment. Each field holds its documentation and its check; all problems of
a configuration are reported together. Inner modules take plain numbers, never ``Settings``.
"""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from aggregator.config_file import ConfigFile
from aggregator.errors import ConfigurationError

ENV_PREFIX = "AGGREGATOR_"
# Names the configuration file; a variable and no setting, because the file cannot name itself.
CONFIG_VARIABLE = ENV_PREFIX + "CONFIG"
DATA_VARIABLE = ENV_PREFIX + "DATA"  # of tests and evaluations
POLICY_NAMES = ("verified", "hamming")
USER_ROLES = ("reader", "editor", "admin")  # of people; crawlers send keys
STORE_SCHEMES = (*(s + kind for kind in ("", "+cluster", "+sentinel") for s in ("redis", "rediss")), "unix")


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
    return {"check": lambda v: bool(v.strip()) and v.isprintable(), "expects": "non-empty printable text"}


def _auto_or(low: int, high: int) -> dict[str, Any]:
    return {
        "check": lambda v: v == "auto" or (v.isdecimal() and low <= int(v) <= high),
        "expects": f"auto or a number from {low} to {high}",
    }


def _is_url(url: str, *schemes: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # unclosed brackets, or a port that is not a number
        return False


def _is_http_url(url: str) -> bool:
    return _is_url(url, "http", "https")


def _is_origin(text: str) -> bool:
    scheme, _, rest = text.rstrip("/").partition("://")
    return scheme in ("http", "https") and bool(rest) and not set(rest) & set("/?#@ *") and _is_http_url(text)


def _are_networks(text: str) -> bool:
    try:
        return all(ipaddress.ip_network(name.strip()) for name in text.split(",") if name.strip())
    except ValueError:
        return False


def _are_user_roles(text: str) -> bool:
    rules = [rule.rpartition("=") for rule in text.split(",") if rule.strip()]
    return all(name.strip() and role.strip() in USER_ROLES for name, _, role in rules)


def _is_header_name(text: str) -> bool:
    is_token = text.isascii() and text.replace("-", "").isalnum()
    return not text or (is_token and text.lower() != "authorization")


def _one_of(*names: str) -> dict[str, Any]:
    return {"check": lambda v: v in names, "expects": "one of " + ", ".join(names)}


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of the service, validated by ``load``."""

    host: str = _option("127.0.0.1", "Address to listen on.", **_non_empty_text())
    port: int = _option(8080, "Port to listen on; 0 chooses a free one.", **_in_range(0, 65535))
    public_url: str = _option(
        "",
        "Public address of the service, for links in feeds and webhooks, with the path below which a proxy "
        "serves it, if any; empty: the address of each request if it is loopback, the connection's own or in "
        "allowed_hosts, else relative links.",
        lambda v: not v or _is_http_url(v),
        "an http:// or https:// address",
    )
    allowed_hosts: str = _option(
        "",
        "Host names to answer requests for, separated by commas, or *; always answered are IP addresses, "
        "names without a dot, private names and the host of public_url.",
    )
    cors_origins: str = _option(
        "",
        "Origins of web pages that may read from /v1 in a browser, such as https://news.example, separated "
        "by commas, or *; empty: none.",
        lambda v: all(o.strip() == "*" or _is_origin(o.strip()) for o in v.split(",") if o.strip()),
        "origins such as https://news.example without a path, separated by commas, or *",
    )
    outlets_file: str = _option(
        "",
        "TOML file of outlets, read again at SIGHUP; a table [[outlets]] each: name, sources (other names "
        "and hosts), group (of outlets that belong together, as those of an owner), own (true: the "
        "newsroom's; the pages say which events it has published).",
    )
    webhook_allow_private_addresses: bool = _option(
        False,
        "Allow webhooks to private addresses and over plain http, for receivers in the newsroom network.",
    )
    smtp_url: str = _option(
        "",
        "Mail server for notifications of desks: smtp://USER:PASSWORD@HOST:587 (STARTTLS if offered, no "
        "password without it) or smtps://...; empty: no e-mail.",
        secret=True,
    )
    smtp_sender: str = _option(
        "",
        "Sender address of these e-mails.",
        lambda v: not v or (v.isascii() and v.isprintable() and v.count("@") == 1 and " " not in v),
        "an e-mail address",
    )
    workers: int = _option(1, "Number of server processes that share the port.", **_in_range(1, 64))
    data_dir: str = _option(
        "var", "Directory of the embedded store: its append-only file, log and locks.", **_non_empty_text()
    )
    store_url: str = _option(
        "",
        "URL of a Redis >= 7 or Valkey server (redis://, rediss://, redis+cluster://, redis+sentinel://, "
        "unix://), or memory; empty: embedded store. REDIS_URL is read too.",
        secret=True,
    )
    appendfsync: str = _option(
        "everysec",
        "Durability of the embedded store: always loses no acknowledged write, everysec may lose "
        "up to 2 s of writes on a power loss.",
        **_one_of("always", "everysec"),
    )
    models_dir: str = _option(
        "", "Directory of fitted feature models; empty: the models shipped with the package."
    )
    migration_models_dir: str = _option(
        "",
        "Directory of the feature models to migrate to: each article is then also written to the index of "
        "these models, and verdicts still use models_dir.",
    )
    migration_serve: bool = _option(
        False, "Serve from migration_models_dir once `aggregator migrate` has filled its index."
    )
    policy: str = _option(
        "verified",
        "Deduplication rule: verified (fingerprint, then overlap of wording) or hamming (fingerprint only, "
        "the rule of the paper).",
        **_one_of(*POLICY_NAMES),
    )
    duplicate_bits: int = _option(3, "Maximum Hamming distance of a duplicate.", **_in_range(0, 7))
    related_bits: int = _option(7, "Maximum Hamming distance of a related article.", **_in_range(0, 7))
    related_min_score: float = _option(
        0.78, "Minimum probability of one subject at which /related lists an article.", **_in_range(0, 1)
    )
    min_containment: float = _option(
        0.2,
        "Minimum share of the shorter text's wording that a duplicate from another outlet repeats; "
        "min_shared_shingles must hold as well. Within one outlet: same_outlet_containment of a profile.",
        **_in_range(0.01, 1),
    )
    min_shared_shingles: float = _option(
        10.0,
        "Minimum number of shared shingles of a duplicate, times the share of the shorter text's wording: "
        "at 10, 20 shingles that are half of it, or 50 that are a fifth.",
        **_in_range(1, 100_000),
    )
    strong_containment: float = _option(
        0.75,
        "Share of the shorter text's wording above which the number of shared shingles does not matter.",
        **_in_range(0.01, 1),
    )
    updates_are_new: bool = _option(
        False,
        "Treat a near-duplicate with other figures (tolls, prices) as a separate article, not a duplicate.",
    )
    keep_if_adds: float = _option(
        0.2,
        "Share of new words from which on a duplicate is to keep; 0.05: also new facts inside old texts.",
        **_in_range(0, 1),
    )
    policy_profiles_file: str = _option(
        "",
        "TOML file of policy profiles: named policies, and the sources that they apply to, read again "
        "at SIGHUP; empty: one policy for all articles.",
    )
    store_texts: bool = _option(False, "Store each text, compressed, for explain, comparison and migration.")
    retention_days: float = _option(
        90.0, "Days after which articles expire; 0: never.", **_in_range(0, 36500)
    )
    max_body_bytes: int = _option(
        2 * 1024 * 1024,
        "Maximum size of a request body or an input line, after decompression.",
        **_in_range(1024, 2**30),
    )
    max_batch_lines: int = _option(10_000, "Maximum number of lines in a batch.", **_in_range(1, 10**6))
    analysis_processes: int = _option(
        1,
        "Number of processes per worker that analyze batches, started when first needed: about 240 MB "
        "in all, and 20 MB for each further one; 0: the worker analyzes them itself.",
        **_in_range(0, 64),
    )
    max_inflight_articles: int = _option(
        128,
        "Maximum number of single-article requests that a process handles at once, fewer when they take "
        "long; further ones are answered 503.",
        **_in_range(1, 100_000),
    )
    burst_items: str = _option(
        "auto",
        "Number of similar articles within burst_window_hours above which an event fires; auto: 15, or fewer "
        "by the volume of a language with 5 or more sources.",
        **_auto_or(2, 10_000),
    )
    alerts_per_day: float = _option(
        2.0,
        "Number of alerts a day in a language above which burst_items=auto asks for more.",
        **_in_range(0.1, 1000),
    )
    burst_window_hours: float = _option(4.0, "Length of the burst window.", **_in_range(0.1, 168))
    min_sources: str = _option(
        "auto",
        "Minimum number of distinct sources of an event; auto: 1, but with 5 or more sources in a language "
        "each counts with at most a third of burst_items, or what it publishes in a window.",
        **_auto_or(1, 1000),
    )
    sensitivity: float = _option(
        1.0,
        "How readily a burst above the routine rate raises an alert: 2 means twice as readily.",
        **_in_range(0.1, 10),
    )
    detector_interval_seconds: float = _option(
        2.0, "Interval at which the event detector reads the article stream.", **_in_range(0.1, 60)
    )
    log_level: str = _option(
        "INFO",
        "Lowest severity of log records that is shown.",
        **_one_of("DEBUG", "INFO", "WARNING", "ERROR"),
    )
    log_format: str = _option(
        "text", "Format of what `serve` logs: text or json, one record per line.", **_one_of("text", "json")
    )
    access_log: bool = _option(False, "Log every request.")
    key: str = _option(
        "",
        "API key that commands send to a running service (`ingest`, `check`, `explain`, `work`).",
        lambda v: v.isascii() and v.isprintable() and len(v) <= 200,
        "printable ASCII characters",
        secret=True,
    )
    bootstrap_key: str = _option(
        "",
        "Admin API key of 32 to 200 characters that exists only in this setting and is never stored, for the "
        "first start and for containers.",
        lambda v: not v or (32 <= len(v) <= 200 and v.isascii() and v.isprintable() and " " not in v),
        "32 to 200 printable ASCII characters without spaces",
        secret=True,
    )
    auth_disabled: bool = _option(
        False, "Require no API key on any address; use it only behind a proxy that controls access."
    )
    metrics_public: bool = _option(False, "Require no API key for /metrics.")
    trusted_proxies: str = _option(
        "",
        "Addresses and networks of the reverse proxies in front, separated by commas: X-Forwarded-For, "
        "X-Forwarded-Proto and user_header are read on connections from these alone.",
        _are_networks,
        "addresses or networks, such as 127.0.0.1, 10.0.3.0/24",
    )
    user_header: str = _option(
        "",
        "Header in which a trusted proxy names the user that it has signed in, such as X-Forwarded-User; "
        "empty: people sign in with API keys.",
        _is_header_name,
        "the name of a header of letters, digits and hyphens, other than Authorization",
    )
    user_groups_header: str = _option(
        "",
        "Header with the groups of this user, separated by commas, such as X-Forwarded-Groups.",
        _is_header_name,
        "the name of a header of letters, digits and hyphens, other than Authorization",
    )
    user_roles: str = _option(
        "",
        "Roles of these users, separated by commas: NAME=ROLE for a user, @GROUP=ROLE for a group, *=ROLE "
        "for everybody else; roles are reader, editor, admin.",
        _are_user_roles,
        "rules such as ada@news.example=admin, @newsroom=editor, *=reader",
    )
    sign_out_url: str = _option(
        "",
        "Address that ends the user's session at the proxy; signing out leads there.",
        lambda v: not v or _is_http_url(v),
        "an http:// or https:// address",
    )
    rate_limit_per_second: float = _option(
        0.0,
        "Number of articles or other requests per second that one API key may send; 0: unlimited.",
        **_in_range(0, 1e6),
    )
    related_rate_limit_per_second: float = _option(
        10.0,
        "Requests (of a batch: ids) per second of one address with a key of the role related; 0: unlimited.",
        **_in_range(0, 1e6),
    )
    request_timeout_seconds: float = _option(
        5.0,
        "Maximum time from the first byte of a request to its answer, queues and the store included; then it "
        "is answered 503. Batches of articles and event streams are excepted.",
        **_in_range(0.01, 3600),
    )
    demo: bool = _option(False, "Replay the demonstration stream after the start; implies store_texts.")

    @property
    def in_memory(self) -> bool:
        """Whether the store is the memory of this process and ends with it."""
        return self.store_url.startswith("memory")


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach ``host``; no name but localhost is trusted."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def path_variable(name: str = CONFIG_VARIABLE) -> str:
    """The configuration file or directory of development data that the environment names; or empty."""
    return os.environ.get(name, "")


def load(
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    config: ConfigFile | None = None,
) -> Settings:
    """The settings of ``resolve``. Raises ConfigurationError."""
    return resolve(environment, overrides, config)[0]


def resolve(
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    config: ConfigFile | None = None,
) -> tuple[Settings, dict[str, str]]:
    """Settings from command line, environment, file, in this order. Raises ConfigurationError.

    With where each came from: "--port", "AGGREGATOR_PORT", "FILE:3" (else: default).
    """
    env = dict(os.environ if environment is None else environment)
    given = {k: v for k, v in (overrides or {}).items() if v is not None}
    fields = {f.name: f for f in dataclasses.fields(Settings)}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    problems = _unknown_variables(env, fields) + _unknown_keys(config, fields)
    for name, option in fields.items():
        found = _find_value(name, given, env, config)
        if found is None:
            continue
        raw, origins[name] = found
        origin = origins[name]
        # The line of a file does not name the setting.
        where = f"{origin}: {name}" if origin.rpartition(":")[2].isdigit() else origin
        try:
            values[name] = parse(option, raw, in_file=config is not None and origin == config.origin(name))
        except ValueError as problem:
            problems.append(f"{where}: {problem}.")
    settings = Settings(**values)
    faulty = " ".join(problems).lower().replace("-", "_")  # a setting named here has no value to combine
    problems += [p for p in _check_combinations(settings) if not any(n in faulty and n in p for n in fields)]
    if problems:
        raise ConfigurationError(problems)
    return settings, origins


def _find_value(
    name: str, given: Mapping[str, Any], env: Mapping[str, str], config: ConfigFile | None
) -> tuple[Any, str] | None:
    variable = ENV_PREFIX + name.upper()
    if name in given:
        return given[name], "--store" if name == "store_url" else "--" + name.replace("_", "-")
    if variable in env:
        return env[variable], variable
    if name == "store_url" and env.get("REDIS_URL"):
        return env["REDIS_URL"], "REDIS_URL"
    if config is not None and name in config.values:
        return config.values[name], config.origin(name)
    return None


def _unknown_variables(env: Mapping[str, str], fields: Mapping[str, Any]) -> list[str]:
    known = {ENV_PREFIX + name.upper() for name in fields} | {CONFIG_VARIABLE, DATA_VARIABLE}
    return [
        f"{name}: unknown setting; {_suggest(name, known)}"
        for name in sorted(env)
        if name.startswith(ENV_PREFIX) and name not in known
    ]


def _unknown_keys(config: ConfigFile | None, fields: Mapping[str, Any]) -> list[str]:
    if config is None:
        return []
    problems = []
    for key, value in config.values.items():
        if key in fields:
            continue
        items = value if isinstance(value, list) else [value]
        is_table = any(isinstance(item, dict) for item in items)
        hint = "settings are not grouped in tables." if is_table else _suggest(key, fields)
        where = config.origin(key).removesuffix(f": {key}")
        problems.append(f"{where}: {key}: unknown setting; {hint}")
    return problems


def _suggest(name: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name.replace("-", "_"), list(known), n=1, cutoff=0.75)
    if nearest:
        return f"did you mean {nearest[0]}?"
    return "`aggregator config show` lists all settings."


def _check_combinations(settings: Settings) -> list[str]:
    problems = []
    if settings.related_bits < settings.duplicate_bits:
        problems.append(
            f"related_bits ({settings.related_bits}) must not be below "
            f"duplicate_bits ({settings.duplicate_bits})."
        )
    url = settings.store_url
    scheme, separator, rest = url.partition("://")
    if url not in ("", "memory") and not (separator and rest and scheme in STORE_SCHEMES):
        expected = ", ".join(f"{scheme}://..." for scheme in STORE_SCHEMES)
        problems.append(f"store_url: expected memory or one of {expected}.")
    parts = urlsplit(settings.smtp_url) if _is_url(settings.smtp_url, "smtp", "smtps") else None
    if settings.smtp_url and (parts is None or parts.path not in ("", "/") or parts.query):
        problems.append(
            "smtp_url: expected smtp://HOST:PORT or smtps://HOST:PORT, with USER:PASSWORD@ if needed."
        )
    if bool(settings.smtp_url) != bool(settings.smtp_sender):
        problems.append("smtp_url and smtp_sender: set both, or neither.")
    given = (settings.user_header, settings.user_roles, settings.trusted_proxies)
    if settings.user_header and not all(given):
        problems.append("user_header: needs trusted_proxies, which may send it, and user_roles.")
    if not settings.user_header and (settings.user_roles or settings.user_groups_header):
        problems.append("user_roles and user_groups_header: need user_header, which names the user.")
    if settings.user_header and settings.auth_disabled:
        problems.append("user_header and auth_disabled: set one of them.")
    before_path = rest.partition("/")[0]
    # redis-py accepts a user name and password before the path and takes anything else for a host.
    if scheme == "unix" and before_path and not before_path.endswith("@"):
        problems.append("store_url: expected the absolute path of the socket, as in unix:///run/valkey.sock.")
    return problems


_BOOLEANS = {"1": True, "true": True, "yes": True, "on": True}
_BOOLEANS |= {"0": False, "false": False, "no": False, "off": False, "": False}


def parse(option: dataclasses.Field[Any], raw: Any, *, in_file: bool) -> Any:
    """The value of a setting; ``in_file``: it has a type. Raises ValueError that says what is wrong."""
    kind, check = type(option.default), option.metadata.get("check")
    value = str(raw) if option.default == "auto" else raw  # a number in a file
    try:
        value = _typed(value if in_file else _from_text(value, kind), kind)
    except ValueError:
        shown = "the value" if option.metadata.get("secret") else repr(raw)
        names = {bool: "true or false" if in_file else "yes or no", int: "a whole number", float: "a number"}
        quotes = " without quotes" if in_file and isinstance(raw, str) else ""
        raise ValueError(f"{shown} is not {names.get(kind, 'a string in quotes')}{quotes}") from None
    if check is not None and not check(value):
        shown = "the value" if option.metadata.get("secret") else repr(value)
        raise ValueError(f"{shown} must be {option.metadata['expects']}")
    return value


def _from_text(raw: Any, kind: type) -> Any:
    is_text = kind is bool and not isinstance(raw, bool)
    return _BOOLEANS.get(str(raw).strip().lower()) if is_text else kind(raw)


def _typed(value: Any, kind: type) -> Any:
    """A value of this type; a whole number is a number, too. Raises ValueError for any other."""
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(value)
    return value
