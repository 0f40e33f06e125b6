"""The newsroom's own sources (setting ``own_sources``): which events the newsroom has published. Pure."""

from __future__ import annotations

from collections.abc import Iterable


class OwnSources:
    """Names of the newsroom's own sources, separated by commas; letter case does not matter.

    >>> own = OwnSources("Harbour Times, harbour-times.example")
    >>> own.is_own("harbour times"), own.is_own("Quay News"), bool(OwnSources(" "))
    (True, False, False)
    """

    def __init__(self, names: str) -> None:
        self._names = frozenset(filter(None, (_normal(name) for name in names.split(","))))

    def __bool__(self) -> bool:
        """Whether any source is marked as own."""
        return bool(self._names)

    def is_own(self, source: str) -> bool:
        """Whether a source is one of them."""
        return _normal(source) in self._names

    def any_of(self, sources: Iterable[str]) -> bool:
        """Whether one of the sources of an event is."""
        return bool(self._names) and any(map(self.is_own, sources))


def _normal(name: str) -> str:
    return " ".join(name.split()).casefold()
