"""Who had it first: planted copies, edges against time, and syndication families.

    scripts/bench provenance [FILE ...] [--originals N] [--delay-hours N] [--seed N]
    scripts/bench provenance --window N

The articles of each development file (``ru_telegram_dev``, times to the second, and ``headlines_en_dev``,
about 1,000 outlets) are posted to a service in memory together with planted copies. Each arrives up to
``--delay-hours`` after its publication, so that many copies arrive before their originals.

* **Copies**: N articles without a natural duplicate get 1 to 4 copies each, by other outlets, edited as in
  ``aggregator_lab/evaluation/edits.py`` (headlines: as they are, one word replaced, or the last words
  dropped), with a median lag of 30 minutes. Each repeats the original or, in 3 of 10 cases, an earlier copy.
* **found**: in the original's duplicate group. Of these: is the **first publisher** the original's (next to
  it: the share of originals that arrived first), and does the **edge** lead to the article that was copied,
  or to one of equal text? **Against time**: edges, natural ones included, to an article of the same time or
  later.
* **Families** of the natural articles against names: two outlets have one owner by name if their names share
  a stem (``same_owner``), and count if they share 5 texts or more. The constants of ``FamilyRule`` are chosen
  on each file by F1 and tried on the others.

``--window``: time and bytes of counting N generated articles, a fifth of them copies, instead.

Without the development data it is skipped.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import itertools
import json
import random
import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.dedup.policy import Policy
from aggregator.domain import Answer, Article, StreamItem, article_number_at
from aggregator.index import Index
from aggregator.provenance.lineage import RESEMBLANCE_TOLERANCE, Lineage, Publication, trace
from aggregator.provenance.statistics import (
    MIN_DAYS,
    MIN_SHARE,
    MIN_SHARED_TEXTS,
    SourceCounter,
    find_families,
)
from aggregator.provenance.window import PublicationWindow
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS, MINUTE_MS, SECOND_MS
from aggregator_archive.replay import parse_time_ms
from aggregator_lab.evaluation.edits import EDITS, Editor, split_pieces
from tests.support.development_data import DATA
from tests.support.factories import START_MS, in_process
from tests.support.wiring import build_core

FILES = ("ru_telegram_dev", "headlines_en_dev")
MIN_WORDS = {"text": 30, "headline": 8}
MAX_COPIES, CHAIN_SHARE, MEDIAN_LAG_MINUTES = 4, 0.3, 30
ARTICLES_PER_POST = 100
PLANTED = "planted-"
TOLERANCES = (0.0, 0.01, 0.03, 0.05, 0.1, 0.2)
# Names of channels of one owner contain one of these.
CHANNEL_STEMS = ("библиотека ", "топор", "москва с огоньком")
SHARES, COUNTS, DAYS = (0.05, 0.075, 0.1, 0.15, 0.2, 0.3), (3, 5, 8), (1, 3, 5)
MIN_SHARED = 5


@dataclass(slots=True)
class Planted:
    """An original and its copies: id of each copy -> id of the article that it repeats."""

    original: Article
    models: dict[str, str] = field(default_factory=dict)
    copies: dict[str, Article] = field(default_factory=dict)


def read_articles(path: Path) -> list[Article]:
    """The articles of a file that have a time."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [
        Article(
            id=row["id"],
            title=row["title"] or "",
            text=row["text"] or "",
            source=row["source"],
            published_at_ms=parse_time_ms(row["published_at"]),
        )
        for row in rows
        if row["published_at"]
    ]


