"""What writers do: posts, batches and deletes of a few texts whose kinship is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError
from tests.support.factories import edited, story

_LONG = {"s": story(1, sentences=40), "t": story(2, sentences=40), "u": story(3, sentences=40)}

# The first letter of a name is the story: texts of one story are near-copies of one another, texts of
# two stories are strangers. "s0" and "S0!" are exact copies (case does not matter).
TEXTS: dict[str, str] = {}
for _name, _text in _LONG.items():
    TEXTS[f"{_name}0"] = _text
    TEXTS[f"{_name}0!"] = _text.upper()
    TEXTS[f"{_name}1"] = edited(_text, 11)
    TEXTS[f"{_name}1!"] = edited(_text, 11).upper()
    TEXTS[f"{_name}2"] = edited(_text, 12, changes=8)
    TEXTS[f"{_name}cut"] = _text[: int(len(_text) * 0.4)]  # found by its bands only


@dataclass(frozen=True)
class Post:
    """Submit one text under an id."""

    id: str
    text: str
    lang: str = "en"

    @property
    def story(self) -> tuple[str, str]:
        """Where it has near-copies: its language's space and its story."""
        return self.lang, self.text[0]

    def article(self) -> Article:
        return Article(id=self.id, text=TEXTS[self.text], lang=self.lang)


@dataclass(frozen=True)
class Batch:
    """Submit several at once."""

    posts: tuple[Post, ...]


@dataclass(frozen=True)
class Remove:
    """Delete an id."""

    id: str


@dataclass(frozen=True)
class Check:
    """Look a text up, and store nothing."""

    text: str
    lang: str = "en"


@dataclass(frozen=True)
class Seal:
    """Close the writable segment of every space."""


@dataclass(frozen=True)
class Follow:
    """Read the article stream on, to its present end."""


@dataclass(frozen=True)
class Tidy:
    """Do all the upkeep there is: floor, drops, compaction."""


@dataclass(frozen=True)
class Wait:
    """Let more than a third of the period of retention pass."""


Request = Post | Batch | Remove | Check | Seal | Follow | Tidy | Wait
SIGNS: dict[str, Request] = {"|": Seal(), ">": Follow(), "#": Tidy(), "~": Wait()}
Program = tuple[tuple[Request, ...], ...]
"""Per writer, its requests in order."""

ANALYSER = Analyzer({"en": HashedModel(group="en"), "xx": HashedModel()})


@cache
def analysis(text: str, lang: str) -> Analysis:
    """The real analysis of a named text, in just this language: made-up words alone do not look English."""
    start = "This is what they have been with, and that was from the. " if lang == "en" else ""
    return ANALYSER.analyze(Article(id="any", text=start + TEXTS[text], lang=lang))


_NAMES = {text: name for name, text in TEXTS.items()}


async def analyse_many(articles: object) -> list[Analysis | AggregatorError]:
    """As ``Analyser.analyse_many``, each text once per process."""
    return [analysis(_NAMES[a.text], a.lang) for a in articles]  # type: ignore[attr-defined]


def posts(*pairs: str) -> tuple[Post, ...]:
    """posts("a=s0", "b=s1") ; a trailing "@fr" sets the language."""
    made = []
    for pair in pairs:
        pair, _, lang = pair.partition("@")
        id_, _, text = pair.partition("=")
        made.append(Post(id_, text, lang or "en"))
    return tuple(made)


def writer(*lines: str) -> tuple[Request, ...]:
    """A writer's requests: "a=s0" posts, "a=s0 b=s1" posts a batch, "-a" deletes, "?s0" looks up, "|" seals, ">" follows.

    "#" tidies up, "~" waits.
    """
    requests: list[Request] = []
    for line in lines:
        parts = line.split()
        if line.startswith("-"):
            requests.append(Remove(line[1:]))
        elif line.startswith("?"):
            requests.append(Check(line[1:]))
        elif line in SIGNS:
            requests.append(SIGNS[line])
        elif len(parts) == 1:
            requests += posts(line)
        else:
            requests.append(Batch(posts(*parts)))
    return tuple(requests)


