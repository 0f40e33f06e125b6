"""Fuzzing targets: everything that decodes client input, or stored or transmitted bytes that may be damaged.

A target takes any bytes and may raise only ``AggregatorError``. It also checks invariants of the result.
``fuzz.py`` runs them.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import hiredis
import msgspec
import numpy as np
import redis.exceptions
from aiohttp import web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpRequestParser
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from aggregator.analysis import models
from aggregator.analysis.features import FeatureModel
from aggregator.analysis.shingles import build_sketch
from aggregator.analysis.text.figures import figures
from aggregator.analysis.text.html import extract_article
from aggregator.analysis.text.tokenizer import split_text
from aggregator.app import Service
from aggregator.auth.api_keys import ApiKeys
from aggregator.contract import requests
from aggregator.contract.decoding import decode_article
from aggregator.domain import ArticleRecord, Match, Outcome, StreamItem
from aggregator.errors import AggregatorError
from aggregator.events import repository
from aggregator.events.detection.model import EditorOverrides, Mute
from aggregator.events.event import EventSummary
from aggregator.http import auth
from aggregator.http import body as bodies
from aggregator.http.app_keys import BASE_PATH, SERVICE
from aggregator.http.body import CHUNK_BYTES, GzipDecompressor, LineSplitter
from aggregator.http.endpoint import parse_pairs
from aggregator.http.errors import handle_expect_header
from aggregator.http.handlers.events import decode_cursor
from aggregator.http.pages import conditional_response, search, sign_in
from aggregator.http.pages.sign_in import safe_redirect_path
from aggregator.http.proxies import PROXY_USERS, ProxyUsers
from aggregator.http.server import READ_BUFFER_BYTES
from aggregator.index import bindings
from aggregator.index.article_stream import decode_stream_entry, encode_stream_entry, to_stream_item
from aggregator.index.blocks import PLAN
from aggregator.index.codec import postings, record_codec
from aggregator.settings import Settings
from aggregator.store import pipelining
from aggregator.store.decoding import decode_value
from aggregator.store.memory import MemoryStore
from aggregator.time_units import wall_clock_ms
from aggregator_lab.model_writing import save
from tests.support.factories import event
from tests.support.index_layout import encode_posting

TEXT = "The harbour bridge of Brackwater stays closed, since 2,400 bolts were found loose on 3 May. "
CHINESE = "港口大桥昨日关闭。记者从市政府获悉，2400颗螺栓松动，维修需时三个月。"
CHECKSUM_BYTES = 32
PENDING_REPLIES = 3
MAX_BODY_BYTES = 2 * 1024 * 1024
MAX_HEADER_BYTES = 8190  # of one line, which the parser refuses beyond that
EVENT_READERS: dict[bytes, Callable[[bytes], object]] = {
    b"e": lambda data: decode_value(repository.EVENT_DECODER, data, "An event"),
    b"i": repository.INDEX_FORMAT.decode,
    b"o": repository.OVERRIDES_FORMAT.decode,
}


@dataclass(frozen=True, slots=True)
class Target:
    """``run`` is called with ``runs`` mutations of ``seeds``; all targets take some minutes.

    max_ns_per_byte  bound on CPU time, several times the highest found, so that no slower machine exceeds it
    max_bytes        size of the large inputs
    """

    name: str
    run: Callable[[bytes], object]
    seeds: Sequence[bytes]
    runs: int = 10_000
    max_ns_per_byte: int = 10_000
    max_bytes: int = 32 * 1024


def targets(directory: Path) -> list[Target]:
    """All targets, with their dictionaries loaded; ``directory`` is for the model file."""
    all_targets = [
        Target("tokenizer en", lambda data: check_tokenizer(data, "en"), [TEXT.encode()]),
        Target("tokenizer zh", lambda data: check_tokenizer(data, "zh"), [CHINESE.encode()]),
        Target(
            "tokenizer other", lambda data: check_tokenizer(data, "ar"), ["الجسر مغلق ३४ สะพานปิด".encode()]
        ),
        Target("article", decode_article, [json.dumps({"text": TEXT, "url": "http://a.example/b"}).encode()]),
        Target("batch lines", check_batch_lines, [_batch(), 90 * b'{"it": ""}\n'], max_ns_per_byte=30_000),
        Target("gzip", check_gzip, list(_gzip_bodies()), max_ns_per_byte=50_000),
        Target("http requests", check_http_parser, list(_http_requests())),
        Target("headers", check_headers, list(_headers()), max_bytes=MAX_HEADER_BYTES),
        Target("query", check_query, list(_queries()), max_bytes=MAX_HEADER_BYTES),
        Target("form", check_form, [b"key=abc.def&next=%2Fevents%2F1%3Fa%3Db", b"q=%E6%96%B0&x=1+2"]),
        Target("bucket", check_bucket, list(_buckets())),
        Target("record", check_record, [b"".join(stored) for stored in _stored_values()]),
        Target(
            "article stream",
            check_stream_entry,
            [encode_stream_entry("article", _binding()), encode_stream_entry("deleted", _binding())],
        ),
        Target("change stream", decode_event_value, list(_event_values())),
        Target("store replies", check_replies, list(_replies())),
        Target(
            "extractor",
            lambda data: extract_article(data.decode("utf-8", "replace")),
            list(_pages()),
            max_ns_per_byte=1_000_000,
            max_bytes=4 * 1024,
        ),
        Target("model loader", lambda data: load_model(data, directory), list(_models(directory))),
    ]
    for target in all_targets:
        target.run(target.seeds[0])  # loads dictionaries and parsers
    return all_targets


def check_tokenizer(data: bytes, lang: str) -> None:
    """Tokenize any text; words, units and terms are never empty."""
    text = data.decode("utf-8", "surrogateescape")
    found = split_text(text, lang)
    assert all(found.words) and all(found.units) and all(found.terms or ())
    figures(text)


def check_bucket(data: bytes) -> None:
    """Read packed postings; the first byte selects the reader. Returned numbers are unique."""
    kind, data = data[:1], data[1:]
    if kind == b"s":
        ((numbers, *_),) = postings.numbers_sharing_each([data, None], [[0, 1]], 2)
        rest_bytes = postings.SKETCH_REMAINDER_BYTES
    elif kind == b"t":
        entries, terms = postings.entries_of_terms([data, None], [0, 256], 2)
        numbers = postings.top_by_terms(entries, terms, np.array([1.0, 0.5]))
        rest_bytes = postings.TERM_REMAINDER_BYTES
    else:
        probes = PLAN.probe_plan(5, 7)
        buckets = [data, *[None] * (len(probes.flipped_bits) - 1)]
        numbers, distances = postings.numbers_within(buckets, probes, 7, 2)
        assert len(numbers) == len(distances) and (distances <= 7).all()
        rest_bytes = probes.remainder_bytes
    assert len(numbers) == len(set(numbers.tolist())) and (numbers >= 2).all()
    compacted = postings.compact_bucket(data, rest_bytes, 3, np.sort(numbers))
    assert len(compacted) % (rest_bytes + postings.NUMBER_BYTES) == 0 and len(compacted) <= len(data)


def _buckets() -> Iterator[bytes]:
    for kind, rest_bytes in ((b"b", 6), (b"s", 2), (b"t", 4)):
        yield kind + b"".join(encode_posting(n % 3, n, rest_bytes) for n in range(1, 9))


def check_record(data: bytes) -> None:
    """Decode a binding, pointer or record; the first byte selects which."""
    kind, rest = data[:1], data[1:]
    if kind == b"b":
        bindings.decode_binding(rest)
    elif kind == b"p":
        bindings.decode_pointer(rest)
    else:
        # Without its cache, which would only hold the inputs.
        found = record_codec.decode_record.__wrapped__(rest, "en.3f2a", 7)
        assert found.sketch.sample.dtype == np.uint32


def check_stream_entry(data: bytes) -> None:
    """Decode an entry of the article stream, with and without its record."""
    item = to_stream_item(decode_stream_entry(data), "en.3f2a", None)
    assert isinstance(item, StreamItem) and item.kind in ("article", "deleted")
    assert decode_stream_entry(data).number == item.number
    item = to_stream_item(decode_stream_entry(data), "en.3f2a", record_codec.encode_record(_record()))
    assert item.title == "Port opens"


def decode_event_value(data: bytes) -> None:
    """Decode a change of an event or another value of the event repository; the first byte selects which."""
    if data[:1] in EVENT_READERS:
        EVENT_READERS[data[:1]](data[1:])
    else:
        decode_value(repository.CHANGE_DECODER, data[1:], "A change")


def check_replies(data: bytes) -> None:
    """Feed bytes of a store to a connection: each waiting request gets its replies or an error."""
    asyncio.run(_check_replies(data))


async def _check_replies(data: bytes) -> None:
    transport = SimpleNamespace(
        set_protocol=lambda _: None, is_closing=lambda: False, write=lambda _: None, abort=lambda: None
    )
    opened = SimpleNamespace(_writer=SimpleNamespace(transport=transport), _reader=None)
    connection = pipelining._PipelinedConnection(opened, 60.0)  # type: ignore[arg-type]
    waiting = [asyncio.ensure_future(connection.execute(b"", count)) for count in (1, PENDING_REPLIES - 1)]
    await asyncio.sleep(0)
    for start in range(0, len(data), 40):  # in parts, as from a network
        if connection.is_open:
            connection.data_received(data[start : start + 40])
    connection.connection_lost(None)
    for reply in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(reply, list | redis.exceptions.ConnectionError), reply


def load_model(data: bytes, directory: Path) -> None:
    """Load a model file; if the first byte is ``s``, with a recomputed checksum, to get past that check."""
    path = directory / "fuzzed.model"
    path.write_bytes(data[1:])
    if data[:1] == b"s":
        path.write_bytes(data[1:-CHECKSUM_BYTES] + sha256(data[1:-CHECKSUM_BYTES]).digest())
    models.load_model(path)


def check_batch_lines(data: bytes) -> None:
    """Split a body into lines, in packets of 1,000 bytes, and decode each line."""
    splitter, packets = LineSplitter(MAX_BODY_BYTES), range(0, len(data), 1000)
    lines = [line for start in packets for line in splitter.feed(data[start : start + 1000])]
    for line in lines + splitter.flush():
        if line.error is None:
            with suppress(AggregatorError):
                decode_article(line.data)


def check_gzip(data: bytes) -> None:
    """Decompress a body in one packet up to its limit, as ``read_body`` does."""
    decompressor, size = GzipDecompressor(), 0
    with suppress(zlib.error):
        for chunk in decompressor.decompress(data):
            assert len(chunk) <= max(CHUNK_BYTES, len(data))
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                return
        decompressor.check_complete()


def check_http_parser(data: bytes) -> None:
    """Parse a request and its body with the parser of the connections, in packets of 1,000 bytes."""
    parser = HttpRequestParser(
        BaseProtocol(_LOOP), _LOOP, READ_BUFFER_BYTES, payload_exception=web.RequestPayloadError,
        auto_decompress=False,
    )  # fmt: skip
    with suppress(HttpProcessingError):
        for start in range(0, len(data), 1000):
            for message, _ in parser.feed_data(data[start : start + 1000])[0]:
                assert message.url is not None


def check_headers(data: bytes) -> None:
    """Everything that is read from headers before and during authentication, one header per line."""
    headers: CIMultiDict[str] = CIMultiDict()
    for line in data.decode("utf-8", "surrogateescape").splitlines():
        name, _, value = line.partition(":")
        headers.add(name.encode("ascii", "ignore").decode().strip() or "X", value.strip())
    request = copy.copy(_mocked_request())
    # A mock accepts no surrogates, which the server's parser makes of other bytes.
    request._headers, request._cache, request._state = CIMultiDictProxy(headers), {}, {}
    _LOOP.run_until_complete(_read_headers(request))


_LOOP = asyncio.new_event_loop()  # a new one for each request would take most of the time


class _HeaderService:
    settings = Settings(
        public_url="https://news.example",
        trusted_proxies="127.0.0.1",
        user_header="X-Forwarded-User",
        user_groups_header="X-Forwarded-Groups",
        user_roles="*=reader",
    )
    edge = SimpleNamespace(api_keys=ApiKeys(MemoryStore(), wall_clock_ms))


@functools.cache
def _mocked_request() -> web.Request:
    connection = {"peername": ("127.0.0.1", 1)}
    transport = Mock(get_extra_info=lambda name, default=None: connection.get(name, default))
    request = make_mocked_request("POST", "/v1/articles", transport=transport)
    request.app[SERVICE] = cast(Service, _HeaderService)
    request.app[BASE_PATH] = ""
    request.app[PROXY_USERS] = ProxyUsers(_HeaderService.settings, wall_clock_ms)
    return request


async def _read_headers(request: web.Request) -> None:
    with suppress(AggregatorError):
        bodies.check_encoding(request)
    with suppress(AggregatorError):
        auth.refuse_other_sites(request)
    with suppress(AggregatorError):
        await auth.authenticate(request)
    settings = _HeaderService.settings
    auth.is_answered_host(
        request.headers.get("Host", ""), settings.allowed_hosts, settings.host, settings.public_url
    )
    conditional_response(request, b"body", "text/plain", modified_at=datetime.now(UTC))
    await handle_expect_header(request)


def check_query(data: bytes) -> None:
    """Parse a query string for each set of parameters, and its value as a cursor."""
    url = URL("/v1/events?" + data.decode("utf-8", "replace"), encoded=True)
    for struct_type in (requests.EventsQuery, requests.RelatedQuery, search.CompareQuery):
        with suppress(AggregatorError):
            parse_pairs(url.query.items(), struct_type)
    for value in url.query.values():
        with suppress(AggregatorError):
            decode_cursor(value)
        safe_redirect_path(value)


def check_form(data: bytes) -> None:
    """Parse the fields of a form."""
    for struct_type in (sign_in.SignInForm, search.SearchPageQuery):
        with suppress(AggregatorError):
            bodies.parse_form(data, struct_type)


def _batch() -> bytes:
    return b"\r\n".join(json.dumps({"id": str(i), "text": TEXT * i}).encode() for i in range(4))


def _gzip_bodies() -> Iterator[bytes]:
    yield gzip.compress(json.dumps({"text": TEXT}).encode())
    yield gzip.compress(b"") * 4
    yield gzip.compress(b"a" * 100_000)
    yield gzip.compress(b"") + gzip.compress(TEXT.encode(), 0)


def _http_requests() -> Iterator[bytes]:
    head = b"POST /v1/articles?dry_run=true HTTP/1.1\r\nHost: news.example\r\n"
    yield head + b"Transfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n5\r\nabcde\r\n0\r\nT: u\r\n\r\n"
    yield head + b"Content-Length: 3\r\nCookie: a=b\r\n\r\nabc" + head
    yield b"GET /v1/articles/a%2Fb HTTP/1.1\r\nHost: x\r\n\r\n"


def _headers() -> Iterator[bytes]:
    yield b"Host: news.example\nAuthorization: Bearer ak1.abc\nOrigin: https://news.example\nExpect: x"
    yield b'Cookie: aggregator_session=abc; a="b\\073\\\\"; $Path=/\nContent-Encoding: gzip\nHost: [::1]:80'
    yield b'If-None-Match: W/"abc", "def", *\nSec-Fetch-Site: none\nIf-Modified-Since: Sun, 06 Nov 1994'
    yield b"Host: news.example\nX-Forwarded-User: ada@news.example\nX-Forwarded-Groups: newsroom, desk"


def _queries() -> Iterator[bytes]:
    yield b"term=bridge&since=2026-05-01T10:00:00%2B02:00&limit=5&cursor=WzEsImEiXQ"
    yield "source=新&lang=zh&status=breaking&min_size=3".encode()


def _pages() -> Iterator[bytes]:
    """Small pages: a few hundred characters show the same errors at 1/100 of the time."""
    article = (
        f"<html><head><title>x</title></head><body><article><h1>y</h1><p>{TEXT}</p></article></body></html>"
    )
    yield article.encode()
    yield f"<div><table><tr><td><b><a href='x'>{TEXT}".encode()
    yield (
        f"<!DOCTYPE x [<!ENTITY a 'aa'>]><html><body><!-- c --><p>&a;&#0;{TEXT}<script>if(a<b)</script>"
    ).encode()
    yield f"<?xml version='1.0' encoding='utf-16'?><p>{TEXT}</p><svg><style><![CDATA[".encode()


def _models(directory: Path) -> Iterator[bytes]:
    vocabulary = tuple(sorted({word.casefold().strip(".,") for word in TEXT.split()}))
    rng = np.random.default_rng(1)
    path = directory / "seed.model"
    model = FeatureModel(
        "en",
        vocabulary,
        rng.random(len(vocabulary), np.float32) + np.float32(1),
        rng.normal(size=(len(vocabulary), 64)).astype(np.float16),
        np.zeros(64),
    )
    save(model, path)
    for checksum in (b"s", b"-"):
        yield checksum + path.read_bytes()


def _record() -> ArticleRecord:
    return ArticleRecord(
        number=7, first_version=5, id="port", space="en.0001", lang="en", fingerprint=0x0123456789ABCDEF,
        text_hash=bytes(range(16)), short=False, title="Port opens", url="https://example.org/port",
        source="Example", published_at_ms=None, sketch=build_sketch(TEXT.split()),
        terms=(("harbour", 1.0), ("bolt", 0.4)), figures=(17,),
    )  # fmt: skip


def _binding() -> bindings.Binding:
    match = Match("pier", 4, "port", 3, 2, 0.93, "overlap")
    return bindings.Binding(7, 5, b"h" * 16, "quay", Outcome("duplicate", 2, match, True))


def _stored_values() -> Iterator[tuple[bytes, bytes]]:
    yield b"r", record_codec.encode_record(_record())
    yield b"b", bindings.encode_binding(_binding())
    yield b"p", bindings.encode_pointer("port", 3)


def _event_values() -> Iterator[bytes]:
    """One of each kind of value of the event repository."""
    yield b"c" + msgspec.json.encode(repository.ChangeRecord("fired", 5, "e", 2))
    yield b"e" + msgspec.json.encode(event("e", "Harbour bridge closed", ["a", "b"]))
    yield b"i" + msgspec.msgpack.encode(
        {"e": EventSummary("breaking", 5, 6), "f": EventSummary("closed", 5, 6, "e")}
    )
    yield b"o" + msgspec.msgpack.encode(
        EditorOverrides(1, (Mute("e", "story", (("bridge", 1.0),), 5),), {"e": ("f", 5)}, {"a": (7, "")})
    )


def _replies() -> Iterator[bytes]:
    command = hiredis.pack_command(("APPEND", "key", "value"))  # type: ignore[arg-type]  # wrong stub
    yield b"+OK\r\n:12\r\n$5\r\nhello\r\n"
    yield b"$-1\r\n*2\r\n$1\r\na\r\n:3\r\n-ERR no such key\r\n"
    yield b"%1\r\n+a\r\n~2\r\n:1\r\n:2\r\n#t\r\n,1.5\r\n"
    yield b"_\r\n(123456789012345678901234567890\r\n=7\r\ntxt:abc\r\n"
    yield command * PENDING_REPLIES