def plant(articles: Sequence[Article], count: int, rng: random.Random) -> list[Planted]:
    """``count`` originals, whose texts occur once, with their copies."""
    has_texts = any(article.text for article in articles)
    lang = "ru" if has_texts else "en"
    editor = Editor(articles, lang, seed=rng.randrange(1 << 30))
    occurrences = Counter(article.text or article.title for article in articles)
    least = MIN_WORDS["text" if has_texts else "headline"]
    usable = [
        a for a in articles
        if occurrences[a.text or a.title] == 1 and len((a.text or a.title).split()) >= least
    ]  # fmt: skip
    planted = []
    for original in rng.sample(usable, min(count, len(usable))):
        family = Planted(original)
        for number in range(rng.randint(1, MAX_COPIES)):
            model = original
            if family.copies and rng.random() < CHAIN_SHARE:
                model = rng.choice(list(family.copies.values()))
            edited = _edited(editor, model, rng) if has_texts else _edited_headline(model, rng)
            lag_ms = round(rng.expovariate(0.6931 / MEDIAN_LAG_MINUTES) * MINUTE_MS) + SECOND_MS
            at_ms = (model.published_at_ms or 0) + (lag_ms if has_texts else lag_ms + MINUTE_MS)
            id_ = f"{PLANTED}{original.id}-{number}"
            family.copies[id_] = replace(
                edited, id=id_, source=f"{PLANTED}{number}.example", published_at_ms=at_ms
            )
            family.models[id_] = model.id
        planted.append(family)
    return planted


def _edited(editor: Editor, article: Article, rng: random.Random) -> Article:
    name = rng.choice(["same", *EDITS])
    edited = EDITS[name](editor, article, rng) if name != "same" else article
    return edited if edited is not None and len(edited.text.split()) >= MIN_WORDS["text"] else article


def _edited_headline(article: Article, rng: random.Random) -> Article:
    pieces = split_pieces(article.title, "en")
    edit = rng.choice(("same", "replaced", "cut"))
    if edit == "replaced":
        pieces[rng.randrange(len(pieces))] = "reportedly "
    elif edit == "cut":
        pieces = pieces[: len(pieces) - 2]
    return replace(article, title="".join(pieces).strip())


class Stored:
    """A service in memory with the articles of one file and the planted copies."""

    def __init__(self, name: str, args: argparse.Namespace, analyzer: Analyzer) -> None:
        rng = random.Random(f"{args.seed} {name}")
        self.name = name
        articles = read_articles(DATA / f"{name}.jsonl.gz")
        self.planted = plant(articles, args.originals, rng)
        copies = [copy for family in self.planted for copy in family.copies.values()]
        delay_ms = round(args.delay_hours * HOUR_MS)
        arrivals = [((a.published_at_ms or 0) + rng.randint(1, delay_ms), a) for a in (*articles, *copies)]
        self._arrivals = sorted(arrivals, key=lambda pair: pair[0])
        self._now_ms = 0
        self.index = Index(MemoryStore(lambda: self._now_ms), analyzer.spaces)
        self._ingest = build_core(self.index, in_process(analyzer), Policy(), clock=self._tick).ingest
        self.groups: dict[int, list[str]] = {}
        self.group_of: dict[str, int] = {}

    def _tick(self) -> int:
        self._now_ms += 1
        return self._now_ms

    async def post(self) -> None:
        """Post everything in order of arrival."""
        for start in range(0, len(self._arrivals), ARTICLES_PER_POST):
            part = self._arrivals[start : start + ARTICLES_PER_POST]
            self._now_ms = max(self._now_ms, part[-1][0])
            articles = [article for _, article in part]
            for answer in await self._ingest.submit_many(articles):
                assert isinstance(answer, Answer) or "text" in str(answer)
        ids = [article.id for _, article in self._arrivals]
        for start in range(0, len(ids), ARTICLES_PER_POST):
            stored = await self.index.articles.get_many(ids[start : start + ARTICLES_PER_POST])
            for id_, article in stored.items():
                self.group_of[id_] = article.group
                self.groups.setdefault(article.group, []).append(id_)

    async def lineages(self, tolerance: float = RESEMBLANCE_TOLERANCE) -> dict[int, Lineage]:
        """The lineage of every text of several articles, by group."""
        several = {group: ids for group, ids in self.groups.items() if len(ids) > 1}
        found = {}
        for group, ids in several.items():
            stored = await self.index.articles.get_many(ids)
            found[group] = trace([Publication.of(article.record) for article in stored.values()], tolerance)
        return found

    async def natural_counter(self) -> SourceCounter:
        """The statistics of the articles that were not planted."""
        window = PublicationWindow()
        positions: dict[bytes, bytes] = {}
        while True:
            items, positions = await self.index.stream.read(positions, 1000)
            if not items:
                break
            for item in items:
                if not item.source.startswith(PLANTED):
                    window.add(item)
        counter = SourceCounter(window.publications())
        for _ in counter.steps():
            pass
        return counter