# Small programs, searched systematically.
SMALL: dict[str, Program] = {
    "two near-copies": (writer("a=s0"), writer("b=s1")),
    "two exact copies": (writer("a=s0"), writer("b=s0!")),
    "a copy only bands find": (writer("a=s0"), writer("b=scut")),
    "a retry races its original": (writer("a=s0"), writer("a=s0")),
    "a retry and a copy": (writer("a=s0", "a=s0"), writer("b=s0!", "b=s0!")),
    "delete races a copy": (writer("a=s0", "-a"), writer("b=s1")),
    "delete races an exact copy": (writer("a=s0", "-a"), writer("b=s0!")),
    "delete races a copy of a copy": (writer("a=s0", "b=s1", "-a"), writer("c=s1!")),
    "two deletes in one group": (writer("a=s0", "b=s1", "c=s2", "-a"), writer("-b", "d=scut")),
    "delete and repost": (writer("a=s0", "-a", "a=s0"), writer("b=s1")),
    "delete races an update": (writer("a=s0", "b=s1", "-a"), writer("b=s2")),
    "two updates of one id": (writer("a=s0", "a=s1"), writer("a=s2")),
    "first versions race": (writer("a=s0", "b=scut"), writer("a=s1", "-a")),
    "update leaves an exact copy": (writer("a=s0", "a=t0"), writer("b=s0!", "c=s0")),
    "a carrier leaves": (writer("a=s0", "b=s0!", "c=s0", "a=s1"), writer("-b")),
    "batches of copies": (writer("a=s0 b=s1"), writer("c=s0! d=s2")),
    "batches of the same ids": (writer("a=s0 b=s1"), writer("a=s0 b=s1")),
    "a batch repeats an id": (writer("a=s0 a=s0 b=s1"), writer("c=s0!")),
    "a batch updates its own": (writer("a=s0 b=s0! a=s2"), writer("c=s0")),
    "a batch against a delete": (writer("a=s0", "b=s1 c=s0!"), writer("-a")),
    "a stranger in a neighbour's place": (writer("a=s0 b=s1"), writer("c=s0!")),
    "overlapping groups": (writer("a=s0 b=s1 c=t0"), writer("d=s0!")),
    "overlapping groups of strangers": (writer("a=s0 b=t0 c=u0"), writer("d=s1", "e=t1")),
    "overlapping groups with an id twice": (writer("a=s0 b=t0 a=s1"), writer("b=t1")),
    "overlapping groups over a seal": (writer("a=s0 b=s1 c=t0"), writer("|", "d=s2")),
    "overlapping groups against a delete": (writer("a=s0", "b=t0 c=s1 d=s2"), writer("-a")),
    "overlapping groups that update": (writer("a=s0 b=t0", "c=s1 a=s2 d=t1"), writer("e=s0!")),
    "overlapping groups of two": (writer("a=s0 b=t0 c=s1 d=t1"), writer("e=t2", "-a")),
    "a copy joins while another leaves": (writer("a=s0", "b=s1", "-a"), writer("-b", "c=s2")),
    "the canonical text changes": (writer("a=s0", "b=s0!", "c=s0", "b=s2"), writer("a=s1")),
    "a retry of an exact copy": (writer("b=s0", "a=s0!"), writer("a=s0!")),
    "carriers in a row": (writer("a=s0", "b=s0!", "c=s0", "a=s1", "-b"), writer("d=s2")),
    "a deleted id comes back elsewhere": (writer("a=s0", "a=s1"), writer("-a", "b=s2")),
    "an id changes its language": (writer("a=s0", "b=s1", "b=t0@fr"), writer("-a")),
    "one id in two languages": (writer("a=s0", "-a"), writer("a=s0@fr")),
    "one id in two languages at once": (writer("a=s0"), writer("a=s1@fr")),
    "an update and another language": (writer("a=s0", "a=s1"), writer("a=s2@fr")),
    "a seal between near-copies": (writer("a=s0"), writer("|", "b=s1")),
    "a seal between bands": (writer("a=s0"), writer("|", "b=scut")),
    "two seals": (writer("|", "a=s0"), writer("|", "b=s1")),
    "a batch over a seal": (writer("a=s0 b=s1"), writer("|"), writer("c=s0!")),
    "a look-up over a seal": (writer("a=s0", "|", "b=t0"), writer("?s0", "?t0")),
    "a frozen article is deleted": (writer("a=s0", "|", "-a"), writer("b=s1", "?s2")),
    "a delete over a seal": (writer("a=s0", "-a"), writer("|", "b=s1")),
    "a frozen copy is promoted": (writer("a=s0", "b=s1", "|", "-a", "-b"), writer("c=s2")),
    "a frozen article is updated": (writer("a=s0", "b=s0!", "|", "a=t0"), writer("c=s0")),
    "a frozen group grows and shrinks": (writer("a=s0", "b=s1", "|", "c=s2", "-a"), writer("-c", "d=scut")),
    "a retry after a seal": (writer("a=s0", "|", "a=s0"), writer("b=s1", "a=s0")),
    "the stream over a seal": (writer(">", ">"), writer("a=s0", "|", "b=t0")),
    "compaction beside near-copies": (writer("x=s0", "-x", "|", "a=s1"), writer("#", "b=s2", "?s0")),
    "a length that comes back": (writer("|", "x=s2", "-x", "a=s1"), writer("#", "b=s2")),
    "the dead below": (writer("a=s0", "b=t0", "-a", "|", "#", "c=u0"), writer("d=s1")),
    "the dead on top": (writer("a=s0", "|", "b=t0", "-b", "#", "c=u0"), writer("d=t1")),
    "dead above, named below": (writer("a=s0", "b=s0!", "|", "a=t0", "|", "#"), writer("c=s1", "-b")),
    "two who tidy up": (writer("a=s0", "b=s1", "-a", "|", "#"), writer("#", "c=s2")),
    "a segment with life in it": (writer("a=s0", "|", "b=t0", "#"), writer("c=s1")),
    "an exact copy long after": (writer("a=s0", "~", "b=s0!", "~", "~", "c=t0"), writer("#")),
    "an original comes back": (writer("a=s0", "~", "b=s1", "~", "~", "#", "a=s0"), writer("c=s2", "-b")),
    "a segment is forgotten": (
        writer("a=s0", "|", "~", "b=s1", "~", "~", "~", "#"),
        writer("?s0", ">", "c=s2"),
    ),
    "expired and posted again": (writer("a=s0", "~", "~", "~", "~", "#", "a=s0"), writer("a=s0", "b=s1")),
    "an update after its time": (writer("d=s1", "~", "~", "~", "c=scut d=s2"), writer("e=t0")),
    "deleted above, sealed again": (writer("a=s0", "|", "-a", "|", "b=s1"), writer("a=s1")),
}


