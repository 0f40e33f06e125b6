"""Unlabeled articles in order through the ingest service, and the pairs that it calls duplicates.

Dated articles arrive when they were published, others 1 ms after the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from aggregator.analysis.analyzer import Analyzer, uses_spaces
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, AnalyzeMany, Answer, Article
from aggregator.errors import AggregatorError
from aggregator.index import Index
from aggregator.ingest.service import BATCH_ARTICLES, IngestService
from aggregator.store.memory import MemoryStore
from aggregator_lab.evaluation import published_shingling, shingling
from aggregator_lab.evaluation.duplicate_counter import PairEvidence, judge_pair
from aggregator_lab.evaluation.online_protocol import CLOCK_START_MS, duplicate_group
from aggregator_lab.evaluation.published_shingling import PublishedSettings
from aggregator_lab.evaluation.shingling import ShingleSamples, ShinglingSettings


@dataclass(frozen=True, slots=True)
class StreamArticle:
    """A stored article, with title and text as extracted if it was HTML.

    lang   as analyzed, ISO 639-1
    group  id of the canonical article of its duplicate group
    """

    article: Article
    lang: str
    group: str


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """A duplicate ``article`` of the earlier article ``match``, judged by the counter.

    ``rule``, ``distance`` (bits) and ``overlap`` are those of the service's match; None for other methods.
    """

    article: Article
    match: Article
    lang: str
    evidence: PairEvidence
    rule: str | None = None
    distance: int | None = None
    overlap: float | None = None


class DuplicateStream:
    """An ingest service over an in-memory store, and what it was sent.

    stored    articles by id, in order
    pairs     the duplicates with their matches
    rejected  number of articles that the analysis rejected (no text)
    """

    def __init__(self, analyzer: Analyzer, policy: Policy) -> None:
        self.policy = policy
        self.stored: dict[str, StreamArticle] = {}
        self.pairs: list[DuplicatePair] = []
        self.rejected = 0
        self._now_ms = 0
        self._ingest = IngestService(
            Index(MemoryStore(), analyzer.spaces), _in_process(analyzer), policy, clock=self._tick
        )

    async def send(self, articles: Sequence[Article]) -> None:
        """Store ``articles``, whose ids must differ, and judge the duplicates among them."""
        for start in range(0, len(articles), BATCH_ARTICLES):
            batch = articles[start : start + BATCH_ARTICLES]
            dates = [a.published_at_ms for a in batch if a.published_at_ms is not None]
            self._now_ms = max(self._now_ms, *dates, 0) if dates else self._now_ms or CLOCK_START_MS
            analyses = await self._ingest.analyze_many(batch)
            answers = await self._ingest.process_analyzed(batch, analyses)
            for article, analysis, answer in zip(batch, analyses, answers, strict=True):
                self._record(article, analysis, answer)

    async def group_of_match(self, article: Article) -> str | None:
        """Group of the article that ``article`` would be a duplicate of, else None. Stores nothing."""
        (answer,) = await self._ingest.submit_many([article], dry_run=True)
        if isinstance(answer, Answer) and answer.outcome.match is not None:
            return duplicate_group(article.id, answer)
        return None

    def _record(
        self, article: Article, analysis: Analysis | AggregatorError, answer: Answer | AggregatorError
    ) -> None:
        if not isinstance(analysis, Analysis) or not isinstance(answer, Answer):
            self.rejected += 1
            return
        shown = replace(article, title=analysis.title, text=analysis.text, html="")
        self.stored[article.id] = StreamArticle(shown, analysis.lang, duplicate_group(article.id, answer))
        if (match := answer.outcome.match) is not None:
            matched = self.stored[match.id].article
            evidence = judge_pair(shown, matched, analysis.lang)
            self.pairs.append(
                DuplicatePair(
                    shown, matched, analysis.lang, evidence, match.rule, match.distance, match.overlap
                )
            )

    def _tick(self) -> int:
        self._now_ms += 1
        return self._now_ms


def shingling_pairs(stream: DuplicateStream, setting: ShinglingSettings) -> Iterator[DuplicatePair]:
    """The duplicates by our reading of shingling; in languages without words a shingle is 5 characters."""
    samples: dict[str, frozenset[int]] = {}
    languages = {id_: item.lang for id_, item in stream.stored.items()}
    for n, texts in _texts_by_width(stream, setting.n):
        samples.update(shingling.sample_texts(texts, n, setting.k, setting.f, languages).by_id)
    order = list(stream.stored)
    yield from _judged(
        stream, shingling.decide_in_order(order, ShingleSamples(samples, cached=False), setting)
    )


def published_pairs(stream: DuplicateStream, setting: PublishedSettings) -> Iterator[DuplicatePair]:
    """As ``shingling_pairs``, by the published rule (``published_shingling.py``)."""
    sketches = {
        id_: published_shingling.sketch(text, n, setting.k, setting.p, setting.f, stream.stored[id_].lang)
        for n, texts in _texts_by_width(stream, setting.n)
        for id_, text in texts.items()
    }
    nearest = published_shingling.nearest_earlier(list(stream.stored), sketches)
    yield from _judged(stream, [item.decide(setting.t) for item in nearest])


def _texts_by_width(stream: DuplicateStream, n: int) -> Iterator[tuple[int, dict[str, str]]]:
    for has_words, width in ((True, n), (False, shingling.MAX_SHINGLE_WORDS)):
        yield (
            width,
            {
                id_: item.article.text or item.article.title
                for id_, item in stream.stored.items()
                if (uses_spaces(item.lang) or item.lang == "zh") is has_words
            },
        )


def _judged(stream: DuplicateStream, decisions: Iterable[shingling.Decision]) -> Iterator[DuplicatePair]:
    for decision in decisions:
        if decision.original is not None:
            item, match = stream.stored[decision.id], stream.stored[decision.original].article
            yield DuplicatePair(item.article, match, item.lang, judge_pair(item.article, match, item.lang))


def _in_process(analyzer: Analyzer) -> AnalyzeMany:
    async def analyze_many(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return analyzer.analyze_many(articles)

    return analyze_many
