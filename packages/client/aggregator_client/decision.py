"""Decision about one article (also without an answer), and the JSON of requests and answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Literal

import msgspec

from aggregator_client.dates import MAX_YEAR, MIN_YEAR, with_parsed_date
from aggregator_client.errors import InvalidInput, NotFound, TakenDown, Unavailable
from aggregator_client.surrogates import whole_text
from aggregator_client.wire import ArticleIn, OffsetDatetime, Problem, VerdictName, VerdictOut

ARTICLE_FIELDS = tuple(field.encode_name for field in msgspec.structs.fields(ArticleIn))
TAKEN_DOWN = "taken_down"
FORGOTTEN = "The store of the service had forgotten what it held; /readyz of the service says more."
NOT_AN_AGGREGATOR = "The server that answered is not an aggregator service; check the URL."


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on one article.

    Attributes:
        verdict: "unknown" if the service did not answer and the client fails open, or has no profile with the
            name that the article gives as ``policy``; "refused" if it rejected the article.
        answer: The whole answer; None if unknown or refused.
        stored: Whether ``undo`` would remove it: this call stored it first, to be kept (``answer.created``).
            A duplicate is ``answer.stored``, too.
        problem: Why ``answer`` is None, in one sentence.
        kind: Likewise, in one word: "refused", "taken_down", "policy", or the ``kind`` of ``Unavailable``.
    """

    verdict: VerdictName | Literal["unknown", "refused"]
    answer: VerdictOut | None = None
    stored: bool = False
    problem: str = ""
    kind: str = ""

    @property
    def keep(self) -> bool:
        """Whether to insert the article; without an answer True, unless its text was taken down.

        Not ``stored``, with an answer: a new version of an article that was stored before, or a repetition.
        """
        return self.answer.keep if self.answer else self.kind != TAKEN_DOWN

    @property
    def id(self) -> str | None:
        """The article's id in the service; None without an answer."""
        return self.answer.id if self.answer else None

    @property
    def canonical_id(self) -> str | None:
        """For a duplicate the id of the canonical article of its group, which was to be kept; else None."""
        match = self.answer.duplicate_of if self.answer else None
        return match.canonical_id if match else None


def encode_article(
    article: Mapping[str, Any],
    zone: tzinfo | None = None,
    on_unread: Callable[[Mapping[str, Any]], object] = lambda article: None,
) -> bytes:
    """The article as JSON, with its date as ``dates.py`` reads it, in ``zone`` if it is local.

    ``on_unread`` is called with it if the date cannot be read; it is then left out. Halves of surrogate
    pairs become U+FFFD. Raises InvalidInput for unknown fields, bytes and values that JSON cannot represent.
    """
    if not isinstance(article, Mapping):
        raise InvalidInput(
            f"An article is a mapping of {', '.join(ARTICLE_FIELDS)}; found {type(article).__name__}."
        )
    unknown = sorted(set(article) - set(ARTICLE_FIELDS))
    if unknown:
        raise InvalidInput(
            f"{', '.join(unknown)}: unknown field; allowed: {', '.join(ARTICLE_FIELDS)}.", field=unknown[0]
        )
    dated, unread = with_parsed_date(article, zone)
    if unread:
        on_unread(article)
    given = {name: value for name, value in dated.items() if value is not None}
    for name, value in given.items():
        if isinstance(value, bytes | bytearray | memoryview):  # as JSON it would be Base64
            raise InvalidInput(f"{name}: expected str, found {type(value).__name__}; decode it.", field=name)
    try:
        try:
            return msgspec.json.encode(given)
        except UnicodeEncodeError:
            texts = {name: whole_text(value) for name, value in given.items() if isinstance(value, str)}
            return msgspec.json.encode(given | texts)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidInput(f"The article cannot be written as JSON: {error}.") from None


class JsonDates:
    """Converts the dates of articles that are JSON already.

    ``zone``: where times without an offset are local. ``unread``: how many were left out; ``example``: the
    first of these.
    """

    def __init__(self, zone: tzinfo | None = None) -> None:
        self._zone, self.unread, self.example = zone, 0, ""

    def convert(self, data: bytes) -> bytes:
        """The article with its date as the service takes it; ``data`` itself if it is no JSON object."""
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            published_at = _decode_dated(data).published_at
            if published_at is None or MIN_YEAR <= published_at.year <= MAX_YEAR:
                return data
        try:
            article = json.loads(data, object_pairs_hook=_unique_members)
        except (ValueError, RecursionError):
            return data
        if not isinstance(article, dict) or "published_at" not in article:
            return data
        dated, unread = with_parsed_date(article, self._zone)
        self.unread += unread
        self.example = self.example or (str(article["published_at"]) if unread else "")
        return json.dumps(dated).encode()


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member is named twice")  # the service says which
    return members


class _Dated(msgspec.Struct):
    published_at: OffsetDatetime | None = None


_decode_dated = msgspec.json.Decoder(_Dated).decode


class _LineStatus(msgspec.Struct):
    error: Problem | None = None


_decode_answer = msgspec.json.Decoder(VerdictOut).decode
_decode_line_status = msgspec.json.Decoder(_LineStatus).decode
_decode_problem = msgspec.json.Decoder(Problem).decode


def decode_decision(data: bytes) -> Decision:
    """The Decision for an answer body. Raises Unavailable if it is not an answer of the service."""
    try:
        answer = _decode_answer(data)
    except msgspec.MsgspecError:
        raise Unavailable(NOT_AN_AGGREGATOR, "not_an_aggregator") from None
    return Decision(answer.verdict, answer, answer.created)


def decode_line_decision(data: bytes) -> Decision:
    """The Decision for one line of a batch answer. Raises Unavailable if the line must be retried."""
    try:
        problem = _decode_line_status(data).error
    except msgspec.MsgspecError:
        raise Unavailable(NOT_AN_AGGREGATOR, "not_an_aggregator") from None
    if problem is None:
        return decode_decision(data)
    if problem.status in (408, 429) or problem.status >= 500:
        raise Unavailable(problem.detail, kind_of_problem(problem))
    if problem.code == TAKEN_DOWN:
        return rejection(TakenDown(problem.sentences))
    return rejection(InvalidInput(problem.sentences, field=problem.field))


def rejection(error: InvalidInput | NotFound) -> Decision:
    """The Decision on an article that was not accepted; its policy is no part of it."""
    if isinstance(error, InvalidInput) and error.field == "policy":
        return Decision("unknown", problem=str(error), kind="policy")
    kind = TAKEN_DOWN if isinstance(error, TakenDown) else "refused"
    return Decision("refused", problem=str(error), kind=kind)


def problem_of(data: bytes) -> Problem | None:
    """The problem in the body of an error; None if the body is of another server, such as a proxy."""
    try:
        return _decode_problem(data)
    except msgspec.MsgspecError:
        return None


def kind_of_problem(problem: Problem) -> str:
    """The ``kind`` of ``Unavailable`` for a problem after which a later attempt may succeed."""
    if problem.status == 429:
        return "rate_limited"
    if problem.code == "overloaded":
        return "overloaded"
    return "server_error" if problem.status == 500 else "unavailable"
