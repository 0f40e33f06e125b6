"""Search of stored articles by words of their headlines, their sources and their key terms.

Two indexes answer together: the headlines and sources of the newest articles, in memory, and the term index,
with the newest articles of each key term. Results are ordered by words of the query that they lack, then by
words in the headline, then newest first; or those that lack the fewest words, newest first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from aggregator.analysis.text.normalization import unaccented
from aggregator.analysis.text.tokenizer import PHRASE, has_quoted, search_terms, tokenize
from aggregator.domain import ArticleRecord
from aggregator.index import Index, StoredArticle, keys
from aggregator.index.codec.postings import entries_of_terms, is_among, top_by_terms
from aggregator.index.keys import term_hash
from aggregator.queries.headline_index import HeadlineIndex
from aggregator.queries.headline_table import (
    MAX_QUERY_TERMS,
    MAX_TIME_S,
    NO_FILTER,
    NO_HITS,
    Hits,
    SearchFilter,
    TermGroup,
    canonical_or_none,
    score,
    source_terms,
)

MAX_TERM_ARTICLES = 200  # articles of the term index that a search compares; the newest ones first
# Records read per page in addition to those shown: some rows are of articles that left since.
SPARE_RECORDS = 20
DEFAULT_LANGUAGES = ("en",)  # languages that a query is tokenized in before any article was read
CHUNKS_PER_YIELD = 4
EXACT_SCORE = 1 << 62  # of the article whose id or URL was searched: above all others

SearchOrder = Literal["relevance", "time"]

ResultKey = tuple[int, int]  # score and article number: the sort key of a result, both descending


@dataclass(frozen=True, slots=True)
class FoundArticle:
    """One result. ``missing``: words of the query that neither its headline, source nor key terms have."""

    article: StoredArticle
    missing: int
    key: ResultKey


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One page of results; ``total``: of the whole search; ``next_key``: of the last one if there are more.

    ``words``: number of words that were searched, 0 if all are stop words; ``searched``: articles whose
    headlines were searched; ``since_ms``: arrival of the oldest of these.
    """

    articles: tuple[FoundArticle, ...]
    total: int
    next_key: ResultKey | None
    words: int
    searched: int
    since_ms: int | None
    is_loading: bool


class ArticleSearch:
    """Finds stored articles. ``headlines``: those of recent articles, read by the first search."""

    def __init__(self, index: Index, headlines: HeadlineIndex) -> None:
        self._index = index
        self.headlines = headlines
        # One scan at a time: between its slices posts run, however many searches wait.
        self._scan_lock = asyncio.Lock()

    async def find(
        self,
        query: str,
        search_filter: SearchFilter = NO_FILTER,
        *,
        limit: int = 20,
        after: ResultKey | None = None,
        order: SearchOrder = "relevance",
    ) -> SearchResult:
        """The best matches of ``query`` behind ``after``; without a query the newest articles."""
        query = query.strip()
        headlines = self.headlines
        await headlines.catch_up()
        languages = headlines.table.languages or DEFAULT_LANGUAGES
        groups = term_groups(query, languages)
        hits = NO_HITS if query and not groups else await self._headline_hits(groups, search_filter)
        raw_terms = {term for lang in languages for term in tokenize(query, lang)[:MAX_QUERY_TERMS]}
        special = {found.key[1]: found for found in await self._by_terms(groups, raw_terms, search_filter)}
        if order == "time":
            best = max([int(hits.scores.max(initial=0)), *(f.key[0] for f in special.values())]) >> 36
            is_best, by_time = hits.scores >> np.uint64(36) == best, best << 36 | MAX_TIME_S
            scores = hits.scores[is_best] & np.uint64(by_time)  # without the words in the headline
            hits = Hits(hits.numbers[is_best], scores, hits.spaces[is_best])
            special = {
                n: replace(found, key=(found.key[0] & by_time, n))
                for n, found in special.items()
                if found.key[0] >> 36 == best
            }
        special |= {found.key[1]: found for found in await self.exact(query, search_filter)}
        is_special = is_among(hits.numbers, np.array(sorted(special), np.uint64))
        total = len(hits.numbers) + len(special) - int(is_special.sum())
        top = _top(hits, ~is_special, limit + SPARE_RECORDS, after)
        stored = await self._load({number: headlines.table.space(space) for _, number, space in top})
        by_number = {
            number: FoundArticle(
                stored[number], MAX_QUERY_TERMS - (score_ >> 36) if groups else 0, (score_, number)
            )
            for score_, number, _ in top
            if number in stored
        }
        by_number |= {n: result for n, result in special.items() if after is None or result.key < after}
        records = {n: result.article.record for n, result in by_number.items()}
        quoted = [by_number[n] for n, r in records.items() if has_quoted(query, r.lang, r.title, r.source)]
        total -= len(by_number) - len(quoted)  # of this page: rows hold stems
        found = sorted(quoted, key=lambda result: result.key, reverse=True)
        is_cut = len(top) == limit + SPARE_RECORDS
        if is_cut:  # what is worse than the last of these has not been read
            found = [result for result in found if result.key >= top[-1][:2]]
        page = found[:limit]
        next_key: ResultKey | None = top[-1][:2] if is_cut else None
        if len(found) > limit or (is_cut and len(page) == limit):
            next_key = page[-1].key
        return SearchResult(
            articles=tuple(page),
            total=total,
            next_key=next_key,
            words=max((len(group.terms) for group in groups), default=0),
            searched=len(headlines.table),
            since_ms=headlines.since_ms,
            is_loading=not headlines.loaded.is_set(),
        )

    async def _headline_hits(self, groups: Sequence[TermGroup], search_filter: SearchFilter) -> Hits:
        stacks = await asyncio.gather(*map(self._index.segments.stack, self._index.spaces))
        floors = {stack.space: stack.floor for stack in stacks}
        found = [NO_HITS]
        async with self._scan_lock:
            parts = self.headlines.table.search(groups, search_filter, floors)
            for at, part in enumerate(parts):
                found.append(part)
                if at % CHUNKS_PER_YIELD == CHUNKS_PER_YIELD - 1:
                    await asyncio.sleep(0)
        return Hits(*map(np.concatenate, zip(*found, strict=True)))

    async def _by_terms(
        self, groups: Sequence[TermGroup], terms: Iterable[str], search_filter: SearchFilter
    ) -> list[FoundArticle]:
        if not groups or search_filter.verdict == "duplicate":  # the term index has no duplicates
            return []
        hashes = sorted({term_hash(term) for group in groups for term in (*group.terms, *terms)})
        buckets = keys.term_buckets(b"", hashes)
        snapshot = await self._index.segments.read(dict.fromkeys(self._index.spaces, buckets))
        spaces: dict[int, str] = {}
        for space in self._index.spaces:
            values = snapshot.values_in_all_segments(space, buckets)
            found = entries_of_terms(values, hashes, snapshot.stacks[space].floor)
            best = top_by_terms(*found, np.ones(len(hashes)))[:MAX_TERM_ARTICLES]
            spaces |= dict.fromkeys(best.tolist(), space)
        newest = sorted(spaces, reverse=True)[:MAX_TERM_ARTICLES]
        stored = await self._load({number: spaces[number] for number in newest})
        by_language = {lang: group for group in groups for lang in group.languages}
        results = (
            _compare(article, by_language[article.record.lang])
            for article in stored.values()
            if article.record.lang in by_language and search_filter.matches(article.record, article.outcome)
        )
        return [result for result in results if result is not None]

    async def exact(self, query: str, search_filter: SearchFilter = NO_FILTER) -> list[FoundArticle]:
        """The article whose id or URL the query is; of several with one URL the newest."""
        canonical = canonical_or_none(query)
        stored = [*(await self._index.articles.get_many([query, canonical or query])).values()][:1]
        if canonical and not stored:
            with_url = await self.find("", replace(search_filter, url=query), limit=1)
            stored = [found.article for found in with_url.articles]
        return [
            FoundArticle(article, 0, (EXACT_SCORE, article.record.number))
            for article in stored
            if search_filter.matches(article.record, article.outcome)
        ]

    async def _load(self, spaces_by_number: Mapping[int, str]) -> dict[int, StoredArticle]:
        """Those of the articles that are stored under their ids now; the rows of the others are removed."""
        stored = await self._index.articles.current(spaces_by_number)
        if gone := spaces_by_number.keys() - stored.keys():
            self.headlines.table.remove(list(gone))
        return stored


