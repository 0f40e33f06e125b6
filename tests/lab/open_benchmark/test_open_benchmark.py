"""Open benchmark: reproducible articles, labels by kind, and a script that scores without the package."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from aggregator.analysis.text.language import detect_language
from aggregator_lab.open_benchmark.generate import generate, make_story, tell
from aggregator_lab.open_benchmark.phrases import PARAPHRASES, PHRASES, Phrases
from tests.cli.helpers import run

ARTICLES = list(generate(20, 1))


@pytest.mark.parametrize("phrases", [*PHRASES.values(), PARAPHRASES])
def test_phrases_are_complete(phrases: Phrases) -> None:
    """Every language has the same number of phrases, and every fact a number and a place."""
    parts = (phrases.subjects, phrases.verbs, phrases.objects, phrases.facts)

    assert [len(part.split("|")) for part in parts] == [8, 6, 8, 6]
    assert all(len(set(part.split("|"))) == len(part.split("|")) for part in parts)
    assert all("{n}" in fact and "{p}" in fact for fact in phrases.facts.split("|"))


def test_equal_seeds_give_equal_articles() -> None:
    """Another seed gives other ones; ids are unique."""
    assert list(generate(20, 1)) == ARTICLES
    assert [article.text for article in generate(20, 2)] != [article.text for article in ARTICLES]
    assert len({article.id for article in ARTICLES}) == len(ARTICLES)


def test_labels_follow_the_kind() -> None:
    """Four duplicates per story; teasers, paraphrases and translations are of its event only."""
    kinds, events = defaultdict(set), defaultdict(set)
    for article in ARTICLES:
        kinds[article.cluster].add(article.kind)
        events[article.event].add(article.kind)

    assert kinds["0000"] == {"original", "abridged", "page", "update"}
    assert events["0000"] == {*kinds["0000"], "teaser", "paraphrase", "translation"}
    assert events["0000-template"] == {"template"}
    assert Counter(article.lang for article in ARTICLES if article.kind == "original") == dict.fromkeys(
        PHRASES, 2
    )


def test_texts_are_in_their_language() -> None:
    """Language detection agrees for nearly all originals."""
    originals = [article for article in ARTICLES if article.kind == "original"]
    agreeing = sum(detect_language(article.text) == article.lang for article in originals)

    assert agreeing >= 0.9 * len(originals)


def test_a_paraphrase_shares_no_sentence() -> None:
    """The same story in two wordings."""
    story = make_story(random.Random(3))

    assert not {*tell(story, PHRASES["en"])} & {*tell(story, PARAPHRASES)}


@pytest.mark.integration
def test_the_directory_is_scored_without_the_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Groups as labeled score 1; without groups nothing is found; events are too coarse."""
    out = tmp_path / "bench"
    assert run("evaluate", "open-benchmark", str(out), "--stories", "10", "--seed", "4") == 0
    assert "71 articles" in capsys.readouterr().out
    rows = [json.loads(line) for line in (out / "articles.jsonl").read_text("utf-8").splitlines()]
    assert "seed 4" in (out / "README.md").read_text("utf-8")

    def score(field: str) -> dict[str, float]:
        lines = "".join(json.dumps({"id": row["id"], "group": row[field]}) + "\n" for row in rows)
        (tmp_path / "groups.jsonl").write_text(lines, encoding="utf-8")
        command = [sys.executable, "-I", str(out / "score.py"), str(tmp_path / "groups.jsonl")]
        result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return result

    assert score("cluster")["pair_f1"] == score("cluster")["b_cubed_f1"] == 1.0
    assert score("id")["pair_recall"] == 0.0
    assert score("event")["pair_recall"] == 1.0 and score("event")["pair_precision"] < 0.5
