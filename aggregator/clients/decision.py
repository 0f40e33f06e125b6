"""What a crawler gets to know about its article, also when the service did not answer in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from aggregator.contract.responses import Problem, VerdictOut
from aggregator.domain import VerdictName
from aggregator.errors import InvalidInput, StoreUnavailable

ARTICLE_FIELDS = ("id", "url", "title", "text", "html", "source", "published_at", "lang")


class Unavailable(StoreUnavailable):
    """No answer within the deadline. Sending the article again is safe."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one article.

    verdict  "unknown" when the service gave no answer and the client fails open
    answer   the whole answer; None when unknown or refused
    stored   this very call stored it: undoing it takes nothing away that was there before
    problem  why there is no answer: the article was refused, or the service is away
    """

    verdict: VerdictName | Literal["unknown", "refused"]
    answer: VerdictOut | None = None
    stored: bool = False
    problem: str = ""

    @property
    def keep(self) -> bool:
        """Whether to go on with the article: anything but a duplicate, since losing news is worse than a copy."""
        return self.verdict != "duplicate"

    @property
    def id(self) -> str | None:
        """The id under which the service knows it."""
        return self.answer.id if self.answer else None

    @property
    def canonical_id(self) -> str | None:
        """For a duplicate: the first article of its group."""
        match = self.answer.duplicate_of if self.answer else None
        return match.canonical_id if match else None


def encode_article(article: Mapping[str, Any]) -> bytes:
    """The article as JSON. Raises BadInput for fields that the service does not know or that have no JSON."""
    if not isinstance(article, Mapping):
        raise InvalidInput(
            f"An article is a mapping of {', '.join(ARTICLE_FIELDS)}; found {type(article).__name__}."
        )
    unknown = sorted(set(article) - set(ARTICLE_FIELDS))
    if unknown:
        raise InvalidInput(
            f"{', '.join(unknown)}: no such field; an article has {', '.join(ARTICLE_FIELDS)}.",
            field=unknown[0],
        )
    try:
        return msgspec.json.encode({name: value for name, value in article.items() if value is not None})
    except (TypeError, msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise InvalidInput(f"The article cannot be written as JSON: {error}.") from None


class _LineStatus(msgspec.Struct):
    error: Problem | None = None


_decode_answer = msgspec.json.Decoder(VerdictOut).decode
_decode_line_status = msgspec.json.Decoder(_LineStatus).decode
_decode_problem = msgspec.json.Decoder(Problem).decode


def decode_decision(data: bytes, *, stored: bool) -> Decision:
    """The Decision of an answer body. Raises Unavailable when it is none of ours."""
    try:
        answer = _decode_answer(data)
    except msgspec.MsgspecError:
        raise Unavailable("What answered is no aggregator service; check the address.") from None
    return Decision(answer.verdict, answer, stored)


def decode_line_decision(data: bytes) -> Decision:
    """The Decision of one line of a batch answer. Raises Unavailable when the line says "later"."""
    try:
        told = _decode_line_status(data)
    except msgspec.MsgspecError:
        raise Unavailable("What answered is no aggregator service; check the address.") from None
    if told.error is None:
        return decode_decision(data, stored=False)
    if told.error.status == 429 or told.error.status >= 500:
        raise Unavailable(told.error.detail)
    return Decision("refused", problem=told.error.detail)


def problem_detail(data: bytes, status: int) -> str:
    """The sentence of a problem body, or what can be said without one."""
    try:
        return _decode_problem(data).detail
    except msgspec.MsgspecError:
        return f"The service answered with status {status}."
