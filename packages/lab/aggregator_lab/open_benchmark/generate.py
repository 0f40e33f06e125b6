"""Articles of the open benchmark: stories with copies, updates, teasers, paraphrases, translations.

A story is a choice of positions in the phrase lists, so it can be told in any language. Per story:

    original     in its language, 10 sentences and 4 facts
    abridged     its first 60 % of sentences
    page         the original between navigation and related headlines
    update       two figures replaced and a sentence added
    teaser       its first two sentences
    paraphrase   of English stories: the same in other words and another order
    translation  into the next language of the list
    template     another story of the same language whose facts use the same wording with other figures

``cluster`` is equal for original, abridged, page and update: duplicates. ``event`` is equal for everything
that tells one story; a template has both of its own.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.boilerplate import page_parts
from aggregator_lab.open_benchmark.phrases import PARAPHRASES, PHRASES, PLACES, Phrases

SENTENCES, FACTS = 10, 4
ABRIDGED_SHARE = 0.6
PAGE_LINES = 6  # below the text of a page: related headlines and disclaimers
START = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Story:
    """``claims`` (subject, verb, object) and ``facts`` (fact, number), as positions and figures; a place."""

    claims: tuple[tuple[int, int, int], ...]
    facts: tuple[tuple[int, int], ...]
    place: str


@dataclass(frozen=True, slots=True)
class BenchmarkArticle:
    """One row of ``articles.jsonl``."""

    id: str
    title: str
    text: str
    lang: str
    source: str
    published_at: str
    cluster: str
    event: str
    kind: str


def make_story(rng: random.Random) -> Story:
    """A story with distinct claims."""
    every = [(s, v, o) for s in range(8) for v in range(6) for o in range(8)]
    facts = tuple((fact, rng.randrange(11, 9_000)) for fact in rng.sample(range(6), FACTS))
    return Story(tuple(rng.sample(every, SENTENCES)), facts, rng.choice(PLACES))


def tell(story: Story, phrases: Phrases) -> list[str]:
    """The sentences of a story in a language: a fact follows every second claim."""
    subjects, verbs, objects, facts = (
        part.split("|") for part in (phrases.subjects, phrases.verbs, phrases.objects, phrases.facts)
    )
    told = [phrases.order.format(s=subjects[s], v=verbs[v], o=objects[o]) for s, v, o in story.claims]
    for at, (fact, number) in enumerate(story.facts):
        told.insert(3 * at + 1, facts[fact].format(n=number, p=story.place))
    return told


def generate(stories: int, seed: int) -> Iterator[BenchmarkArticle]:
    """All articles of ``stories`` stories, languages in turn; the same for the same seed."""
    langs = list(PHRASES)
    for number in range(stories):
        rng = random.Random(f"{seed} {number}")
        yield from _story_articles(number, langs[number % len(langs)], langs[(number + 1) % len(langs)], rng)


def _story_articles(number: int, lang: str, other: str, rng: random.Random) -> Iterator[BenchmarkArticle]:
    phrases, story = PHRASES[lang], make_story(rng)
    told = tell(story, phrases)
    claims = rng.sample(story.claims, 1)
    facts = tuple(
        (fact, n + rng.randrange(1, 50)) if at < 2 else (fact, n) for at, (fact, n) in enumerate(story.facts)
    )
    update = tell(replace(story, claims=(*story.claims, *claims), facts=facts), phrases)
    texts = {
        "original": told,
        "abridged": told[: round(ABRIDGED_SHARE * len(told))],
        "page": _page(told, lang, rng),
        "update": update,
        "teaser": told[:2],
    }
    if lang == "en":
        paraphrase = tell(story, PARAPHRASES)
        texts["paraphrase"] = rng.sample(paraphrase, len(paraphrase))
    texts["translation"] = tell(story, PHRASES[other])
    texts["template"] = tell(
        replace(make_story(rng), facts=tuple((fact, n + 7) for fact, n in story.facts), place=story.place),
        phrases,
    )
    for position, (kind, sentences) in enumerate(texts.items()):
        own = PHRASES[other] if kind == "translation" else phrases
        is_copy = kind in ("original", "abridged", "page", "update")
        published = START + timedelta(hours=6 * number, minutes=20 * position)
        yield BenchmarkArticle(
            id=f"{number:04}-{kind}",
            title=(told if kind == "page" else sentences)[0].rstrip(".。"),
            text=own.joint.join(sentences),
            lang=other if kind == "translation" else lang,
            source=f"outlet-{position}.example",
            published_at=published.isoformat().replace("+00:00", "Z"),
            cluster=f"{number:04}" if is_copy else f"{number:04}-{kind}",
            event=f"{number:04}-template" if kind == "template" else f"{number:04}",
            kind=kind,
        )


def _page(told: list[str], lang: str, rng: random.Random) -> list[str]:
    navigation, lines = page_parts(lang, rng)
    return [f"{navigation}\n", *told, "\n" + "\n".join(lines[:PAGE_LINES])]


_CARD = """# Open benchmark of news duplicates

* **Contents**: `articles.jsonl`, {articles:,} articles of {stories:,} invented stories; `score.py`, the
  scoring script.
* **Languages**: {langs}.
* **Origin**: generated with seed {seed} by `aggregator evaluate open-benchmark DIR`; every sentence was
  written for it. Places and institutions are invented; there are no personal data.
* **License**: Apache-2.0.
* **Fields**: `id`, `title`, `text`, `lang`, `source`, `published_at`, `cluster` (equal: duplicates), `event`
  (equal: one story), `kind`.
* **Kinds**: {kinds}.
* **Duplicates**: original, abridged, page and update of a story. **Not duplicates**: teaser, paraphrase and
  translation (of one event), template (another event with the same set phrases).
* **Not for** absolute quality: sentences are short and formulaic. Real news is easier where the wording of
  articles differs more, and harder where outlets quote.

Score groups with `python score.py PREDICTED.jsonl`, one `{{"id": ..., "group": ...}}` per article. Choose
thresholds on even story numbers and score odd ones, or the reverse.
"""


def write_directory(out: Path, stories: int, seed: int) -> int:
    """Write the directory; returns the number of articles. Raises InvalidInput if it cannot be written."""
    rows = [asdict(article) for article in generate(stories, seed)]
    kinds = Counter(row["kind"] for row in rows)
    card = _CARD.format(
        articles=len(rows),
        stories=stories,
        langs=", ".join(PHRASES),
        seed=seed,
        kinds=", ".join(f"{kind} {count:,}" for kind, count in kinds.items()),
    )
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    script = resources.files("aggregator_lab.open_benchmark").joinpath("score.py").read_text("utf-8")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in (("articles.jsonl", lines), ("README.md", card), ("score.py", script)):
            (out / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{out} cannot be written: {error.strerror}.") from None
    return len(rows)
