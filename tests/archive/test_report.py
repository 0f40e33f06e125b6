"""Templates of the offline pages: texts are escaped, names without a value are errors."""

from __future__ import annotations

from pathlib import Path

import jinja2
import pytest

from aggregator_archive.report import load_templates


def test_texts_are_escaped_and_missing_values_are_errors(tmp_path: Path) -> None:
    """A headline cannot add markup to a page, and a misspelled name does not print an empty string."""
    (tmp_path / "row.html").write_text("<b>{{ title }}</b>")
    row = load_templates(tmp_path).get_template("row.html")

    assert row.render(title="<script>") == "<b>&lt;script&gt;</b>"
    with pytest.raises(jinja2.UndefinedError):
        row.render(headline="x")
