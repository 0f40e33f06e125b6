"""Routes as the signatures of their handlers: from a request to arguments, from a result to a response.

    async def get_related(request: web.Request, id_: str, query: RelatedQuery) -> RelatedListOut

Each parameter is optional: ``service`` is that of the application, ``id_`` the id in the path, ``query`` the
query parameters, ``body`` the JSON body, ``form`` the HTML form, another name the part of the path that has
it. A Struct is answered as JSON, None with 204. The first sentence of the docstring is the summary of the
OpenAPI document.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from types import NoneType
from typing import Any, TypeVar, get_type_hints
from urllib.parse import quote

import msgspec
from aiohttp import web
from msgspec import Struct

from aggregator.analysis.article_id import validate_id
from aggregator.auth.api_keys import Permission
from aggregator.contract.decoding import convert_strings, to_single_line
from aggregator.contract.requests import NoQuery
from aggregator.contract.responses import encode
from aggregator.contract.validation import MAX_ERRORS, parameters_error
from aggregator.errors import AggregatorError, BodyTimeout, DeadlineExceeded, InvalidInput
from aggregator.http import auth
from aggregator.http import body as bodies
from aggregator.http.app_keys import SERVICE
from aggregator.http.pages import conditional_response, shared_body

JSON_TYPE = "application/json"
Responses = dict[int, type[Struct] | str | None]
T = TypeVar("T")
_NON_TOKEN_CHARS = re.compile(r"[^A-Za-z0-9_-]")
# The plus sign of a UTC offset, if not percent-encoded, arrives as a space.
_UNESCAPED_PLUS = re.compile(r"(T[\d:.]{1,20}) (\d\d:\d\d)$")


@dataclass(frozen=True)
class Endpoint:
    """One route.

    path             as in OpenAPI; "{id}" may contain slashes, so ids that are addresses work unescaped
    operation_id     operationId of the OpenAPI document, also written to the audit log
    answers          status -> body: a Struct type, a media type, or None for no content; by default 200 and
                     the type that the handler returns, or 204
    reads            body of a handler that reads it itself (``ndjson``: one per line; ``form``: HTML form)
    any_query        whether the query string is ignored
    errors           error statuses to document in addition to those that ``error_statuses`` adds
    permission       what the caller's key must allow, where keys are required (``api_keys.ROLE_PERMISSIONS``)
    audited          whether each request is written to the audit log
    long_running     answered in parts, so that the deadline of requests covers its admission only
    shared           whether equal requests share an answer (``pages.shared_body``), also of several callers
    """

    method: str
    path: str
    handler: Callable[..., Awaitable[Any]]
    operation_id: str
    tag: str
    answers: Responses | None = None
    reads: type[Struct] | None = None
    any_query: bool = False
    ndjson: bool = False
    form: bool = False
    errors: tuple[int, ...] = ()
    permission: Permission = "admin"
    audited: bool = False
    long_running: bool = False
    shared: bool = False

    @cached_property
    def types(self) -> dict[str, Any]:
        """Types of the parameters of the handler by name, in order, and under "return" of its result."""
        hints = get_type_hints(self.handler)
        return {name: hints[name] for name in (*inspect.getfullargspec(self.handler).args, "return")}

    @cached_property
    def query(self) -> type[Struct] | None:
        """Type of the query parameters; None: the query string is ignored."""
        return None if self.any_query else self.types.get("query", NoQuery)

    @cached_property
    def body(self) -> type[Struct] | None:
        """Type of the request body; None: there is none."""
        return self.types.get("body") or self.types.get("form", self.reads)

    @property
    def is_form(self) -> bool:
        """Whether the body is that of an HTML form."""
        return self.form or "form" in self.types

    @property
    def responses(self) -> Responses:
        """Body of each status that is no error."""
        result = self.types["return"]
        found: Responses = {204: None} if result is NoneType else {200: result}
        return self.answers or (found | {304: None} if self.shared else found)

    @property
    def summary(self) -> str:
        """What the route does, one sentence."""
        first_line = (self.handler.__doc__ or "").partition("\n")[0]
        return first_line.partition(". ")[0].rstrip(".") + "."

    @property
    def error_statuses(self) -> tuple[int, ...]:
        """Error statuses of the route, besides 500 and those of authentication."""
        if self.query is None:
            return self.errors
        found = (404,) if "{" in self.path else ()
        of_body = (413,) if self.is_form else (415,) if self.ndjson else (413, 415, 422) if self.body else ()
        return (400, *found, *of_body, *self.errors, 503)


def make_handler(endpoint: Endpoint) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The handler of a route: authorization, arguments, deadline, and what the endpoint asks for.

    The time of the body, of every queue, of the analysis and of the store counts together, so three time-outs
    of the store in a row delay nobody three times. When it has passed, the work is cancelled and the request
    is answered 503. A commit that has begun is not interrupted (``ingest/service.py``): the article may be
    stored although the answer was 503, and repeating the request returns its verdict.
    """
    parameters = [name for name in endpoint.types if name != "return"]

    async def call(request: web.Request, query: Any) -> web.StreamResponse:
        given = {"request": request, "service": request.app[SERVICE], "query": query}
        arguments = {}
        for name in parameters:
            if name in given:
                arguments[name] = given[name]
            elif name == "id_":
                with errors_in_parameters():
                    arguments[name] = validate_id(request.match_info["id"])
            elif name == "body":
                arguments[name] = await bodies.read_struct(request, endpoint.types[name])
            elif name == "form":
                arguments[name] = await bodies.read_form(request, endpoint.types[name])
            else:
                arguments[name] = request.match_info[name]
        if endpoint.shared:

            async def encoded(_: object) -> bytes:
                return encode(await endpoint.handler(**arguments)) + b"\n"

            body = await shared_body(request, encoded)
            return conditional_response(request, body, JSON_TYPE, charset=None)
        result = await endpoint.handler(**arguments)
        if isinstance(result, web.StreamResponse):
            return result
        return struct_response(result) if result is not None else web.Response(status=204)

    async def run_audited(request: web.Request, query: Any) -> web.StreamResponse:
        response = await call(request, query)
        auth.audit_request(request, endpoint.operation_id, response.status)
        return response

    async def handle(request: web.Request) -> web.StreamResponse:
        timeout_s = request.app[SERVICE].settings.request_timeout_seconds
        try:
            async with asyncio.timeout(timeout_s) as scope:
                await auth.authorize(request, endpoint.permission)
                query = None if endpoint.query is None else parse_query(request, endpoint.query)
                if endpoint.audited:  # a change that has begun is completed, whoever still waits for it
                    return await asyncio.shield(asyncio.ensure_future(run_audited(request, query)))
                if not endpoint.long_running:
                    return await call(request, query)
        except TimeoutError:
            if not scope.expired():
                raise
            raise _timeout_error(request, timeout_s) from None
        return await call(request, query)

    return handle


