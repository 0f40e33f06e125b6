"""Ten languages, twenty articles each, five edits of each: copies are found, strangers are not.

What is guaranteed when the declared language is wrong: articles are compared within one fingerprint space, and
there are three (English, Chinese, all others). A tag that the text plainly contradicts is not believed: another
script, or 100 characters of English tagged as something else or the reverse. What is left is a wrong tag on less
text than that: within a space (German as French) it hides no copy, into another space (a German headline as
English) it hides copies from articles tagged rightly, while copies under the same wrong tag still meet. Without
any tag the script and the letters decide, for every article of these texts rightly.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from opencc import OpenCC

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import estimate_overlap
from aggregator.analysis.text.language import detect_language
from aggregator.dedup.similarity import cosine
from aggregator.dedup.verdict import Policy, is_copy
from aggregator.domain import Analysis, Answer, Article
from aggregator.errors import AggregatorError
from aggregator.index import Index
from aggregator.ingest.service import IngestService
from aggregator.store.memory import MemoryStore
from tests.analysis.text.language_edits import EDITS, LANGUAGES, articles
from tests.support.factories import in_process

ANALYSER = Analyzer(load_models())
NOW_MS = 1_780_000_000_000
LATIN = ("de", "fr", "es", "it")


def fresh() -> IngestService:
    """An empty service with the shipped models and the default policy."""
    clock = itertools.count(NOW_MS)
    index = Index(MemoryStore(), ANALYSER.spaces)
    return IngestService(index, in_process(ANALYSER), Policy(), clock=lambda: next(clock))


def edited(lang: str, kind: str) -> list[Article]:
    """The twenty articles after one edit, under ids of their own."""
    return [replace(a, id=f"{a.id}-{kind}", text=EDITS[kind](a.text, lang)) for a in articles(lang)]


async def answers(ingest: IngestService, some: Sequence[Article], *, dry_run: bool = False) -> list[Answer]:
    """Nothing here is unusable."""
    given = await ingest.submit_many(some, dry_run=dry_run)
    assert not [one for one in given if isinstance(one, AggregatorError)]
    return [one for one in given if isinstance(one, Answer)]


def verdicts(lang: str, kind: str) -> list[Answer]:
    """The edits of one kind, each against the originals alone."""

    async def ask() -> list[Answer]:
        ingest = fresh()
        await answers(ingest, articles(lang))
        return await answers(ingest, edited(lang, kind), dry_run=True)

    return asyncio.run(ask())


def found(lang: str, kind: str) -> int:
    """How many edits were called copies of the very article they were made of."""
    return sum(
        one.outcome.match is not None and one.outcome.match.id == original.id
        for original, one in zip(articles(lang), verdicts(lang, kind), strict=True)
    )


@pytest.mark.parametrize("lang", LANGUAGES)
def test_cut_padded_and_reordered_copies_are_found(lang: str) -> None:
    """At least 57 of the 60 copies that keep their wording."""
    counts = {kind: found(lang, kind) for kind in ("truncated", "padded", "reordered")}

    assert sum(counts.values()) >= 57, counts


@pytest.mark.parametrize("lang", LANGUAGES)
def test_reworded_copies_are_found(lang: str) -> None:
    """A handful of synonyms leaves most of the wording alone: at least 19 of 20."""
    assert found(lang, "reworded") >= 19


@pytest.mark.parametrize("lang", LANGUAGES)
def test_changed_figures_are_marked(lang: str) -> None:
    """All figures changed: a copy still, but marked as an update. The other edits change no figure."""
    changed = [one.outcome for one in verdicts(lang, "updated") if one.outcome.match is not None]

    assert len(changed) >= 19
    assert all(one.updated_figures for one in changed)
    assert not any(one.outcome.updated_figures for one in verdicts(lang, "reordered"))


@pytest.mark.parametrize("lang", LANGUAGES)
async def test_strangers_are_not_copies(lang: str) -> None:
    """None of the 190 pairs, bare or inside the same site's frame."""
    for kind in ("as written", "padded"):
        some = articles(lang) if kind == "as written" else edited(lang, kind)
        analysed = [one for one in ANALYSER.analyze_many(some) if isinstance(one, Analysis)]
        pairs = list(itertools.combinations(analysed, 2))

        assert len(pairs) == 190
        assert not [
            1
            for a, b in pairs
            if is_copy(estimate_overlap(a.sketch, b.sketch), cosine(a.terms, b.terms), Policy())
        ], kind
        assert not [one for one in await answers(fresh(), some) if one.outcome.match], kind


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_texts_are_what_they_claim(lang: str) -> None:
    """Twenty short articles with figures, in the language of the file: letters and script say so too."""
    some = articles(lang)

    assert len(some) == 20
    assert len({a.title for a in some}) == 20
    assert [detect_language(f"{a.title}\n{a.text}") for a in some] == [lang] * 20
    assert all(EDITS["updated"](a.text, lang) != a.text for a in some)


