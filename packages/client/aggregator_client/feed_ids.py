"""Ids of feed items: a guid is unique within its feed only, so the host of the feed is put before it."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import urlsplit

MAX_ID_BYTES = 512  # of the service
MAX_HOST_CHARS = 253

_DEFAULT_PORTS = {"http": 80, "https": 443}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def is_address(text: str) -> bool:
    """Whether the text is an http or https URL with a host."""
    return text[:8].lower().startswith(("http://", "https://")) and bool(host_of(text))


def host_of(url: str) -> str:
    """Host of a URL in lower case without ``www.``, with a port that is not the default; else empty."""
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").rstrip(".").removeprefix("www."), parts.port
    except ValueError:
        return ""
    has_port = host and port not in (None, _DEFAULT_PORTS.get(parts.scheme))
    return host[:MAX_HOST_CHARS] + (f":{port}" if has_port else "")


def global_id(guid: str, host: str) -> str:
    """``HOST:GUID`` for a guid that is no address; addresses, and ids with this prefix, are returned as is.

    Control characters are removed, and a guid too long for the service is replaced by its hash. Empty for an
    empty guid.
    """
    guid = _CONTROL.sub("", guid).strip()
    prefix = f"{host}:" if host and guid and not is_address(guid) else ""
    id_ = guid if guid.startswith(prefix) else prefix + guid
    if len(id_.encode()) <= MAX_ID_BYTES:
        return id_
    return f"{prefix}sha256:{hashlib.sha256(guid.encode()).hexdigest()}"
