"""What ``store_url`` names: one server, a cluster, or the primary that Sentinels name; and our own options.

redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DATABASE?sentinel_password=...
?prefix=NAME:        begins every key, so that several installations share one server
?replicated=all      acknowledge what all connected replicas have, at least 1; or their number
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from redis.asyncio.connection import parse_url

from aggregator.errors import ConfigurationError

URL_FORMS = (
    "store_url: expected redis://host:port/0, rediss://, unix:///path, redis+cluster://host:port or "
    "redis+sentinel://host:26379,host:26379/name/0, with options of redis-py after ? if any."
)
_TLS_FILE_OPTIONS = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})
OWN_OPTIONS = ("prefix", "replicated", "sentinel_username", "sentinel_password")


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """``url``: for redis-py, of a server. ``replicas``: that acknowledge; None: all. ``shown``: for messages.

    ``sentinels``: of the service ``name``; ``sentinel_options``: how to connect to them.
    """

    url: str
    shown: str
    is_cluster: bool
    prefix: bytes
    replicas: int | None
    name: str
    sentinels: list[tuple[str, int]]
    sentinel_options: dict[str, Any]


def parse_address(url: str) -> StoreAddress:
    """Raises ConfigurationError."""
    try:
        parts = urlsplit(url)
        if parts.scheme != "unix" and "@" in parts.path + parts.fragment:
            raise ConfigurationError(
                "store_url: in user name and password write @ as %40, / as %2F, ? as %3F and # as %23."
            )
        query = dict(parse_qsl(parts.query))
        own = {name: query.pop(name, "") for name in OWN_OPTIONS}
        scheme, _, kind = parts.scheme.partition("+")
        login, at, hosts = parts.netloc.rpartition("@")
        name, path, sentinels = "", parts.path, list[tuple[str, int]]()
        if kind == "sentinel":
            name, _, path = path.strip("/").partition("/")
            found = [urlsplit(f"//{host}") for host in hosts.split(",")]
            sentinels = [(one.hostname or "localhost", one.port or 26379) for one in found]
            hosts = "localhost" if name else "/"
        plain = f"{scheme}://{login}{at}{hosts}/{path.lstrip('/')}" + (
            f"?{urlencode(query)}" if query else ""
        )
        options = dict(parse_url(plain))
    except (ValueError, TypeError) as error:
        raise ConfigurationError(URL_FORMS) from error
    if kind == "sentinel" and not name:
        raise ConfigurationError(URL_FORMS)
    for option, value in query.items():
        if option in _TLS_FILE_OPTIONS and not os.access(value, os.R_OK):
            raise ConfigurationError(f"store_url: the file {value} ({option}) cannot be read.")
    if not re.fullmatch(r"[\w.:-]{0,64}", own["prefix"], re.ASCII):
        raise ConfigurationError("store_url: prefix takes up to 64 letters, digits and . _ : -")
    if not re.fullmatch(r"|all|[1-9]", own["replicated"]):
        raise ConfigurationError("store_url: replicated takes all, or a number of replicas from 1 to 9.")
    shown = options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
    to_sentinel: dict[str, Any] = {key[9:]: own[key] for key in OWN_OPTIONS[2:] if own[key]}
    if scheme == "rediss":
        to_sentinel |= {"ssl": True} | {k: v for k, v in options.items() if k.startswith("ssl")}
    return StoreAddress(
        plain,
        f"{parts.netloc.rpartition('@')[2]}/{name}" if name else str(shown),
        kind == "cluster",
        own["prefix"].encode(),
        None if own["replicated"] == "all" else int(own["replicated"] or 0),
        name,
        sentinels,
        to_sentinel,
    )
