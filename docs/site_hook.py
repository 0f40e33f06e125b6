"""MkDocs hook: add the notebooks and the Markdown files of the root to the site, and adapt links."""

from __future__ import annotations

import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
ROOT_PAGES = {
    "README.md": "index.md",
    **{name: name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")},
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the root pages; README becomes the index."""
    for name, target in ROOT_PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        text = re.sub(r"\]\(docs/(design|decisions)/\)", r"](docs/\1/index.md)", text)
        text = re.sub(r"\]\(docs/", "](", text)
        text = re.sub(r"\]\(README\.md", "](index.md", text)
        text = re.sub(r"\[(LICENSE)\]\(LICENSE\)", r"\1", text)
        files.append(File.generated(config, target, content=text))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        name = f"notebooks/{notebook.stem}.md"
        files.append(File.generated(config, name, content=notebook_as_markdown(notebook)))
    return files


def notebook_as_markdown(notebook: Path) -> str:
    """The cells of a notebook and their outputs of plain text."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            parts.append("```text\n" + "".join(output["data"]["text/plain"]) + "\n```")
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links from docs/ to the root pages lead to their copies in the site."""
    if page.file.src_uri in ROOT_PAGES.values():
        return markdown
    for name, target in ROOT_PAGES.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(name)}", rf"](\g<1>{target}", markdown)
    return markdown