def _timeout_error(request: web.Request, timeout_s: float) -> AggregatorError:
    if not request.content.is_eof():
        return BodyTimeout(
            f"body: not received within {timeout_s:g} s (setting request_timeout_seconds).", field="body"
        )
    return DeadlineExceeded(
        f"The request was not finished within {timeout_s:g} s (setting request_timeout_seconds); repeat "
        "it. An article that was stored meanwhile is then answered with its verdict, and one whose "
        "analysis takes longer when it has been analyzed."
    )


@contextmanager
def errors_in_parameters() -> Iterator[None]:
    """Mark errors of input that are raised within as errors of parameters, not of the body."""
    try:
        yield
    except InvalidInput as error:
        for part in (error, *error.others):
            part.place = "parameter"
        raise


def parse_query(request: web.Request, struct_type: type[T]) -> T:
    """The query parameters as a ``struct_type``. Raises InvalidInput naming the parameters."""
    with errors_in_parameters():
        return parse_pairs(request.query.items(), struct_type)


def parse_pairs(pairs: Iterable[tuple[str, str]], struct_type: type[T]) -> T:
    """As ``parse_query``, for (name, value) pairs."""
    known = _names(struct_type)  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    found: list[InvalidInput] = []
    for name, value in pairs:
        if known.get(name):
            values.setdefault(name, []).append(value)
        elif name in known and name not in values:
            values[name] = _UNESCAPED_PLUS.sub(r"\1+\2", value)
        elif len(found) < MAX_ERRORS:
            found.append(_misplaced(to_single_line(name)[:80], name in known, known))
    if found and (error := parameters_error(values, struct_type, "query parameter", found)):
        raise error
    return convert_strings(values, struct_type)


def _misplaced(name: str, is_known: bool, known: Iterable[str]) -> InvalidInput:
    if is_known:
        return InvalidInput(f"{name}: query parameter given twice.", field=name, reason="repeated")
    allowed = ", ".join(known) if known else "none"
    return InvalidInput(f"{name}: unknown query parameter; allowed: {allowed}.", field=name, reason="unknown")


@cache  # msgspec evaluates the annotations at each call: a tenth of the processor time of a single post
def _names(struct_type: type) -> dict[str, bool]:
    """Name of each parameter, and whether it may be repeated."""
    return {field.encode_name: field.default_factory is list for field in msgspec.structs.fields(struct_type)}


def struct_response(
    body: Struct, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """A response with a Struct as JSON, ending in a newline for readability in a terminal."""
    return web.Response(body=encode(body) + b"\n", status=status, headers=headers, content_type=JSON_TYPE)


def created(collection: str, body: Struct, *, is_new: bool) -> web.Response:
    """The resource ``body``, which has an id: 201 with its Location if it is new, 200 if it existed."""
    headers = location(collection, body.id) if is_new else None  # type: ignore[attr-defined]
    return struct_response(body, 201 if is_new else 200, headers)


def location(collection: str, id_: str) -> dict[str, str]:
    """The Location header of a resource that was created: its path below that of its collection."""
    return {"Location": f"{collection}/{quote(id_, safe='')}"}


def server_timing(timings_ms: Mapping[str, float]) -> dict[str, str]:
    """The Server-Timing header for the stages of one article; empty without timings."""
    stages = [f"{_NON_TOKEN_CHARS.sub('_', stage)};dur={ms:.2f}" for stage, ms in timings_ms.items()]
    return {"Server-Timing": ", ".join(stages)} if stages else {}
