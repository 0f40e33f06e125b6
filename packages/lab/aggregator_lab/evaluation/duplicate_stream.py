"""Unlabeled articles in order through the ingest service, and the pairs that it calls duplicates.

Dated articles arrive when they were published, others 1 ms after the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from aggregator.analysis.analyzer import Analyzer, uses_spaces
from aggregator.analysis.text.tokenizer import words
from aggregator.dedup.policy import Policy, PolicyProfiles
from aggregator.domain import Analysis, AnalyzeMany, Answer, Article
from aggregator.errors import AggregatorError
from aggregator.index import Index
from aggregator.ingest.service import BATCH_ARTICLES, IngestService
from aggregator.store.memory import MemoryStore
from aggregator_lab.evaluation import published_shingling, shingling
from aggregator_lab.evaluation.online_protocol import CLOCK_START_MS, duplicate_group
from aggregator_lab.evaluation.published_shingling import PublishedSettings
from aggregator_lab.evaluation.shingling import ShingleSamples, ShinglingSettings, containment

MIN_HEADLINE_SIMILARITY = 0.6
OPENING_WORDS = 80
MIN_OPENING_SHARE = 0.2
MIN_CONTAINMENT = 0.8
MIN_CONTAINMENT_UNSPACED = 0.5
SHINGLE_WORDS = 3
SHINGLE_CHARACTERS = 4

Shingles = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """What the counter measures on a pair, each 0..1, and whether the pair is counted as wrong.

    headline_similarity  ``headline_similarity`` of the two headlines
    opening_share        larger share of one text's opening that is in the other text; None without spaces
    containment          share of the shingles of the text with fewer shingles that are in the other text
    """

    headline_similarity: float
    opening_share: float | None
    containment: float
    wrong: bool

    def as_json(self) -> dict[str, float | bool | None]:
        """Rounded measures and the result."""
        opening = self.opening_share
        return {
            "headline_similarity": round(self.headline_similarity, 4),
            "opening_share": None if opening is None else round(opening, 4),
            "containment": round(self.containment, 4),
            "wrong": self.wrong,
        }


def judge_pair(a: Article, b: Article, lang: str) -> PairEvidence:
    """Evidence on the pair, symmetric in ``a`` and ``b``. ``lang``: language of both, ISO 639-1.

    A text that is empty is replaced by its headline.
    """
    headlines = headline_similarity(a.title, b.title)
    words_a, words_b = words(a.text or a.title, lang), words(b.text or b.title, lang)
    shingles_a, shingles_b = text_shingles(words_a, lang), text_shingles(words_b, lang)
    shared = containment(shingles_a, shingles_b)
    if not uses_spaces(lang):
        wrong = headlines < MIN_HEADLINE_SIMILARITY and shared < MIN_CONTAINMENT_UNSPACED
        return PairEvidence(headlines, None, shared, wrong)
    opening = max(opening_share(words_a, shingles_b), opening_share(words_b, shingles_a))
    wrong = headlines < MIN_HEADLINE_SIMILARITY and opening < MIN_OPENING_SHARE and shared < MIN_CONTAINMENT
    return PairEvidence(headlines, opening, shared, wrong)


def headline_similarity(a: str, b: str) -> float:
    """``SequenceMatcher.ratio`` of the headlines in lower case with single spaces, 0..1.

    The larger of both directions, since the ratio depends on the order. 0 if either is empty.
    """
    a, b = " ".join(a.lower().split()), " ".join(b.lower().split())
    if not a or not b:
        return 0.0
    return max(
        SequenceMatcher(None, a, b, autojunk=False).ratio(),
        SequenceMatcher(None, b, a, autojunk=False).ratio(),
    )


def opening_share(tokens: Sequence[str], other: Shingles) -> float:
    """Share of the shingles of the first 80 words that are in the other text, 0..1."""
    opening = _shingles(tokens[:OPENING_WORDS], SHINGLE_WORDS)
    return len(opening & other) / len(opening) if opening else 0.0


def text_shingles(tokens: Sequence[str], lang: str) -> Shingles:
    """Runs of 3 words, or of 4 characters in languages without spaces."""
    if uses_spaces(lang):
        return _shingles(tokens, SHINGLE_WORDS)
    return _shingles("".join(tokens), SHINGLE_CHARACTERS)


def _shingles(items: Sequence[str], width: int) -> Shingles:
    return frozenset(zip(*(items[i:] for i in range(width)), strict=False))


@dataclass(frozen=True, slots=True)
class StreamArticle:
    """A stored article, with title and text as extracted if it was HTML.

    lang    as analyzed, ISO 639-1
    group   id of the canonical article of its duplicate group
    answer  of the service
    """

    article: Article
    lang: str
    group: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """A duplicate ``article`` of the earlier article ``match``, judged by the counter.

    ``rule``, ``distance`` (bits) and ``overlap`` are those of the service's match; None for other methods,
    which keep no duplicate. ``kept``: by a crawler.
    """

    article: Article
    match: Article
    lang: str
    evidence: PairEvidence
    rule: str | None = None
    distance: int | None = None
    overlap: float | None = None
    kept: bool = False


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
            Index(MemoryStore(), analyzer.spaces),
            _in_process(analyzer),
            PolicyProfiles(policy),
            clock=self._tick,
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

    async def check(self, article: Article) -> Answer | None:
        """The answer to an article, which is not stored; None if it cannot be analyzed."""
        (answer,) = await self._ingest.submit_many([article], dry_run=True)
        return answer if isinstance(answer, Answer) else None

    def _record(
        self, article: Article, analysis: Analysis | AggregatorError, answer: Answer | AggregatorError
    ) -> None:
        if not isinstance(analysis, Analysis) or not isinstance(answer, Answer):
            self.rejected += 1
            return
        shown = replace(article, title=analysis.title, text=analysis.text, html="")
        group = duplicate_group(article.id, answer)
        self.stored[article.id] = StreamArticle(shown, analysis.lang, group, answer)
        if (match := answer.outcome.match) is not None:
            matched = self.stored[match.id].article
            evidence = judge_pair(shown, matched, analysis.lang)
            how = match.rule, match.distance, match.overlap, answer.outcome.keep
            self.pairs.append(DuplicatePair(shown, matched, analysis.lang, evidence, *how))

    def _tick(self) -> int:
        self._now_ms += 1
        return self._now_ms


def is_needless(answer: Answer) -> bool:
    """Whether a copy is kept although it is neither fuller nor marked as updated or reversed."""
    outcome = answer.outcome
    return outcome.keep and not (outcome.fuller or outcome.updated_figures or outcome.reversed)


def shingling_pairs(stream: DuplicateStream, setting: ShinglingSettings) -> Iterator[DuplicatePair]:
    """The duplicates by our reading of shingling; in languages without words a shingle is 5 characters."""
    samples: dict[str, frozenset[int]] = {}
    languages = {id_: item.lang for id_, item in stream.stored.items()}
    for n, texts in _texts_by_width(stream, setting.n):
        samples.update(shingling.sample_texts(texts, n, setting.k, setting.f, languages).by_id)
    order = list(stream.stored)
    yield from _judged(stream, shingling.decide_in_order(order, ShingleSamples(samples), setting))


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