def _without_umlauts(text: str) -> str:
    for letter, plain in (
        ("ä", "ae"),
        ("ö", "oe"),
        ("ü", "ue"),
        ("Ä", "Ae"),
        ("Ö", "Oe"),
        ("Ü", "Ue"),
        ("ß", "ss"),
    ):
        text = text.replace(letter, plain)
    return text


RESPELLED: dict[str, Callable[[str], str]] = {
    "de": _without_umlauts,
    "ru": lambda text: text.replace("ё", "е").upper(),
    "ko": lambda text: re.sub(r"(?<=[가-힣]) (?=[가-힣]{1,2}[ .])", "", text),
    "ar": lambda text: re.sub("[أإآ]", "ا", text),
}


@pytest.mark.parametrize("lang", RESPELLED)
async def test_copies_in_another_spelling_meet(lang: str) -> None:
    """Umlauts written out, capitals without marks, other spaces: every one of the twenty is found, cut ones too."""
    ingest = fresh()
    await answers(ingest, articles(lang))
    for some in (articles(lang), edited(lang, "truncated")):
        spelt = RESPELLED[lang]
        copies = [replace(a, id=f"{a.id}-spelt", title=spelt(a.title), text=spelt(a.text)) for a in some]
        given = await answers(ingest, copies, dry_run=True)

        assert sum(copy.text != a.text for copy, a in zip(copies, some, strict=True)) >= 15
        assert all(one.outcome.match for one in given)


@pytest.mark.parametrize("lang", LATIN)
async def test_a_wrong_tag_within_a_space_hides_nothing(lang: str) -> None:
    """German tagged as French and so on: the very same copies are found."""
    wrong = LATIN[(LATIN.index(lang) + 1) % len(LATIN)]
    ingest = fresh()
    await answers(ingest, articles(lang))
    for kind in ("truncated", "padded", "reordered"):
        copies = [replace(a, lang=wrong) for a in edited(lang, kind)]
        given = await answers(ingest, copies, dry_run=True)
        assert sum(one.outcome.match is not None for one in given) >= 19, kind


@pytest.mark.parametrize("wrong", ["en", "zh", "de", "ja"])
@pytest.mark.parametrize("lang", LANGUAGES)
async def test_a_wrong_tag_into_another_space_hides_nothing(lang: str, wrong: str) -> None:
    """A site that tags all it prints as English, Chinese, ...: the very same copies are found."""
    ingest = fresh()
    await answers(ingest, articles(lang))
    given = await answers(ingest, [replace(a, lang=wrong) for a in edited(lang, "padded")], dry_run=True)

    assert sum(one.outcome.match is not None for one in given) >= 19


async def test_a_wrong_tag_on_a_headline_hides_copies_only_from_the_rightly_tagged() -> None:
    """The limit of the guarantee: too little text to contradict its tag meets others tagged so, and no other."""
    right = [replace(a, text="") for a in articles("de")]
    wrong = [replace(a, lang="en", id=f"{a.id}-en") for a in right]
    ingest = fresh()
    await answers(ingest, right)
    apart = await answers(ingest, wrong)
    together = await answers(ingest, [replace(a, id=f"{a.id}-again") for a in wrong])

    assert not any(one.outcome.match for one in apart)
    assert all(one.outcome.match for one in together)


@pytest.mark.parametrize("kind", ["as written", "truncated", "padded"])
async def test_traditional_and_simplified_copies_meet(kind: str) -> None:
    """With OpenCC one text in both scripts is one article, cut or padded too."""
    to_traditional = OpenCC("s2t").convert
    some = articles("zh") if kind == "as written" else edited("zh", kind)
    copies = [
        replace(a, id=f"{a.id}-t", title=to_traditional(a.title), text=to_traditional(a.text)) for a in some
    ]
    ingest = fresh()
    await answers(ingest, articles("zh"))
    given = await answers(ingest, copies, dry_run=True)

    assert all(a.text != original.text for a, original in zip(copies, some, strict=True))
    assert sum(one.outcome.match is not None for one in given) >= 19
