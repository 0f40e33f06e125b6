"""What doctor tells of keys, of the detector and of a store that is spoken to in the clear."""

from __future__ import annotations

import json

import pytest

from aggregator.cli import main
from aggregator.cli.contents import in_the_clear


def test_doctor_tells_of_keys_and_of_the_detector(
    valkey_url: str, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """None at first; then how many of which role, which of them ends soon, and what waits to be read."""

    def told() -> dict[str, list[str]]:
        assert main(["doctor", "--store-url", valkey_url, f"--port={free_port}", "--json"]) == 0
        found: dict[str, list[str]] = {}
        for finding in json.loads(capsys.readouterr().out):
            found.setdefault(finding["subject"], []).append(f"{finding['mark']}: {finding['sentence']}")
        return found

    before = told()
    for name, role, more in (("desk", "editor", ()), ("prometheus", "reader", ("--expires", "3d"))):
        assert main(["keys", "add", name, "--role", role, *more, "--store", valkey_url]) == 0
    capsys.readouterr()
    after = told()

    assert before["access"] == [
        "note: No keys: the service asks for none and is for programs of this machine alone."
    ]
    assert before["events"] == [
        "ok: The detector has 0 articles of the stream to read since its last checkpoint."
    ]
    assert after["access"][0] == "ok: 2 keys in use (1 editor, 1 reader), 0 expired; bootstrap key not set."
    assert (
        after["access"][1].startswith("note: The key of 'prometheus' ends on ") and len(after["access"]) == 2
    )


@pytest.mark.parametrize(
    ("url", "clear"),
    [
        ("redis://store.example:6379/0", True),
        ("redis+cluster://10.0.0.7:6379", True),
        ("rediss://store.example:6380", False),
        ("redis://127.0.0.1:6379", False),
        ("unix:///run/redis.sock", False),
    ],
)
def test_a_store_elsewhere_without_tls_is_worth_a_word(url: str, clear: bool) -> None:
    """Passwords and articles would pass readable."""
    assert bool(list(in_the_clear(url))) == clear
