"""Kinds of notification targets: which addresses are allowed, and how they are shown. Pure.

A target address contains its credentials: a token of Slack or Telegram is part of the URL. So it is shown
masked wherever it is shown after it was saved.
"""

from __future__ import annotations

import re
from email.errors import MessageError
from email.headerregistry import Address
from typing import Literal
from urllib.parse import urlsplit

from aggregator.errors import InvalidInput

TargetKind = Literal["webhook", "mail", "apprise"]

MAX_TARGET_CHARS = 2000
MAX_MAIL_CHARS = 254  # RFC 5321, section 4.5.3.1.3
# Schemes of Apprise that are allowed. All others are refused: some write files, start programs, reach the
# desktop bus, or send mail through any server.
HOSTED_SERVICES = {
    "slack": "Slack",
    "tgram": "Telegram",
    "workflow": "Microsoft Teams",
    "workflows": "Microsoft Teams",
    "discord": "Discord",
    "gchat": "Google Chat",
    "pover": "Pushover",
    "pbul": "Pushbullet",
}
# Services that a newsroom may run itself: the URL names their host, and the address rules of webhooks apply.
SELF_HOSTED_SERVICES = {
    "ntfys": "ntfy",
    "gotifys": "Gotify",
    "mmosts": "Mattermost",
}
# Their plain HTTP forms, with ``webhook_allow_private_addresses`` only.
PLAIN_SERVICES = {"ntfy": "ntfy", "gotify": "Gotify", "mmost": "Mattermost"}
# The addresses that these services show for copying; Apprise reads them as they are.
_COPIED_ADDRESSES = (
    (re.compile(r"https://hooks\.slack\.com/services/"), "Slack"),
    (re.compile(r"https://discord(app)?\.com/api/webhooks/"), "Discord"),
    (re.compile(r"https://chat\.googleapis\.com/v1/spaces/"), "Google Chat"),
    (
        re.compile(r"https://[a-z0-9.-]+\.(logic\.azure|environment\.api\.powerplatform)\.com(:443)?/"),
        "Microsoft Teams",
    ),
)
# Other options of Apprise name files, switch off the check of certificates, or name further addresses.
_ALLOWED_OPTIONS = frozenset(
    (
        *("auth", "channel", "channels", "footer", "format", "from", "id", "key", "mode", "priority"),
        *("sig", "signature", "silent", "sound", "tags", "thread", "to", "token", "topic", "workflow"),
    )
)
_SAFE_LABEL = re.compile(r"[^\w.:-]", re.ASCII)


def service_name(kind: TargetKind, url: str) -> str:
    """What a target is called on the pages: "E-mail", "Slack", "Webhook"."""
    if kind == "mail":
        return "E-mail"
    if kind == "webhook":
        return "Webhook"
    scheme = _scheme_of(url)
    known = HOSTED_SERVICES | SELF_HOSTED_SERVICES | PLAIN_SERVICES
    return known.get(scheme, "") or _copied_service(url) or scheme


def validate_mail_address(address: str) -> str:
    """An e-mail address without a display name. Raises InvalidInput."""
    address = address.strip().removeprefix("mailto:")
    try:
        parsed = Address(addr_spec=address)
    except (MessageError, ValueError, IndexError):
        parsed = Address()
    if (
        not parsed.username
        or "." not in parsed.domain
        or not address.isascii()
        or not address.isprintable()
        or len(address) > MAX_MAIL_CHARS
        or any(character in address for character in ' ,;<>"()[]')
    ):
        raise InvalidInput("address: expected one e-mail address, such as desk@example.org.", field="address")
    return address


def validate_apprise_url(url: str, *, allow_private: bool) -> str:
    """An Apprise URL of an allowed service. Raises InvalidInput, without repeating the URL."""
    url = url.strip()
    scheme = _scheme_of(url)
    allowed = HOSTED_SERVICES | SELF_HOSTED_SERVICES | (PLAIN_SERVICES if allow_private else {})
    is_copied = bool(_copied_service(url))
    if (
        not (is_copied or scheme in allowed)
        or len(url) > MAX_TARGET_CHARS
        or not url.isascii()
        or not url.isprintable()
    ):
        names = ", ".join(f"{name}://" for name in allowed)
        raise InvalidInput(
            "address: expected the webhook address of Slack, Discord, Google Chat or Teams, or a URL that "
            f"begins with one of {names}.",
            field="address",
        )
    if " " in url or "," in url:
        raise InvalidInput("address: expected one URL without spaces and commas.", field="address")
    options = {part.partition("=")[0].lower() for part in url.partition("?")[2].split("&") if part}
    refused = sorted(options - _ALLOWED_OPTIONS) if not is_copied else []
    if refused:
        raise InvalidInput(
            f"address: the option {refused[0][:40]!r} is not allowed; remove it.", field="address"
        )
    return url


def masked_address(kind: TargetKind, url: str) -> str:
    """The address without what is secret: "https://hooks.example/…", "slack://…", "d…@example.org"."""
    if kind == "mail":
        user, _, domain = url.rpartition("@")
        return f"{user[:1]}…@{domain}"
    scheme = _scheme_of(url)
    if kind == "apprise" and scheme != "https" and scheme not in SELF_HOSTED_SERVICES | PLAIN_SERVICES:
        return f"{scheme}://…"
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return f"{scheme}://…"
    return f"{scheme}://{_SAFE_LABEL.sub('', host)}{port}/…"


def without_secrets(text: str, url: str) -> str:
    """An error message without the parts of a target's URL, which libraries quote in their messages."""
    scheme = _scheme_of(url)
    if scheme == "https" or scheme in SELF_HOSTED_SERVICES | PLAIN_SERVICES:  # the host is no secret
        url = url.partition("://")[2].partition("/")[2] or url
    pieces = [url, *re.split(r"[/@?&=:]+", url)]
    for piece in sorted(set(pieces), key=len, reverse=True):
        if len(piece) >= 8:
            text = text.replace(piece, "…")
    return text


def _copied_service(url: str) -> str:
    return next((name for pattern, name in _COPIED_ADDRESSES if pattern.match(url)), "")


def _scheme_of(url: str) -> str:
    return url.partition("://")[0].lower() if "://" in url else ""