def random_program(rng: Random) -> Program:
    """2-4 writers with up to 4 requests each over few ids and one to three stories."""
    ids = "abcdef"[: rng.choice((2, 3, 4, 6))]
    letters = "stu"[: rng.choice((1, 1, 2, 3))]
    texts = [t for t in TEXTS if t[0] in letters]
    languages = ["en"] * 9 + ["fr"] if rng.random() < 0.15 else ["en"]
    steady = rng.random() < 0.6  # every id stays with its story, so that verdicts can be judged
    home = {id_: rng.choice(letters) for id_ in ids}

    def post() -> Post:
        id_ = rng.choice(ids)
        text = rng.choice(texts)
        return Post(id_, (home[id_] + text[1:]) if steady else text, rng.choice(languages))

    sealed, waits = rng.choice((0, 0, 0.1, 0.25, 0.4)), rng.random() < 0.5

    def request() -> Request:
        if rng.random() < sealed:
            return SIGNS[rng.choice("|||>##" + ("~~~" if waits else ""))]
        kind = rng.random()
        if kind > 0.9:
            return Check(rng.choice(texts), rng.choice(languages))
        if kind < 0.22:
            return Remove(rng.choice(ids))
        if kind < 0.42:
            return Batch(tuple(post() for _ in range(rng.randrange(2, 5))))
        return post()

    return tuple(
        tuple(request() for _ in range(rng.randrange(1, 5))) for _ in range(rng.choice((2, 2, 3, 4)))
    )


def show(program: Program) -> str:
    """One line per writer."""
    return "\n".join(f"writer {i}: " + " ; ".join(map(_shown, w)) for i, w in enumerate(program))


def _shown(request: Request) -> str:
    if isinstance(request, Remove):
        return f"-{request.id}"
    if isinstance(request, Check):
        return f"?{request.text}@{request.lang}"
    for sign, step in SIGNS.items():
        if request == step:
            return sign
    assert isinstance(request, Post | Batch | Remove | Check)
    if isinstance(request, Batch):
        return "[" + " ".join(map(_shown, request.posts)) + "]"
    return f"{request.id}={request.text}" + ("" if request.lang == "en" else f"@{request.lang}")
