"""MkDocs hook: add the Markdown files of the repository root to the site and adapt links between the two."""

from __future__ import annotations

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
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links from docs/ to the root pages lead to their copies in the site."""
    if page.file.src_uri in ROOT_PAGES.values():
        return markdown
    for name, target in ROOT_PAGES.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(name)}", rf"](\g<1>{target}", markdown)
    return markdown
