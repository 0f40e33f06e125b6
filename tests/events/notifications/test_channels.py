"""Addresses of notification targets: what is accepted, and what is shown of them."""

from __future__ import annotations

import pytest

from aggregator.errors import InvalidInput
from aggregator.events.notifications.channels import (
    TargetKind,
    masked_address,
    service_name,
    validate_apprise_url,
    validate_mail_address,
    without_secrets,
)

SLACK = "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
TEAMS = "https://prod-7.westeurope.logic.azure.com:443/workflows/ab12/triggers/manual/paths/invoke?sig=s3cr3ts3cr3t"
TELEGRAM = "tgram://123456789:AAFabcdefghijklmnopqrstuvwxyz123456/12315544/"


@pytest.mark.parametrize(
    ("url", "service"),
    [
        (SLACK, "Slack"),
        (TEAMS, "Microsoft Teams"),
        (TELEGRAM, "Telegram"),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#news", "Slack"),
        ("https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js", "Discord"),
        ("ntfys://ntfy.newsroom.example/desk?priority=high", "ntfy"),
        ("gotifys://push.newsroom.example/Aabcdefghijklmno", "Gotify"),
    ],
)
def test_known_services_are_accepted(url: str, service: str) -> None:
    """By the address that the service shows, or the URL of Apprise."""
    assert validate_apprise_url(f" {url} ", allow_private=False) == url
    assert service_name("apprise", url) == service


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "syslog://", "dbus://", "mailto://user:pass@mail.example", "macosx://", "windows://",
        "json://internal.example", "jsons://internal.example", "xml://x", "form://x", "https://example.org/x",
        "https://hooks.slack.com.evil.example/services/T/A/x", "https://evil.example/hooks.slack.com/services/",
        "https://logic.azure.com.evil.example/x", "mqtt://x", "rsyslog://x", "http://hooks.slack.com/services/T1/A1/x",
        "ntfy://10.0.0.1/x", "apprise://x", "slack", "", "slack://a b", "slack://a,file:///x", "slack://a\nb",
        "ntfys://host/x?attach=/etc/passwd", "ntfys://host/x?verify=no", "workflows://h/w/s?template=/etc/passwd",
        "ntfys://host/x?redirect=yes", "ntfys://host/x?+header=1", "slack://\u0430",
    ],
)  # fmt: skip
def test_everything_else_is_refused_without_repeating_it(url: str) -> None:
    """Files, desktop buses, other mail servers, arbitrary web addresses, and options that reach them."""
    with pytest.raises(InvalidInput) as refused:
        validate_apprise_url(url, allow_private=False)

    assert refused.value.field == "address"
    assert not url or "passwd" not in str(refused.value)


def test_plain_http_needs_the_setting_for_private_addresses() -> None:
    """As webhooks do."""
    assert validate_apprise_url("ntfy://10.0.0.1/desk", allow_private=True) == "ntfy://10.0.0.1/desk"


@pytest.mark.parametrize("address", ["desk@newsroom.example", "mailto:d.e+s_k@news.example"])
def test_mail_addresses_are_accepted(address: str) -> None:
    """With and without "mailto:"."""
    assert validate_mail_address(address) == address.removeprefix("mailto:")


@pytest.mark.parametrize(
    "address",
    [
        "", "desk", "desk@", "@news.example", "desk@localhost", "a@b.example, c@d.example",
        "a@b.example;c@d.example",
        "Desk <desk@news.example>", "desk@news.example\nBcc: x@y.example",
        "d esk@news.example", "a@@b.example",
        "dësk@news.example", "desk@" + "x" * 300 + ".example", '"x y"@news.example', "desk@[127.0.0.1]",
    ],
)  # fmt: skip
def test_other_mail_addresses_are_refused(address: str) -> None:
    """Several, with a name, with a line break."""
    with pytest.raises(InvalidInput, match="expected one e-mail address"):
        validate_mail_address(address)


@pytest.mark.parametrize(
    ("kind", "url", "shown"),
    [
        ("mail", "desk@newsroom.example", "d…@newsroom.example"),
        ("webhook", "https://hooks.example:8443/secret/path?token=1", "https://hooks.example:8443/…"),
        ("webhook", "https://[bad", "https://…"),
        ("apprise", TELEGRAM, "tgram://…"),
        ("apprise", SLACK, "https://hooks.slack.com/…"),
        ("apprise", "ntfys://user:pass@ntfy.example/desk", "ntfys://ntfy.example/…"),
    ],
)
def test_addresses_are_masked(kind: TargetKind, url: str, shown: str) -> None:
    """The host unless it is secret; never tokens, users and passwords."""
    assert masked_address(kind, url) == shown


@pytest.mark.parametrize("url", [SLACK, TEAMS, TELEGRAM])
def test_errors_of_libraries_do_not_disclose_the_address(url: str) -> None:
    """The whole of it, and each long part."""
    token = url.rpartition("/")[2].rpartition("sig=")[2] or "AAFabcdefghijklmnopqrstuvwxyz123456"
    message = without_secrets(f"Max retries exceeded with url: {url} and {token}", url)

    assert token not in message and "Max retries exceeded" in message