def term_groups(query: str, languages: Iterable[str]) -> list[TermGroup]:
    """The terms of a query in each language, languages with equal terms together; without stop words."""
    by_terms: dict[tuple[tuple[str, ...], tuple[tuple[str, ...], ...]], set[str]] = {}
    for lang in languages:
        terms = tuple(dict.fromkeys(search_terms(query, lang)))[:MAX_QUERY_TERMS]
        if terms:
            phrases = filter(None, (search_terms(quoted, lang) for quoted in PHRASE.findall(query)))
            by_terms.setdefault((terms, tuple(phrases)), set()).add(lang)
    return [TermGroup(frozenset(langs), *key) for key, langs in by_terms.items()]


def _compare(article: StoredArticle, group: TermGroup) -> FoundArticle | None:
    """The result that an article is, from its record; None if it lacks too many words."""
    record = article.record
    headline, source = search_terms(record.title, record.lang), source_terms(record.source, record.lang)
    known = {*headline, *source, *(unaccented(term) for term, _ in record.terms)}
    matched = len(known.intersection(group.terms))
    if matched < group.min_matches:
        return None
    missing = len(group.terms) - matched
    in_headline = len(set(headline).intersection(group.terms))
    key = score(missing, in_headline, record.publication_ms // 1000), record.number
    return FoundArticle(article, missing, key)


def missing_words(record: ArticleRecord, query: str) -> list[str]:
    """The words of a query that neither headline, source nor key terms have, stop words aside."""
    known = {*search_terms(f"{record.title}\n{record.source}", record.lang)}
    known |= {unaccented(term) for term, _ in record.terms}
    return [word for word in query.split() if not known.issuperset(search_terms(word, record.lang))]


def _top(
    hits: Hits, keep: npt.NDArray[np.bool_], count: int, after: ResultKey | None
) -> list[tuple[int, int, int]]:
    if after is not None:
        last_score, last_number = np.uint64(after[0]), np.uint64(after[1])
        keep = keep & (
            (hits.scores < last_score) | ((hits.scores == last_score) & (hits.numbers < last_number))
        )
    (rows,) = keep.nonzero()
    if len(rows) > count:
        scores = hits.scores[rows]
        # the worst score that is needed; all of that score stay, since numbers break ties.
        rows = rows[scores >= np.partition(scores, len(rows) - count)[len(rows) - count]]
    order = np.lexsort((hits.numbers[rows], hits.scores[rows]))[::-1][:count]
    columns = (hits.scores[rows][order], hits.numbers[rows][order], hits.spaces[rows][order])
    return list(zip(*(column.tolist() for column in columns), strict=True))
