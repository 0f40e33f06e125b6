"""The archive decides a pair as the service does, and keeps fillings of one template."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import estimate_overlap
from aggregator.analysis.simhash import hamming_distance
from aggregator.cli import main
from aggregator.dedup.copy_rule import Evidence, hours_between, is_same_outlet
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import compare_pair, cosine, figures_are_news
from aggregator.domain import Article
from aggregator.time_units import HOUR_MS
from aggregator_archive.arrays import pack_pairs
from aggregator_archive.columns import columns_from_signatures
from aggregator_archive.confirm import estimate_overlaps
from aggregator_archive.encode import Details, Encoder, Encoding, decode_details, encode_details
from aggregator_archive.pair_rule import COPY, PairRule, order_by_arrival
from tests.support.archive_data import read_lines, write_lines
from tests.support.factories import story
from tests.support.template_sentences import TEMPLATES

ENCODER, ANALYZER = Encoder(Encoding()), Analyzer(load_models())
SENTENCES = story(3, 24).split(". ")
POLICY = Policy()

articles = st.builds(
    lambda start, size, title, source, hour: Article(
        id="a",
        title=title,
        text=". ".join(SENTENCES[start : start + size]),
        source=source,
        published_at_ms=None if hour is None else 1_000 * HOUR_MS + hour * HOUR_MS,
        lang="en",
    ),
    st.integers(0, 12),
    st.integers(2, 12),
    st.sampled_from(["", "Harbour closes", "Harbour closes after storm", "Ferry sold"]),
    st.sampled_from(["", "Gazette", "gazette", "Herald"]),
    st.none() | st.integers(0, 60),
)


def online_decision(earlier: Article, later: Article) -> bool:
    """The service's rule for the two articles; it looks into one space only."""
    a, b = ANALYZER.analyze(earlier), ANALYZER.analyze(later)
    if a.space != b.space:
        return False
    evidence = Evidence(
        estimate_overlap(b.sketch, a.sketch),
        cosine(b.terms, a.terms),
        hamming_distance(a.fingerprint, b.fingerprint),
        is_same_outlet(earlier.source, later.source),
        hours_between(earlier.published_at_ms, later.published_at_ms),
    )
    return compare_pair(b, a, evidence, POLICY)[0] and not figures_are_news(a, b, POLICY)


@pytest.mark.integration
@given(articles, articles)
@settings(max_examples=150, deadline=None)
def test_both_sides_decide_a_pair_alike(first: Article, second: Article) -> None:
    """Windows of one text under several headlines, outlets and times."""
    columns = columns_from_signatures([ENCODER.encode(article) for article in (first, second)])
    pair = pack_pairs(np.array([0]), np.array([1]))
    found = PairRule(columns, POLICY).decide(pair, estimate_overlaps(columns, pair).containment) == COPY

    both = (first, second)
    earlier, later = (both[int(rows[0])] for rows in order_by_arrival(columns, pair))
    assert bool(found[0]) == online_decision(earlier, later)


def test_a_footer_of_an_outlet_does_not_make_copies() -> None:
    """Five articles of one outlet share a list of other stories; without it they share nothing."""
    footer = story(900, 12)
    texts = [f"{story(seed, 8)} {footer}" for seed in range(5)]
    signatures = [ENCODER.encode(Article(id=str(n), text=t, source="Gazette")) for n, t in enumerate(texts)]
    columns = columns_from_signatures([replace(s, title="Today") for s in signatures])
    pairs = pack_pairs(*np.triu_indices(5, 1))
    containment = estimate_overlaps(columns, pairs).containment

    assert containment.min() > 0.4
    assert not (PairRule(columns, POLICY).decide(pairs, containment)[-4:] == COPY).any()


