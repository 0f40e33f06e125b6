"""Word lists of the analysis, from ``lexicon.txt``: numbers, units, negations, languages, hosts and more."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import resources


@lru_cache(maxsize=1024)
def table(section: str, lang: str) -> dict[str, str]:
    """The words of a section, of every and of one language, with their values ("" without one)."""
    lines = _lines()
    return {**lines.get((section, "*"), {}), **lines.get((section, lang), {})}


@cache
def _lines() -> dict[tuple[str, str], dict[str, str]]:
    found: dict[tuple[str, str], dict[str, str]] = {}
    text = resources.files(__package__).joinpath("lexicon.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and line[0] != "#":
            heading, _, entries = line.partition(": ")
            section, *languages = heading.split()
            words = (entry.replace("·", " ").partition("=") for entry in entries.split())
            values = {word: value for word, _, value in words}
            for lang in languages:
                found.setdefault((section, lang), {}).update(values)
    return found
