"""Pairs judged by a person: a page to judge them on, and agreement of the service.

The page shows a random sample of duplicates, without what the counter says, and saves this file::

    [{"a": ID, "b": ID, "verdict": "wrong"}]

``verdict`` is "right", "wrong" or "unsure".
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import xxhash

from aggregator.analysis.analyzer import uses_spaces
from aggregator.dedup.diff import DiffSpan, diff_texts
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.time_units import DAY_MS, HOUR_MS, format_minute
from aggregator_archive.report import load_templates
from aggregator_lab.evaluation.duplicate_stream import DuplicatePair, StreamArticle, judge_pair

Z_95 = 1.959964  # standard normal quantile of a two-sided 95 % interval
T = TypeVar("T")


class Judgment(msgspec.Struct, frozen=True):
    """One pair by the ids of its articles."""

    a: str
    b: str
    verdict: Literal["right", "wrong", "unsure"]


@dataclass(slots=True)
class JudgmentReport:
    """Judgments of pairs whose articles were found in the input.

    judgments  number of pairs per verdict
    counted    pairs per verdict that the counter counts as wrong
    grouped    pairs per verdict that the service puts in one group
    dropped    pairs per verdict of which it puts both in one group and drops the later one
    against    pairs judged right and not in one group, or judged wrong and dropped
    missing    number of pairs that were left out, since an article is not in the input
    """

    judgments: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    grouped: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    against: list[Judgment] = field(default_factory=list)
    missing: int = 0

    @property
    def judged(self) -> int:
        """Pairs judged right or wrong."""
        return self.judgments["right"] + self.judgments["wrong"]

    @property
    def wrong_interval(self) -> tuple[float, float]:
        """95 % Wilson interval of the share of wrong pairs among those judged right or wrong, 0..1."""
        return wilson_interval(self.judgments["wrong"], self.judged)

    def as_json(self) -> dict[str, Any]:
        """Every value of the table."""
        low, high = self.wrong_interval
        return {
            **{name: self.judgments[name] for name in ("right", "wrong", "unsure")},
            "missing": self.missing,
            "wrong_share": round(self.judgments["wrong"] / self.judged, 4) if self.judged else None,
            "wrong_share_95": [round(low, 4), round(high, 4)],
            "counted_wrong_of_wrong": self.counted["wrong"],
            "counted_wrong_of_right": self.counted["right"],
            "grouped": dict(self.grouped),
            "dropped": dict(self.dropped),
            "against": [msgspec.to_builtins(item) for item in self.against],
        }


def read_judgments(path: str, files: Sequence[str] = ()) -> list[Judgment]:
    """Judgments of a file, or of those files of a directory that are named as one of ``files``.

    Raises InvalidInput.
    """
    names = [Path(path)]
    if names[0].is_dir():
        stems = dict.fromkeys(Path(file).name.partition(".")[0] for file in files)
        names = [names[0] / f"{stem}.json" for stem in stems]
    try:
        return [
            item for name in names for item in msgspec.json.decode(name.read_bytes(), type=list[Judgment])
        ]
    except OSError as error:
        raise InvalidInput(f"{error.filename} cannot be read: {error.strerror}.") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path} is not a file of judgments: {error}.") from None


def evaluate(judgments: Iterable[Judgment], stored: Mapping[str, StreamArticle]) -> JudgmentReport:
    """Join the judgments with their articles and with what the service decided on them."""
    position = {id_: at for at, id_ in enumerate(stored)}
    report = JudgmentReport()
    for item in judgments:
        if item.a not in stored or item.b not in stored:
            report.missing += 1
            continue
        a, b = stored[item.a], stored[item.b]
        grouped = a.group == b.group
        dropped = grouped and not max((a, b), key=lambda s: position[s.article.id]).answer.outcome.keep
        report.judgments[item.verdict] += 1
        report.grouped[item.verdict] += grouped
        report.dropped[item.verdict] += dropped
        report.counted[item.verdict] += judge_pair(a.article, b.article, a.lang).wrong
        if (item.verdict == "right" and not grouped) or (item.verdict == "wrong" and dropped):
            report.against.append(item)
    return report


def wilson_interval(count: int, total: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson score interval of a share (Wilson 1927), 0..1; (0, 1) for ``total`` 0."""
    if total == 0:
        return 0.0, 1.0
    share = count / total
    center = share + z * z / (2 * total)
    margin = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    # The share itself is the bound where it is 0 or 1; rounding must not put it outside.
    return max(0.0, min(share, (center - margin) / scale)), min(1.0, max(share, (center + margin) / scale))


