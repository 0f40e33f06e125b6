"""``aggregator work``."""

from __future__ import annotations

import pytest

from tests.cli.helpers import run


@pytest.mark.integration
def test_an_unreachable_redis_is_exit_code_3(free_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, which says that nothing is lost."""
    assert run("work", "--redis", f"redis://127.0.0.1:{free_port}", "--until-empty") == 3

    error = capsys.readouterr().err
    assert error.startswith("aggregator: The stream 'articles' is unavailable (") and error.count("\n") == 1
    assert "Connection refused); run the command again when its Redis answers. Nothing is lost." in error


def test_the_help_shows_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    """Of every option that has one."""
    assert run("work", "--help") == 0

    text = " ".join(capsys.readouterr().out.split())
    for default in ("redis://127.0.0.1:6379", "articles", "verdicts", "aggregator"):
        assert f"(default {default})" in text
    for default in ("the local one", "the host name", "100000"):
        assert f"(default: {default})" in text