def test_details_survive_their_stored_form() -> None:
    """Also lone surrogates, no terms and no sample."""
    marks = np.array([0, 64, 255] * 3, np.uint8)
    full = Details("zh", True, "\ud800 标题", (("词", 0.75), ("\udc00", 0.5)), marks, 712, 0.25)
    empty = Details("", False, "", (), np.zeros(0, np.uint8), 0, 1.0)
    for details in (full, empty):
        found = decode_details(encode_details(details), len(details.marks))
        for field in fields(Details):
            value = getattr(details, field.name)
            assert np.array_equal(getattr(found, field.name), value), field.name


def clustered_ids(tmp_path: Path, rows: list[dict[str, Any]]) -> list[str]:
    """The ids in groups of two or more that ``dedupe`` finds."""
    source, out = write_lines(tmp_path / "a.jsonl", rows), tmp_path / "out"
    assert main(["dedupe", str(source), "--out", str(out), "--processes", "1", "--no-progress"]) == 0
    assert json.loads((out / "summary.json").read_text(encoding="utf-8"))["articles"] == len(rows)
    return [row["id"] for row in read_lines(out / "clusters.jsonl")]


FUND = (
    "The board of {} has decided to distribute {} cents per unit for the quarter. The payment is made on the "
    "fifteenth of the month to holders on record at the end of the week before. {} invests in bonds of "
    "companies with a good credit rating and is managed from the capital. Units can be bought and sold on "
    "every trading day. The tax office treats the distribution as income from capital."
)
WRAP = (
    "Stocks closed {} on {}, led by {}. The index of the thirty largest companies ended at {} points after "
    "{} the day before. {} gained most with {} percent, {} lost most with {} percent. {} Trading continues "
    "on the next working day at nine. Prices in this report are delayed by fifteen minutes. All times are "
    "local times. The report is provided for information only and is not an offer to buy or sell securities."
)


def test_fillings_of_templates_are_not_clustered(tmp_path: Path) -> None:
    """Notices about other names and funds, and a site's market reports of three days."""
    rows: list[dict[str, Any]] = []
    for name, (lang, title, text, fillings) in TEMPLATES.items():
        rows += [
            {"id": f"{name}{n}", "title": title.format(**f), "text": text.format(**f), "lang": lang}
            for n, f in enumerate(fillings)
        ]
    for fund, cents in (("Alder Income Fund", "12"), ("Birch Bond Trust", "31"), ("Cedar Yield Plan", "8")):
        rows.append(
            {"id": fund, "title": f"{fund} pays {cents} cents", "text": FUND.format(fund, cents, fund)}
        )
    days = [
        ("higher", "Monday", "banks", "4,120", "4,101", "Nordhaven", "3.1", "Tilbrook", "2.0", story(21, 6)),
        ("lower", "Tuesday", "miners", "4,077", "4,120", "Estmark", "1.4", "Corvane", "4.4", story(22, 6)),
        (
            "mixed",
            "Wednesday",
            "retailers",
            "4,081",
            "4,077",
            "Pallister",
            "5.9",
            "Quill",
            "0.7",
            story(23, 6),
        ),
    ]
    for n, values in enumerate(days):
        published = f"2026-03-0{n + 2}T17:00:00Z"
        row = {"id": values[1], "title": "Market report", "text": WRAP.format(*values)}
        rows.append(row | {"source": "Gazette", "published_at": published})

    assert clustered_ids(tmp_path, rows) == []


@pytest.mark.integration
@pytest.mark.parametrize(("day", "copied"), [(1, True), (20, False)])
def test_an_outlet_that_prints_most_of_a_text_again_later_has_news(
    tmp_path: Path, day: int, copied: bool
) -> None:
    """Five sixths of a text are a copy on the same day, and a template or background weeks later."""
    text, other = story(41, 20), story(42, 3)
    rows = [
        {"id": str(n), "title": "Harbour plan", "text": body, "source": "Gazette", "published_at": published}
        for n, (body, published) in enumerate(
            [
                (text, "2026-03-01T08:00:00Z"),
                (f"{text[: len(text) * 5 // 6]} {other}", f"2026-03-{day:02}T20:00:00Z"),
            ]
        )
    ]

    assert clustered_ids(tmp_path, rows) == (["0", "1"] if copied else [])
