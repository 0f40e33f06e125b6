"""``aggregator work``."""

from __future__ import annotations

import pytest

from tests.cli.helpers import run


def test_an_unreachable_redis_is_exit_code_3(free_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, which says that nothing is lost."""
    assert run("work", "--redis", f"redis://127.0.0.1:{free_port}", "--until-empty") == 3

    error = capsys.readouterr().err
    assert error.startswith("aggregator: The stream 'articles' is unavailable (") and error.count("\n") == 1
    assert "Connection refused); run the command again when its Redis answers. Nothing is lost." in error