@dataclass(slots=True)
class Direction:
    """Counts of the planted copies of one file."""

    copies: int = 0
    found: int = 0
    texts: int = 0
    first_right: int = 0
    arrived_first: int = 0
    edges_right: int = 0


def judge(stored: Stored, lineages: dict[int, Lineage]) -> Direction:
    """First publishers and edges of the planted copies."""
    result = Direction()
    for family in stored.planted:
        group = stored.group_of.get(family.original.id)
        found = [id_ for id_ in family.copies if group is not None and stored.group_of.get(id_) == group]
        result.copies += len(family.copies)
        result.found += len(found)
        if group is None or not found:
            continue
        steps = lineages[group].steps
        by_id = {step.record.id: step for step in steps}
        result.texts += 1
        result.first_right += steps[0].record.id == family.original.id
        result.arrived_first += by_id[family.original.id].record.first_version == group
        for id_ in found:
            parent = steps[by_id[id_].parent or 0].record
            model = by_id.get(family.models[id_])
            result.edges_right += parent.id == family.models[id_] or (
                model is not None and model.record.text_hash == parent.text_hash
            )
    return result


def against_time(lineages: dict[int, Lineage]) -> tuple[int, int]:
    """Edges, and those to an article of the same time or later, by the times of the records."""
    edges = wrong = 0
    for lineage in lineages.values():
        for step in lineage.steps:
            if step.parent is not None:
                edges += 1
                parent = lineage.steps[step.parent]
                wrong += parent.record.published_at_ms >= step.record.published_at_ms  # type: ignore[operator]
    return edges, wrong


class FamilyRule(NamedTuple):
    """When two outlets are linked: share of the smaller one's texts, shared texts, different days."""

    min_share: float = MIN_SHARE
    min_shared_texts: int = MIN_SHARED_TEXTS
    min_days: int = MIN_DAYS


def same_owner(a: str, b: str) -> bool:
    """Whether two names say that their outlets have one owner.

    Channels: both contain one of ``CHANNEL_STEMS``. Other names: without article, domain ending and signs
    they are equal, or the shorter one, of 3 letters or more and at least half as long, begins the other.
    """
    lower = a.casefold(), b.casefold()
    if any(all(stem in name for name in lower) for stem in CHANNEL_STEMS):
        return True
    plain = [re.sub(r"\.(com|org|net|gov|eu|co\.uk)$", "", re.sub(r"^(the|www\.) ?", "", n)) for n in lower]
    shorter, longer = sorted((re.sub(r"[\W_]", "", name) for name in plain), key=len)
    return shorter == longer or (
        len(shorter) >= 3 and 2 * len(shorter) >= len(longer) and longer.startswith(shorter)
    )


@dataclass(slots=True)
class Pairs:
    """Pairs of outlets of one file that share MIN_SHARED texts or more, and those of one owner by name."""

    counter: SourceCounter
    names: Sequence[str]
    by_name: set[tuple[int, int]]

    def joined(self, rule: FamilyRule) -> set[tuple[int, int]]:
        """The pairs that are in one family."""
        families = find_families(self.counter.texts, self.counter.shared, *rule)
        return {pair for family in families for pair in itertools.combinations(family, 2)}

    def f1(self, rule: FamilyRule) -> float:
        """F1 of the joined pairs against the names."""
        joined = self.joined(rule)
        return 2 * len(joined & self.by_name) / max(1, len(joined) + len(self.by_name))


def pairs_of(counter: SourceCounter, names: Sequence[str]) -> Pairs:
    """The pairs of a file."""
    enough = [pair for pair, shared in counter.shared.items() if shared.count >= MIN_SHARED]
    return Pairs(counter, names, {(a, b) for a, b in enough if same_owner(names[a], names[b])})


def rules() -> Iterator[FamilyRule]:
    """The grid."""
    for share, count, days in itertools.product(SHARES, COUNTS, DAYS):
        yield FamilyRule(share, count, days)


