"""Headline table: hashed words of headlines, in columns, searched by scanning all of them. Pure.

A row is one stored version of an article: its number, its time, the hashes of the terms of its headline and
source, and what searches filter by. A chunk of ``CHUNK_ROWS`` takes 20 us per term.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from aggregator.analysis.article_id import canonical_url
from aggregator.analysis.text.normalization import source_key
from aggregator.analysis.text.tokenizer import search_terms
from aggregator.domain import ArticleRecord, Outcome, StreamItem, VerdictName, publication_time
from aggregator.errors import InvalidInput
from aggregator.index.keys import term_hash

CHUNK_ROWS: Final = 8192
MAX_QUERY_TERMS: Final = 12  # later words of a query are ignored; each word is one bit of a row's matches
MAX_LANGUAGES: Final = 255
MAX_HEADLINE_TERMS: Final = 48  # of a headline: titles have up to 2,000 characters
VERDICTS: Final[tuple[VerdictName, ...]] = ("new", "related", "duplicate")
MAX_TIME_S: Final = (1 << 32) - 1

Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class TermGroup:
    """The words of a query as some languages tokenize them, at most ``MAX_QUERY_TERMS``.

    ``phrases``: words that a headline, or the name of a source, has next to each other, stop words aside.
    """

    languages: frozenset[str]
    terms: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...] = ()

    @property
    def min_matches(self) -> int:
        """Number of terms from which an article is a result: half of them."""
        return (len(self.terms) + 1) // 2


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """What each result meets; ``since_ms`` <= publication, else arrival, < ``until_ms``; keys of sources."""

    lang: str | None = None
    sources: Sequence[str] = ()
    verdict: VerdictName | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    url: str | None = None

    @property
    def canonical_url(self) -> str | None:
        """The canonical form of ``url``, or what was given instead of a URL."""
        return (canonical_or_none(self.url) or self.url) if self.url else None

    def matches(self, record: ArticleRecord, outcome: Outcome) -> bool:
        """Whether an article may be shown."""
        time_ms = record.publication_ms
        return (
            (self.lang is None or record.lang == self.lang)
            and (not self.sources or source_key(record.source) in self.sources)
            and (self.verdict is None or outcome.verdict == self.verdict)
            and (self.since_ms is None or time_ms >= self.since_ms)
            and (self.until_ms is None or time_ms < self.until_ms)
            and (not self.url or canonical_or_none(record.url) == self.canonical_url)
        )


NO_FILTER: Final = SearchFilter()
_WITHOUT_SCHEME: Final = re.compile(r"(?:[\w-]{1,63}\.){1,9}[^\W\d_]{2,24}(?::\d{1,5})?/\S*")


class Hits(NamedTuple):
    """Rows that match: article number, ``score`` and number of the space; all (n,), unordered."""

    numbers: Numbers
    scores: Numbers
    spaces: npt.NDArray[np.uint8]


NO_HITS: Final = Hits(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.uint8))


def canonical_or_none(url: str) -> str | None:
    """The canonical form of an http or https URL, also without its scheme; None for anything else."""
    try:
        return canonical_url(f"https://{url}" if _WITHOUT_SCHEME.fullmatch(url) else url)
    except InvalidInput:
        return None


source_terms = lru_cache(maxsize=4096)(search_terms)  # of the name of an outlet


def score(missing: int, in_headline: int, time_s: int) -> int:
    """Rank of a result, larger is better: fewest words missing, then most in the headline, then newest."""
    return ((MAX_QUERY_TERMS - missing) << 4 | in_headline) << 32 | max(0, min(time_s, MAX_TIME_S))


def hash32(term: str) -> int:
    """The upper 32 bits of the hash that the term index uses."""
    return term_hash(term) >> 4


def url_hash(url: str) -> int:
    """32 bits of the hash of a canonical URL; not cached, since that would displace the words."""
    return xxhash.xxh3_64_intdigest(url.encode("utf-8", "surrogatepass")) >> 32


_COLUMN_TYPES: Final = {
    "numbers": "Q", "times": "I", "sources": "I", "urls": "I", "ends": "I", "headline_terms": "B",
    "verdicts": "B", "languages": "B", "spaces": "B", "hashes": "I",
}  # fmt: skip


class _Chunk:
    """At most ``CHUNK_ROWS`` rows; ``ends[i]``: end of the hashes of row i; ``oldest``: smallest number."""

    __slots__ = ("columns", "oldest")

    def __init__(self) -> None:
        self.columns: dict[str, array[int]] = {name: array(code) for name, code in _COLUMN_TYPES.items()}
        self.oldest = 1 << 64

    def __len__(self) -> int:
        return len(self.columns["numbers"])

    def view(self, name: str) -> npt.NDArray[Any]:
        """A column as an array; no row can be added while it is in use."""
        return np.frombuffer(self.columns[name], _COLUMN_TYPES[name])

    def add(self, hashes: Iterable[int], **values: int) -> None:
        """Append a row."""
        self.columns["hashes"].extend(hashes)
        for name, value in values.items():
            self.columns[name].append(value)
        self.columns["ends"].append(len(self.columns["hashes"]))
        self.oldest = min(self.oldest, values["numbers"])


class HeadlineTable:
    """The newest articles by headline; at most ``max_rows`` and one chunk more."""

    def __init__(self, max_rows: int) -> None:
        self._max_chunks = max(1, -(-max_rows // CHUNK_ROWS))
        self._chunks: list[_Chunk] = []
        self._languages: dict[str, int] = {}
        self._spaces: dict[str, int] = {}

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    @property
    def is_full(self) -> bool:
        """Whether the next chunk replaces an older one."""
        return len(self._chunks) > self._max_chunks

    @property
    def oldest_number(self) -> int | None:
        """The smallest article number; None without rows."""
        return min((chunk.oldest for chunk in self._chunks), default=None)

    def numbers(self) -> Numbers:
        """The article numbers of all rows, (n,); 0 for removed ones."""
        columns = [chunk.view("numbers").copy() for chunk in self._chunks]
        return np.concatenate(columns) if columns else np.empty(0, np.uint64)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the rows."""
        return tuple(self._languages)

    def space(self, number: int) -> str:
        """The space with this number (``Hits.spaces``)."""
        return tuple(self._spaces)[number]

    def add(self, item: StreamItem) -> None:
        """Append an article. A full table drops its oldest chunk, or an article that is older."""
        if not self._chunks or len(self._chunks[-1]) >= CHUNK_ROWS:
            if self.is_full:
                oldest = min(self._chunks, key=lambda chunk: max(chunk.columns["numbers"]))
                if item.number < max(oldest.columns["numbers"]):
                    return
                self._chunks.remove(oldest)
            self._chunks.append(_Chunk())
        headline = search_terms(item.title, item.lang)[:MAX_HEADLINE_TERMS]
        # Most ids are plainly the canonical form of the URL, and canonicalizing takes 30 us.
        scheme, _, rest = item.url.partition("://")
        is_canonical = scheme in ("http", "https") and rest == item.id
        url = item.id if is_canonical else canonical_or_none(item.url)
        published_ms, _ = publication_time(item.published_at_ms, item.arrived_ms)
        self._chunks[-1].add(
            map(hash32, (*headline, *source_terms(item.source, item.lang)[:MAX_HEADLINE_TERMS])),
            numbers=item.number,
            times=max(0, min(published_ms // 1000, MAX_TIME_S)),
            sources=hash32(source_key(item.source)),
            urls=url_hash(url) if url else 0,
            headline_terms=len(headline),
            verdicts=VERDICTS.index(item.verdict),
            languages=_number_of(self._languages, item.lang),
            spaces=_number_of(self._spaces, item.space),
        )

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove the rows of these article numbers: they get the number 0, which no search returns."""
        wanted = np.array(numbers, np.uint64)
        for chunk in self._chunks:
            column = chunk.view("numbers")
            column[np.isin(column, wanted)] = 0

    def search(
        self, groups: Sequence[TermGroup], search_filter: SearchFilter, floor: Mapping[str, int]
    ) -> Iterator[Hits]:
        """The rows that match (without ``groups`` all) from each space's ``floor`` on, chunk by chunk."""
        prepared = [_PreparedGroup(group, self._languages) for group in groups]
        floors = np.array([floor.get(space, 0) for space in self._spaces], np.uint64)
        conditions = self._conditions(search_filter)
        for chunk in tuple(self._chunks):

            def passes(rows: npt.NDArray[np.int64], chunk: _Chunk = chunk) -> npt.NDArray[np.bool_]:
                """Which of these rows are current and meet the conditions."""
                numbers = chunk.view("numbers")[rows]
                mask: npt.NDArray[np.bool_] = (numbers >= floors[chunk.view("spaces")[rows]]) & (numbers > 0)
                for column, compare, value in conditions:
                    mask &= compare(chunk.view(column)[rows], value)
                return mask

            if groups:
                yield _search_chunk(chunk, prepared, passes)
            else:
                rows = np.flatnonzero(passes(np.arange(len(chunk))))
                yield _hits(chunk, rows, np.zeros(len(rows), np.uint64))

    def _conditions(self, wanted: SearchFilter) -> list[tuple[str, Callable[..., Any], object]]:
        since_s, until_s = (
            None if ms is None else -(-ms // 1000) for ms in (wanted.since_ms, wanted.until_ms)
        )
        lang, url = wanted.lang, wanted.canonical_url
        conditions = (
            ("languages", np.equal, None if lang is None else self._languages.get(lang, MAX_LANGUAGES)),
            ("sources", np.isin, [*map(hash32, wanted.sources)] or None),
            ("verdicts", np.equal, None if wanted.verdict is None else VERDICTS.index(wanted.verdict)),
            ("times", np.greater_equal, since_s),
            ("times", np.less, until_s),
            ("urls", np.equal, None if url is None else url_hash(url)),
        )
        return [(column, compare, value) for column, compare, value in conditions if value is not None]


class _PreparedGroup:
    """A term group with the hashes of its terms, ascending; ``order``: the position of each in the query."""

    def __init__(self, group: TermGroup, languages: Mapping[str, int]) -> None:
        self.min_matches = group.min_matches
        self.terms = len(group.terms)
        hashed = np.array([hash32(term) for term in group.terms], np.uint32)
        self.order = np.argsort(hashed)
        self.hashes = hashed[self.order]
        self.phrases = [[hash32(term) for term in phrase] for phrase in group.phrases]
        self.is_language = np.zeros(256, np.bool_)
        self.is_language[[languages[lang] for lang in group.languages if lang in languages]] = True

    def find(self, hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """Positions of the hashes of the terms, ascending: one vectorized pass per term."""
        found = hashes == self.hashes[0]
        for wanted in self.hashes[1:]:
            found |= hashes == wanted
        return np.flatnonzero(found)


_Passes = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]


def _search_chunk(chunk: _Chunk, groups: Sequence[_PreparedGroup], passes: _Passes) -> Hits:
    found = [hits for group in groups if (hits := _group_rows(chunk, group, passes)) is not None]
    if not found:
        return NO_HITS
    rows, ranks = (np.concatenate(column) for column in zip(*found, strict=True))
    return _hits(chunk, rows, ranks)


def _hits(chunk: _Chunk, rows: npt.NDArray[np.int64], ranks: npt.NDArray[np.uint64]) -> Hits:
    scores = ranks << np.uint64(32) | chunk.view("times")[rows]
    return Hits(chunk.view("numbers")[rows], scores, chunk.view("spaces")[rows])


def _group_rows(
    chunk: _Chunk, group: _PreparedGroup, passes: _Passes
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]] | None:
    """Rows of the group's languages that match, and the part of their score above the time."""
    hashes, ends = chunk.view("hashes"), chunk.view("ends")
    at = group.find(hashes)
    if not len(at):
        return None
    rows = ends.searchsorted(at, "right")
    wanted = group.is_language[chunk.view("languages")[rows]] & passes(rows)
    at, rows = at[wanted], rows[wanted]
    if not len(rows):
        return None
    bits = np.left_shift(1, group.order[group.hashes.searchsorted(hashes[at])]).astype(np.uint16)
    starts = np.where(rows > 0, ends[rows - 1], 0)
    in_headline = at - starts < chunk.view("headline_terms")[rows]
    first = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
    matched = np.bitwise_count(np.bitwise_or.reduceat(bits, first)).astype(np.int64)
    headline = np.bitwise_count(np.bitwise_or.reduceat(np.where(in_headline, bits, 0), first))
    enough = matched >= group.min_matches
    for phrase in group.phrases:
        enough &= np.isin(rows[first], _rows_with(chunk, phrase))
    ranks = (MAX_QUERY_TERMS - group.terms + matched) << 4 | headline
    return rows[first][enough], ranks[enough].astype(np.uint64)


def _rows_with(chunk: _Chunk, phrase: Sequence[int]) -> npt.NDArray[np.int64]:
    """The rows whose headline or source has these hashes next to each other."""
    hashes, ends, size = chunk.view("hashes"), chunk.view("ends"), len(phrase)
    places = max(0, len(hashes) - size + 1)
    is_here = np.ones(places, np.bool_)
    for i, wanted in enumerate(phrase):
        is_here &= hashes[i : i + places] == wanted
    at = np.flatnonzero(is_here)
    rows = ends.searchsorted(at, "right")
    source_at = np.where(rows > 0, ends[rows - 1], 0) + chunk.view("headline_terms")[rows]
    within = ((at + size <= source_at) | (at >= source_at)) & (at + size <= ends[rows])
    found: npt.NDArray[np.int64] = rows[within]
    return found


def _number_of(table: dict[str, int], name: str) -> int:
    return table.setdefault(name, min(len(table), MAX_LANGUAGES - 1))
