"""HTML templates of the offline pages: judgement page, archive report."""

from __future__ import annotations

from pathlib import Path

import jinja2


def load_templates(directory: Path) -> jinja2.Environment:
    """The templates of ``directory``: escaped, and a name without a value is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(directory),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