async def measure(stored: Stored) -> Pairs:
    """Post one file and print what was found of its copies."""
    await stored.post()
    lineages = await stored.lineages()
    result = judge(stored, lineages)
    edges, wrong = against_time(lineages)
    print(
        f"{stored.name}: {result.copies} copies of {len(stored.planted)} originals, {result.found} found; "
        f"first publisher right {result.first_right} of {result.texts} "
        f"({result.first_right / result.texts:.3f}; the original arrived first: "
        f"{result.arrived_first / result.texts:.3f}); edge right {result.edges_right} of {result.found} "
        f"({result.edges_right / result.found:.3f}); {wrong} of {edges} edges against time"
    )
    scores = []
    for tolerance in TOLERANCES:
        other = judge(stored, await stored.lineages(tolerance))
        scores.append(f"{tolerance:g}: {other.edges_right / other.found:.3f}")
    print(f"  edges right by tolerance  {', '.join(scores)}")
    counter = await stored.natural_counter()
    return pairs_of(counter, counter.window.outlets)


def print_families(found: dict[str, Pairs]) -> None:
    """Families of each file, and the constants chosen on the other files."""
    for name, pairs in found.items():
        joined = pairs.joined(FamilyRule())
        missed = pairs.by_name - joined
        print(
            f"{name}: {len(joined)} pairs in families, {len(joined & pairs.by_name)} of one owner by name; "
            f"not joined: {len(missed)} of {len(pairs.by_name)} pairs of one name with {MIN_SHARED} texts"
        )
        for a, b in sorted(joined - pairs.by_name):
            print(f"  joined, other names: {pairs.names[a]} | {pairs.names[b]}")
        for a, b in sorted(missed):
            print(f"  not joined: {pairs.names[a]} | {pairs.names[b]}")
        others = [other for key, other in found.items() if key != name]
        if others:
            chosen = max(rules(), key=lambda rule: (min(o.f1(rule) for o in others), rule == FamilyRule()))
            print(
                f"  chosen on the others: {chosen.min_share:g}, {chosen.min_shared_texts} texts, "
                f"{chosen.min_days} days; F1 here {pairs.f1(chosen):.3f}, with the defaults "
                f"{pairs.f1(FamilyRule()):.3f}"
            )


def measure_window(count: int, seed: int) -> None:
    """Print the cost of counting ``count`` generated articles."""
    rng = random.Random(seed)
    window = PublicationWindow()
    originals: list[int] = []
    for n in range(count):
        at_ms = START_MS + n * 5 * SECOND_MS
        number = article_number_at(at_ms, n % 1000)
        group = rng.choice(originals[-2000:]) if originals and rng.random() < 0.2 else None
        if group is None:
            originals.append(number)
        window.add(
            StreamItem(
                number, number, str(n), "new", at_ms,
                canonical_first=group,
                source=f"outlet {int(rng.paretovariate(1)) % 20_000}",
                space="xx.0000",
                published_at_ms=at_ms - rng.randrange(10**6),
            )
        )  # fmt: skip
    started = time.process_time()
    counter = SourceCounter(window.publications())
    longest, before = 0.0, time.process_time()
    for _ in counter.steps():
        longest, before = max(longest, time.process_time() - before), time.process_time()
    report = counter.report(0, window.since_ms)
    seconds = time.process_time() - started
    size = len(zlib.compress(msgspec.msgpack.encode(report), 6))
    print(
        f"{count} articles counted in {seconds:.2f} s of processor time, longest step {longest:.2f} s; "
        f"{len(report.sources)} outlets, {size} bytes stored"
    )


def main() -> None:
    """Measure each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="*", default=FILES, help="names of development files")
    parser.add_argument("--originals", type=int, default=400, help="articles that get copies")
    parser.add_argument("--delay-hours", type=float, default=6, help="longest time until an article arrives")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--window", type=int, help="count so many generated articles instead")
    args = parser.parse_args()
    if args.window:
        measure_window(args.window, args.seed)
        return
    absent = [name for name in args.files if not (DATA / f"{name}.jsonl.gz").exists()]
    if absent:
        print(f"skipped: {', '.join(absent)} not in {DATA} (set AGGREGATOR_DATA)", file=sys.stderr)
        return
    analyzer = Analyzer(load_models())
    found = {name: asyncio.run(measure(Stored(name, args, analyzer))) for name in args.files}
    print_families(found)


if __name__ == "__main__":
    main()
