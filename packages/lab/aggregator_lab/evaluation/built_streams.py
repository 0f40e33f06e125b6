"""Articles lost, and copies kept, in streams built from real articles (``built_cases.py``).

lost       an article with news in it that the service would drop (``keep: false``)
needless   a copy that it would keep although it is neither fuller nor marked as updated or reversed
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import permutations
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.text.language import detect_language
from aggregator.dedup.policy import Policy, PolicyProfiles
from aggregator.domain import Answer, Article
from aggregator.index import Index
from aggregator.ingest.service import IngestService
from aggregator.store.memory import MemoryStore
from aggregator_lab.evaluation.built_cases import KINDS, Case, addressed, five_versions
from aggregator_lab.evaluation.duplicate_stream import DuplicateStream, is_needless
from aggregator_lab.evaluation.online_protocol import CLOCK_START_MS, analyze_by_id, precomputed
from aggregator_lab.evaluation.unrelated import (
    MIN_NEWS_SHARE,
    MIN_WORDS,
    ExhaustedError,
    Supply,
    joined_pieces,
    shingles,
    unknown_share,
)

MIN_LANGUAGE_ARTICLES = 30  # a language with fewer is left out
SAMPLE_ARTICLES = 6_000  # read of each language, in random order
ORDERED_ARTICLES = 5  # in 120 orders each


@dataclass(slots=True)
class BuiltResult:
    """Counts of one kind of case in one language.

    articles    judged articles with news, or pages; ``lost`` of them
    copies      judged copies; ``missed``: not called duplicates
    needless    copies kept, and pages kept without news
    fuller      of ``expected_fuller`` articles, those answered so
    examples    ids and headlines of at most 5 articles that were lost or kept needlessly
    """

    lang: str
    kind: str
    cases: int = 0
    articles: int = 0
    lost: int = 0
    copies: int = 0
    missed: int = 0
    needless: int = 0
    expected_fuller: int = 0
    fuller: int = 0
    examples: list[tuple[str, ...]] = field(default_factory=list)

    def count(self, case: Case, articles: list[Article], answers: list[Answer]) -> None:
        """Add one case."""
        self.cases += 1
        seen: set[tuple[str, ...]] = set()
        for item, article, answer in zip(case, articles, answers, strict=True):
            kept, fuller = answer.outcome.keep, answer.outcome.fuller
            expected = item.expected
            if any(other.expected == "page" for other in case):
                pieces = joined_pieces(article.text, self.lang)
                if expected == "page":
                    expected = "news" if unknown_share(pieces, seen) >= MIN_NEWS_SHARE else "copy"
                seen |= shingles(pieces) if kept else set()
            lost = expected == "news" and not kept
            needless = expected == "copy" and is_needless(answer)
            self.articles += expected == "news"
            self.copies += expected == "copy"
            self.lost += lost
            self.needless += needless
            self.missed += item.expected == "copy" and answer.outcome.verdict != "duplicate"
            self.expected_fuller += item.fuller
            self.fuller += item.fuller and fuller
            if (lost or needless) and len(self.examples) < 5:
                self.examples.append(_example(article, answer, {a.id: a for a in articles}))


def _example(article: Article, answer: Answer, others: dict[str, Article]) -> tuple[str, ...]:
    match = answer.outcome.match
    matched = others.get(match.id) if match else None
    how = f"{match.rule} {match.overlap} {match.distance}" if match else answer.outcome.verdict
    texts = [f"{a.title[:60]} | {a.text[:120]}" for a in (article, matched) if a is not None]
    return (article.id, how, *texts)


async def evaluate(
    articles: Sequence[Article],
    analyzer: Analyzer,
    policy: Policy,
    count: int,
    seed: int = 0,
    kinds: Sequence[str] = (),
) -> tuple[list[BuiltResult], dict[str, list[int]]]:
    """Build at least ``count`` judged articles per kind and language from a seeded sample.

    ``kinds``: only those with one of these words in their names. Also returns the number of different
    partitions of five versions in 120 orders, per language and article.
    """
    by_lang: dict[str, list[Article]] = defaultdict(list)
    for article in random.Random(seed).sample(articles, len(articles)):
        lang = detect_language(f"{article.title}\n{article.text[:2_000]}", article.lang)
        if len(by_lang[lang]) < SAMPLE_ARTICLES:
            by_lang[lang].append(article)
    results, partitions = [], {}
    for lang, own in sorted(by_lang.items()):
        if len(own) < MIN_LANGUAGE_ARTICLES:
            continue
        supply = Supply(own, lang, seed)
        for kind in KINDS:
            if not kinds or any(word in kind for word in kinds):
                results.append(await _evaluate_kind(supply, kind, analyzer, policy, count))
        if not kinds or "orders" in kinds:
            partitions[lang] = await _partitions(supply, analyzer, policy)
    return [result for result in results if result.cases], partitions


async def _evaluate_kind(
    supply: Supply, kind: str, analyzer: Analyzer, policy: Policy, count: int
) -> BuiltResult:
    result = BuiltResult(supply.lang, kind)
    for cases in _batches(supply, kind, count):
        stream = DuplicateStream(analyzer, policy)
        sent = [addressed(case, number) for number, case in enumerate(cases)]
        await stream.send([article for case in sent for article in case])
        for case, articles in zip(cases, sent, strict=True):
            if all(article.id in stream.stored for article in articles):
                result.count(case, articles, [stream.stored[a.id].answer for a in articles])
    return result


def _batches(supply: Supply, kind: str, count: int) -> Iterator[list[Case]]:
    """Cases with at least ``count`` judged articles; those of a batch share no source text."""
    supply.refill()
    batch: list[Case] = []
    built = 0
    while built < count:
        try:
            case = KINDS[kind](supply)
        except ExhaustedError:
            if not batch:  # the articles are too few or too short for this kind
                return
            yield batch
            batch = []
            supply.refill()
            continue
        batch.append(case)
        built += sum(item.expected != "base" for item in case)
    yield batch


async def _partitions(supply: Supply, analyzer: Analyzer, policy: Policy) -> list[int]:
    """Numbers of different partitions of five versions of an article, over all orders, per article."""
    supply.refill()
    numbers = []
    for _ in range(ORDERED_ARTICLES):
        try:
            versions = five_versions(supply)
        except ExhaustedError:
            break
        analyses = analyze_by_id(analyzer, versions)
        found = set()
        for order in permutations(versions):
            index = Index(MemoryStore(), analyzer.spaces)
            ingest = IngestService(
                index, precomputed(analyses), PolicyProfiles(policy), clock=lambda: CLOCK_START_MS
            )
            for article in order:
                await ingest.submit_many([article])
            groups: dict[int, set[str]] = defaultdict(set)
            for id_, stored in (await index.articles.get_many([a.id for a in versions])).items():
                groups[stored.group].add(id_)
            found.add(frozenset(map(frozenset, groups.values())))
        numbers.append(len(found))
    return numbers


def as_json(results: Sequence[BuiltResult], partitions: dict[str, list[int]]) -> dict[str, Any]:
    """All values."""
    return {"kinds": [asdict(result) for result in results], "partitions": partitions}


def format_table(results: Sequence[BuiltResult], partitions: dict[str, list[int]]) -> str:
    """Table for a terminal: a row per language and kind."""
    lines = [
        f"streams built from articles of at least {MIN_WORDS} words; lost: news with keep false",
        f"{'lang':4} {'kind':30} {'cases':>5} {'articles':>8} {'lost':>12} {'copies':>6} {'needless':>12} "
        f"{'missed':>6} {'fuller':>9}",
    ]
    for row in results:
        fuller = f"{row.fuller}/{row.expected_fuller}" if row.expected_fuller else ""
        lines.append(
            f"{row.lang:4} {row.kind:30} {row.cases:5} {row.articles:8,} "
            f"{_share(row.lost, row.articles):>12} {row.copies:6,} {_share(row.needless, row.copies):>12} "
            f"{row.missed:6,} {fuller:>9}"
        )
    for lang, numbers in partitions.items():
        if numbers:
            lines.append(
                f"{lang:4} five versions in 120 orders: at most {max(numbers)} partitions; "
                f"per article: {', '.join(map(str, numbers))}"
            )
    return "\n".join(lines)


def _share(count: int, total: int) -> str:
    return f"{count:,} {count / total:6.1%}" if total else "-"
