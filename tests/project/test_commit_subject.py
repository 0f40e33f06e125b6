"""Commit subject check (``.ci/commit-subject``): area, imperative summary, at most 72 characters."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

CHECK = Path(__file__).resolve().parents[2] / ".ci" / "commit-subject"


@pytest.mark.parametrize(
    ("subject", "accepted"),
    [
        ("ingest: prefetch the next batch while committing", True),
        ("analysis, dedup: plain docstrings", True),
        ("events/detection: merge fragments earlier", True),
        ("Merge branch 'main'", True),
        ("Prefetch the next batch", False),
        ("ingest: Prefetch the next batch", False),
        ("ingest: " + "x" * 65, False),
        ("", False),
    ],
)
def test_only_subjects_of_the_documented_form_are_accepted(
    tmp_path: Path, subject: str, accepted: bool
) -> None:
    """The hook reads the message file that git passes to it and explains a rejection."""
    message = tmp_path / "message"
    message.write_text(f"{subject}\n\nThe reason.\n")

    result = subprocess.run([CHECK, message], capture_output=True, text=True, check=False)

    assert (result.returncode == 0) == accepted
    assert accepted == (result.stderr == "")