def format_table(report: JudgmentReport) -> str:
    """Lines for a terminal."""
    low, high = report.wrong_interval
    counts = report.judgments
    lines = [f"{counts['right']} right, {counts['wrong']} wrong, {counts['unsure']} unsure"]
    if report.judged:
        share = counts["wrong"] / report.judged
        lines += [
            f"wrong: {share:.1%} of {report.judged} judged pairs, whatever the present rule says of them, "
            f"95 % interval {low:.1%} to {high:.1%}",
            f"headline, opening and wording all differ: in {report.counted['wrong']} of the "
            f"{counts['wrong']} wrong, in {report.counted['right']} of the {counts['right']} right",
        ]
    lines += [
        f"judged {verdict}: {report.grouped[verdict]} of {counts[verdict]} in one group, "
        f"{report.dropped[verdict]} dropped"
        for verdict in ("right", "wrong", "unsure")
        if counts[verdict]
    ]
    lines += [f"  judged {item.verdict}: {item.a} {item.b}" for item in report.against]
    if report.missing:
        lines.append(f"{report.missing} judged pairs left out: an article is not in the input")
    return "\n".join(lines)


_TEMPLATES = load_templates(Path(__file__).parent / "pages")


def sample(items: Sequence[T], count: int, seed: int = 0) -> list[T]:
    """At most ``count`` of the items in random order, the same for the same seed."""
    return random.Random(seed).sample(items, min(count, len(items)))


def render_page(pairs: Sequence[DuplicatePair], total: int, method: str) -> str:
    """Return the complete HTML document for ``pairs``, a sample of the ``total`` duplicates of ``method``."""
    ids = "\n".join(f"{pair.article.id} {pair.match.id}" for pair in pairs)
    return _TEMPLATES.get_template("judgment.html").render(
        pairs=[_pair_context(pair) for pair in pairs],
        total=total,
        method=method,
        key=xxhash.xxh3_64_hexdigest(ids.encode("utf-8", "surrogatepass")),
    )


def _pair_context(pair: DuplicatePair) -> dict[str, Any]:
    first, second = pair.match, pair.article
    spans = diff_texts(first.text, second.text, pair.lang, pair.lang)
    return {
        "a": second.id,
        "b": first.id,
        "lang": pair.lang,
        "shared": pair.evidence.containment if first.text and second.text else None,
        "apart": _time_apart(first, second),
        "sides": [
            _side_context("first", first, spans[0], pair.lang),
            _side_context("second", second, spans[1], pair.lang),
        ],
    }


def _side_context(role: str, article: Article, spans: list[DiffSpan], lang: str) -> dict[str, Any]:
    if uses_spaces(lang):
        length = f"{len(article.text.split()):,} words"
    else:
        length = f"{len(article.text):,} characters"
    date = article.published_at_ms
    return {
        "role": role,
        "title": article.title,
        "source": article.source,
        "time": "" if date is None else format_minute(date),
        "length": length,
        "spans": spans,
    }


def _time_apart(a: Article, b: Article) -> str:
    """Difference of the dates as text (days, or hours below two days); empty for equal and missing dates."""
    if a.published_at_ms is None or b.published_at_ms is None or a.published_at_ms == b.published_at_ms:
        return ""
    apart_ms = abs(a.published_at_ms - b.published_at_ms)
    if apart_ms >= 2 * DAY_MS:
        return f"{apart_ms // DAY_MS:,} days apart"
    return f"{max(1, round(apart_ms / HOUR_MS))} h apart"
