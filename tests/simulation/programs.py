"""Programs of the simulation: requests of several writers over texts whose duplicates are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel, IndexTerms
from aggregator.analysis.simhash import FloatArray
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError
from tests.support.factories import edited, story

_LONG = {"s": story(1, sentences=40), "t": story(2, sentences=40), "u": story(3, sentences=40)}

# The first letter of a name is the story: texts of one story are near-copies of each other, texts of two
# stories are unrelated. "s0" and "s0!" are exact copies, since case does not matter.
TEXTS: dict[str, str] = {}
for _name, _text in _LONG.items():
    TEXTS[f"{_name}0"] = _text
    TEXTS[f"{_name}0!"] = _text.upper()
    TEXTS[f"{_name}1"] = edited(_text, 11)
    TEXTS[f"{_name}1!"] = edited(_text, 11).upper()
    TEXTS[f"{_name}2"] = edited(_text, 12, changes=8)
    TEXTS[f"{_name}cut"] = _text[: int(len(_text) * 0.4)]  # found by its sketch keys only
TEXTS |= {"q0": "kolo mere tavin", "q0!": "KOLO MERE TAVIN"}  # one text in all languages
# Two parts of one text are no copies of each other, but the whole is one of both.
_WHOLE = story(4, sentences=40)
TEXTS |= {
    "v0": _WHOLE,
    "vhead": _WHOLE[: int(len(_WHOLE) * 0.45)],
    "vtail": _WHOLE[int(len(_WHOLE) * 0.55) :],
}
TEXTS |= {"vtail!": TEXTS["vtail"].upper(), "vtail1": edited(TEXTS["vtail"], 11)}


@dataclass(frozen=True)
class Post:
    """Submit one text under an id; with ``source``, by a key that is bound to it."""

    id: str
    text: str
    lang: str = "en"
    source: str = ""

    @property
    def story(self) -> tuple[str, str]:
        """Language and story: posts with the same pair are near-copies of each other."""
        return self.lang, self.text[0]

    def article(self) -> Article:
        """The article to submit."""
        return Article(id=self.id, text=TEXTS[self.text], lang=self.lang, source=self.source)


@dataclass(frozen=True)
class Batch:
    """Submit several of one source in one batch."""

    posts: tuple[Post, ...]


@dataclass(frozen=True)
class Remove:
    """Delete an id; ``take_down``: its text is refused from now on; ``undo``: with copies not to keep."""

    id: str
    take_down: bool = False
    undo: bool = False


@dataclass(frozen=True)
class Lookup:
    """Submit a text with ``dry_run``."""

    text: str
    lang: str = "en"


@dataclass(frozen=True)
class Seal:
    """Seal the writable segment of every space."""


@dataclass(frozen=True)
class ReadStream:
    """Read the article stream from the last position to its end."""


@dataclass(frozen=True)
class Maintain:
    """Run all index maintenance: retention floor, dropped segments, compaction, rehashes that have begun."""


@dataclass(frozen=True)
class Rehash:
    """Widen the sketch buckets of the writable segments by one bit; ``begin_only``: no bucket is moved."""

    begin_only: bool = False


@dataclass(frozen=True)
class Wait:
    """Let more than 1/3 of the retention period pass."""


@dataclass(frozen=True)
class FullKeys:
    """Does nothing; in its program a sketch key is full with two entries and then keeps one."""


@dataclass(frozen=True)
class Migrate:
    """Copy what is stored into the spaces of the next model; in its program all writers write these, too."""


Request = Post | Batch | Remove | Lookup | Seal | ReadStream | Maintain | Rehash | Wait | FullKeys | Migrate
SYMBOLS: dict[str, Request] = {
    "|": Seal(),
    ">": ReadStream(),
    "#": Maintain(),
    "~": Wait(),
    "=": FullKeys(),
    "*": Rehash(),
    "+": Rehash(begin_only=True),
    "^": Migrate(),
}
# The requests of each writer, in order.
Program = tuple[tuple[Request, ...], ...]


class NextModel(HashedModel):
    """The model of a migration: other feature sums, so other fingerprints."""

    @property
    def id(self) -> str:
        """Another space."""
        return "next"

    def project(self, terms: IndexTerms) -> FloatArray:
        """The negated sums in reverse."""
        return -super().project(terms)[::-1]


ANALYZER = Analyzer({"en": HashedModel(group="en"), "xx": HashedModel()})
OPENING = "This is what they have been with, and that was from the. "
NEXT_ANALYZER = Analyzer({"en": NextModel(group="en"), "xx": NextModel()})


@cache
def analysis(text: str, lang: str, known_lang: str = "", analyzer: Analyzer = ANALYZER) -> Analysis:
    """The real analysis of a named text, posted in a language; an opening makes it be detected as English."""
    opening = OPENING if lang == "en" and text[0] != "q" else ""
    article = Article(id="any", text=opening + TEXTS[text], lang=lang, known_lang=known_lang)
    return analyzer.analyze(article)


_NAMES = {text: name for name, text in TEXTS.items()}


async def analyze_many(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
    """As ``Analyzer.analyze_many``, with a cache."""
    return [analysis(_NAMES[each.text], each.lang or "", each.known_lang) for each in articles]


async def analyze_many_for_migration(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
    """As ``analyze_many``, by the next model; a stored text has the opening."""
    names = [_NAMES[article.text.removeprefix(OPENING)] for article in articles]
    return [
        analysis(name, article.lang or "", article.known_lang, NEXT_ANALYZER)
        for name, article in zip(names, articles, strict=True)
    ]


def posts(*pairs: str) -> tuple[Post, ...]:
    """Posts written as "id=text", "id=text@language", "id=text:source" or "id=text@language:source"."""
    parsed = []
    for pair in pairs:
        rest, _, source = pair.partition(":")
        id_and_text, _, lang = rest.partition("@")
        id_, _, text = id_and_text.partition("=")
        parsed.append(Post(id_, text, lang or "en", source))
    return tuple(parsed)


def writer(*lines: str) -> tuple[Request, ...]:
    """Requests of one writer, one per line.

    "a=s0" posts, "a=s0 b=s1" posts a batch, "-a" removes, "!a" takes down, "<a" undoes, "?s0" looks up,
    "|" seals, ">" reads the stream, "#" runs maintenance, "~" waits, "=" makes sketch keys full with two
    entries, "*" rehashes the sketch buckets, "+" begins to, "^" copies into the spaces of the next model.
    """
    requests: list[Request] = []
    for line in lines:
        parts = line.split()
        if line[0] in "-!<":
            requests.append(Remove(line[1:], take_down=line[0] == "!", undo=line[0] == "<"))
        elif line.startswith("?"):
            requests.append(Lookup(line[1:]))
        elif line in SYMBOLS:
            requests.append(SYMBOLS[line])
        elif len(parts) == 1:
            requests += posts(line)
        else:
            requests.append(Batch(posts(*parts)))
    return tuple(requests)


# Small programs, whose schedules are searched systematically.
SMALL: dict[str, Program] = {
    "two near-copies": (writer("a=s0"), writer("b=s1")),
    "two exact copies": (writer("a=s0"), writer("b=s0!")),
    "a copy found by sketch keys only": (writer("a=s0"), writer("b=scut")),
    "equal texts in two languages": (writer("a=q0"), writer("b=q0@fr")),
    "equal texts in batches of two languages": (writer("a=q0 b=q0@fr", "-a"), writer("c=q0!@fr d=q0")),
    "a retry races its original": (writer("a=s0"), writer("a=s0")),
    "a retry and a copy": (writer("a=s0", "a=s0"), writer("b=s0!", "b=s0!")),
    "delete races a copy": (writer("a=s0", "-a"), writer("b=s1")),
    "undoing races a copy": (writer("a=s0", "<a"), writer("b=s1", "c=s2")),
    "undoing races exact copies": (writer("a=s0", "b=s0!", "<a"), writer("c=s0", "d=s0!")),
    "undoing over a seal": (writer("a=s0", "b=s1", "|", "<a"), writer("c=s1!", "d=s2")),
    "undoing races a batch": (writer("a=s0", "<a", "a=s0"), writer("b=s0! c=s1")),
    "two in one group are undone": (writer("a=s0", "b=s1", "<a"), writer("c=s2", "<b", "<c", "d=s1!")),
    "undoing during a migration": (writer("a=s0", "b=s1", "^", "<a"), writer("c=s2")),
    "a reused id races a copy": (writer("a=s0", "b=s1", "a=t0"), writer("c=s2", "d=s1!")),
    "a reused id in a batch": (writer("a=s0 b=s0!", "a=t0 b=s0! c=s1"), writer("d=s2")),
    "a reused id over a seal": (writer("a=s0", "b=s1", "|", "a=t0"), writer("c=s1!", "b=s2")),
    "a reused id in another language": (writer("a=s0", "b=s1", "a=t0@fr"), writer("c=s2")),
    "a reused id during a migration": (writer("a=s0", "b=s0!", "^", "a=t0"), writer("c=s2")),
    "delete races an exact copy": (writer("a=s0", "-a"), writer("b=s0!")),
    "delete races a copy of a copy": (writer("a=s0", "b=s1", "-a"), writer("c=s1!")),
    "two deletes in one group": (writer("a=s0", "b=s1", "c=s2", "-a"), writer("-b", "d=scut")),
    "delete and repost": (writer("a=s0", "-a", "a=s0"), writer("b=s1")),
    "delete races an update": (writer("a=s0", "b=s1", "-a"), writer("b=s2")),
    "two updates of one id": (writer("a=s0", "a=s1"), writer("a=s2")),
    "first versions race": (writer("a=s0", "b=scut"), writer("a=s1", "-a")),
    "update leaves an exact copy": (writer("a=s0", "a=s1"), writer("b=s0!", "c=s0")),
    "an exact copy is removed": (writer("a=s0", "b=s0!", "c=s0", "a=s1"), writer("-b")),
    "batches of copies": (writer("a=s0 b=s1"), writer("c=s0! d=s2")),
    "batches of the same ids": (writer("a=s0 b=s1"), writer("a=s0 b=s1")),
    "a batch repeats an id": (writer("a=s0 a=s0 b=s1"), writer("c=s0!")),
    "a batch updates its own": (writer("a=s0 b=s0! a=s2"), writer("c=s0")),
    "a batch against a delete": (writer("a=s0", "b=s1 c=s0!"), writer("-a")),
    "a copy between the articles of a batch": (writer("a=s0 b=s1"), writer("c=s0!")),
    "overlapping batches": (writer("a=s0 b=s1 c=t0"), writer("d=s0!")),
    "overlapping batches of unrelated articles": (writer("a=s0 b=t0 c=u0"), writer("d=s1", "e=t1")),
    "overlapping batches with an id twice": (writer("a=s0 b=t0 a=s1"), writer("b=t1")),
    "overlapping batches over a seal": (writer("a=s0 b=s1 c=t0"), writer("|", "d=s2")),
    "overlapping batches against a delete": (writer("a=s0", "b=t0 c=s1 d=s2"), writer("-a")),
    "overlapping batches that update": (writer("a=s0 b=t0", "c=s1 a=s2 d=t1"), writer("e=s0!")),
    "overlapping batches of two": (writer("a=s0 b=t0 c=s1 d=t1"), writer("e=t2", "-a")),
    "a copy joins while another leaves": (writer("a=s0", "b=s1", "-a"), writer("-b", "c=s2")),
    "the canonical text changes": (writer("a=s0", "b=s0!", "c=s0", "b=s2"), writer("a=s1")),
    "a retry of an exact copy": (writer("b=s0", "a=s0!"), writer("a=s0!")),
    "exact copies removed one after another": (writer("a=s0", "b=s0!", "c=s0", "a=s1", "-b"), writer("d=s2")),
    "a deleted id comes back elsewhere": (writer("a=s0", "a=s1"), writer("-a", "b=s2")),
    "an id changes its language": (writer("a=s0", "b=s1", "b=t0@fr"), writer("-a")),
    "one id in two languages": (writer("a=s0", "-a"), writer("a=s0@fr")),
    "one id in two languages at once": (writer("a=s0"), writer("a=s1@fr")),
    "an update without a source": (writer("a=s0:radio", "a=s2:radio"), writer("a=s1")),
    "two sources post one id": (writer("a=s0:gazette"), writer("a=s1:radio")),
    "an update and another language": (writer("a=s0", "a=s1"), writer("a=s2@fr")),
    "a seal between near-copies": (writer("a=s0"), writer("|", "b=s1")),
    "a seal between sketch keys": (writer("a=s0"), writer("|", "b=scut")),
    "two seals": (writer("|", "a=s0"), writer("|", "b=s1")),
    "a batch over a seal": (writer("a=s0 b=s1"), writer("|"), writer("c=s0!")),
    "a look-up over a seal": (writer("a=s0", "|", "b=t0"), writer("?s0", "?t0")),
    "a frozen article is deleted": (writer("a=s0", "|", "-a"), writer("b=s1", "?s2")),
    "a delete over a seal": (writer("a=s0", "-a"), writer("|", "b=s1")),
    "a frozen copy is promoted": (writer("a=s0", "b=s1", "|", "-a", "-b"), writer("c=s2")),
    "a frozen article is updated": (writer("a=s0", "b=s0!", "|", "a=s1"), writer("c=s0")),
    "a frozen group grows and shrinks": (writer("a=s0", "b=s1", "|", "c=s2", "-a"), writer("-c", "d=scut")),
    "a retry after a seal": (writer("a=s0", "|", "a=s0"), writer("b=s1", "a=s0")),
    "the stream over a seal": (writer(">", ">"), writer("a=s0", "|", "b=t0")),
    "compaction during near-copies": (writer("x=s0", "-x", "|", "a=s1"), writer("#", "b=s2", "?s0")),
    "a length that comes back": (writer("|", "x=s2", "-x", "a=s1"), writer("#", "b=s2")),
    "removed articles in a sealed segment": (writer("a=s0", "b=t0", "-a", "|", "#", "c=u0"), writer("d=s1")),
    "a removed article in the writable segment": (
        writer("a=s0", "|", "b=t0", "-b", "#", "c=u0"),
        writer("d=t1"),
    ),
    "removed articles in several segments": (
        writer("a=s0", "b=s0!", "|", "a=t0", "|", "#"),
        writer("c=s1", "-b"),
    ),
    "two processes run maintenance": (writer("a=s0", "b=s1", "-a", "|", "#"), writer("#", "c=s2")),
    "a sealed segment with live articles": (writer("a=s0", "|", "b=t0", "#"), writer("c=s1")),
    "an exact copy long after": (writer("a=s0", "~", "b=s0!", "~", "~", "c=t0"), writer("#")),
    "an original comes back": (writer("a=s0", "~", "b=s1", "~", "~", "#", "a=s0"), writer("c=s2", "-b")),
    "a segment expires": (
        writer("a=s0", "|", "~", "b=s1", "~", "~", "~", "#"),
        writer("?s0", ">", "c=s2"),
    ),
    "expired and posted again": (writer("a=s0", "~", "~", "~", "~", "#", "a=s0"), writer("a=s0", "b=s1")),
    "an update after expiry": (writer("d=s1", "~", "~", "~", "c=scut d=s2"), writer("e=t0")),
    "a delete between two seals": (writer("a=s0", "|", "-a", "|", "b=s1"), writer("a=s1")),
    "full keys": (writer("=", "a=s0", "b=s1", "c=s2"), writer("d=scut", "e=t0")),
    "full keys in batches": (writer("=", "a=s0 b=scut c=s1", "d=s2"), writer("e=s1 f=scut")),
    "full keys in overlapping batches": (writer("=", "a=s0 b=s1 c=scut d=t0"), writer("e=s2", "f=s1")),
    "full keys over a seal": (writer("=", "a=s0", "b=s1", "|", "c=s2"), writer("d=scut", "?s0")),
    "full keys and an update": (writer("=", "a=s0", "b=s1", "b=s2"), writer("c=scut", "?s1")),
    # The keys of x and y, which are gone, are full when "a" arrives: it trims, so their length comes back.
    "a length that comes back under a full key": (
        writer("=", "x=s0", "-x", "y=s0", "-y", "a=s0"),
        writer("b=scut"),
    ),
    # What "b" leaves under the keys of "a" must find "a" after "b" is gone.
    "the newest entry of a full key": (writer("=", "x=s0", "-x", "a=s0", "b=scut", "-b"), writer("c=scut")),
    "full keys trimmed twice in a batch": (
        writer("=", "x=s0", "-x", "y=s0", "-y", "a=s0 b=scut", "-b"),
        writer("c=scut"),
    ),
    "a rehash between near-copies": (writer("a=s0"), writer("*", "b=scut")),
    "a rehash before a copy": (writer("a=s0", "+"), writer("b=scut")),
    "copies during a rehash": (writer("+", "a=s0", "b=s1"), writer("*", "c=scut")),
    "an article stored during a rehash": (writer("a=s0", "+"), writer("b=s1", "*"), writer("c=scut")),
    "a rehash between two articles of one writer": (writer("a=s0", "b=scut"), writer("+", "*")),
    "a rehash during an update": (writer("a=s0", "a=s2"), writer("*")),
    "two rehashes": (writer("a=s0", "*", "*"), writer("*", "b=scut")),
    "batches during a rehash": (writer("a=s0 b=scut c=t0"), writer("*", "d=s2", "e=tcut")),
    "an update and a delete during a rehash": (
        writer("a=s0", "b=s0!", "+", "a=t0", "-b"),
        writer("*", "c=scut"),
    ),
    "a seal during a rehash": (writer("a=s0", "*", "b=scut"), writer("|", "?scut")),
    "a rehash of a sealed segment": (writer("a=s0", "+", "|", "b=scut"), writer("*", "?s0")),
    "removed articles in a sealed segment during a rehash": (
        writer("x=s0", "-x", "+", "|", "#", "#"),
        writer("c=scut"),
    ),
    "two groups become one": (writer("a=vhead", "b=vtail", "c=v0"), writer("d=vtail1", "e=vtail!")),
    "two groups become one in a batch": (writer("a=vhead b=vtail c=v0 d=vtail!"), writer("e=vtail1")),
    "two groups become one in overlapping batches": (writer("a=vhead b=vtail c=v0"), writer("d=vtail1")),
    "groups become one against a delete": (
        writer("a=vhead", "b=vtail", "c=v0"),
        writer("-b", "d=vtail1", "-a"),
    ),
    "groups become one over a seal": (writer("a=vhead", "b=vtail", "|", "c=v0", "-a"), writer("d=vtail!")),
    "groups become one against an update": (writer("a=vhead", "b=vtail", "c=v0"), writer("b=vtail1", "a=v0")),
    "groups of one become one twice": (writer("a=vhead", "b=vtail", "c=v0"), writer("d=v0", "-c")),
    "members leave when the canonical article goes": (
        writer("a=v0", "b=vhead", "c=vtail!", "-a"),
        writer("d=vtail", "-b", "e=vtail1"),
    ),
    "members leave a united group": (writer("a=vhead", "b=vtail", "c=v0", "-a"), writer("-b", "d=vhead")),
    "members leave over a seal": (writer("a=v0", "b=vtail", "c=vhead", "|", "-a", "-b"), writer("d=vtail!")),
    "full keys and a rehash": (writer("=", "a=s0", "b=s1", "c=s2"), writer("+", "*", "d=scut")),
    "a take-down and its text again": (writer("a=s0", "!a", "b=s0!"), writer("a=s0")),
    "a take-down races an update": (writer("a=s0", "a=s1", "a=s1!"), writer("!a")),
    "a take-down races an exact copy": (writer("a=s0", "!a"), writer("b=s0!", "b=s0!")),
    "a take-down races a batch": (writer("a=s0", "!a", "c=s1"), writer("a=s1 b=s0!")),
    "a take-down and a delete": (writer("a=s0", "-a", "b=s0!"), writer("!a")),
    "two take-downs of one text": (writer("a=s0", "b=s0!", "!a"), writer("!b", "c=s0")),
    "articles during a migration": (writer("a=s0", "b=s1", "^"), writer("c=s0!", "-a")),
    "an update during a migration": (writer("a=s0", "a=s2", "a=t0"), writer("^", "b=s1")),
    "deletes during a migration": (writer("a=s0", "b=s1", "-a", "-b"), writer("^", "c=s2")),
    "batches during a migration": (writer("a=s0 b=t0", "^"), writer("c=s1 a=s2", "-c")),
    "a seal during a migration": (writer("a=s0", "|", "b=s1", "-a"), writer("^", "a=s0")),
    "a take-down during a migration": (writer("a=s0", "!a", "b=s0!"), writer("^", "c=s1")),
    "two migrations at once": (writer("a=s0", "^", "b=s1"), writer("^", "-a")),
    "groups become one during a migration": (writer("a=vhead", "b=vtail", "c=v0"), writer("^", "-b")),
    "a take-down over a seal": (writer("a=s0", "|", "!a", "b=s0!"), writer("a=s1", "c=s1")),
}


def random_program(rng: Random) -> Program:
    """2-4 writers with up to 4 requests each over few ids and one to three stories."""
    ids = "abcdef"[: rng.choice((2, 3, 4, 6))]
    letters = rng.choice(("s", "s", "st", "stu", "v"))
    texts = [t for t in TEXTS if t[0] in letters]
    languages = ["en"] * 9 + ["fr"] if rng.random() < 0.15 else ["en"]
    fixed_stories = rng.random() < 0.6  # every id keeps its story, so that verdicts can be checked
    story_of = {id_: rng.choice(letters) for id_ in ids}

    def post() -> Post:
        id_ = rng.choice(ids)
        text = rng.choice(texts)
        return Post(id_, (story_of[id_] + text[1:]) if fixed_stories else text, rng.choice(languages))

    if rng.random() < 0.15:
        return _random_full_keys(rng, letters.strip("v") or "s")
    # Who posts what, and where, matters less to a take-down; nothing may expire (``oracle.take_downs_hold``).
    take_down_rate = rng.choice((0, 0.5)) if languages == ["en"] else 0
    maintenance_rate, waits = rng.choice((0, 0, 0.1, 0.25, 0.4)), rng.random() < 0.5 and not take_down_rate

    def request() -> Request:
        if rng.random() < maintenance_rate:
            return SYMBOLS[rng.choice("|||>##**+" + ("~~~" if waits else ""))]
        kind = rng.random()
        if kind > 0.9:
            return Lookup("v0" if letters == "v" else rng.choice(texts), rng.choice(languages))
        if kind < 0.22:
            return Remove(rng.choice(ids), take_down=rng.random() < take_down_rate)
        if kind < 0.42:
            return Batch(tuple(post() for _ in range(rng.randrange(2, 5))))
        return post()

    writers = [[request() for _ in range(rng.randrange(1, 5))] for _ in range(rng.choice((2, 2, 3, 4)))]
    # Two sources that post one id in two languages at the same moment may both be acknowledged.
    bound_rate = 0.3 if languages == ["en"] and not take_down_rate else 0
    sources = [rng.choice(("", "gazette", "radio")) if rng.random() < bound_rate else "" for _ in writers]
    return tuple(
        tuple(_bound(request, source) for request in requests)
        for requests, source in zip(writers, sources, strict=True)
    )


def _bound(request: Request, source: str) -> Request:
    """The request by a key that is bound to a source."""
    match request:
        case Post():
            return replace(request, source=source)
        case Batch():
            return Batch(tuple(replace(post, source=source) for post in request.posts))
        case _:
            return request


def _random_full_keys(rng: Random, letters: str) -> Program:
    """As ``random_program`` with full keys, without removals: the newest entries of a key are live."""
    ids = iter("abcdefghijklmnopqr")

    def post() -> Post:
        return Post(next(ids), rng.choice([text for text in TEXTS if text[0] in letters]))

    def request() -> Request:
        if rng.random() < 0.3:
            lookup = Lookup(rng.choice([text for text in TEXTS if text[0] in letters]))
            return rng.choice([*(SYMBOLS[symbol] for symbol in "|*+"), lookup])
        return Batch((post(), post())) if rng.random() < 0.3 else post()

    writers = [tuple(request() for _ in range(rng.randrange(1, 4))) for _ in range(rng.choice((2, 3)))]
    return ((SYMBOLS["="], *writers[0]), *writers[1:])


def show(program: Program) -> str:
    """One line per writer."""
    return "\n".join(f"writer {i}: " + " ; ".join(map(_describe, w)) for i, w in enumerate(program))


def _describe(request: Request) -> str:
    """The notation of ``writer``."""
    for symbol, step in SYMBOLS.items():
        if request == step:
            return symbol
    if isinstance(request, Batch):
        return "[" + " ".join(map(_describe, request.posts)) + "]"
    if isinstance(request, Remove):
        return f"{'!' if request.take_down else '<' if request.undo else '-'}{request.id}"
    if isinstance(request, Lookup):
        return f"?{request.text}@{request.lang}"
    assert isinstance(request, Post)
    lang = "" if request.lang == "en" else f"@{request.lang}"
    return f"{request.id}={request.text}{lang}" + (f":{request.source}" if request.source else "")
