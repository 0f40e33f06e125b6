"""Article ids: given by the client, or derived from the URL or the content.

Scheme, user, default port, trailing slash, letter case of the host, tracking parameters, dot segments and
repeated slashes of a URL are removed, and its fragment unless it is a route ("#/", "#!"); every other
parameter counts, in any order. Nothing is fetched. What is left passes a proxy that normalizes paths.

    >>> canonical_url("HTTPS://Example.org:443/a/./b/?utm_source=x&q=1#top")
    'example.org/a/b?q=1'
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from operator import itemgetter
from urllib.parse import SplitResult, urlsplit

import xxhash

from aggregator.analysis.text.normalization import nfkc
from aggregator.errors import InvalidInput

MAX_ID_BYTES = 512
MAX_URL_CHARS = 4096
# Characters of a text that are normalized, unless it is ASCII, since the id is computed on the event loop.
NORMALIZED_CHARS = 5_000

_DEFAULT_PORTS = {"http": 80, "https": 443}
_FORBIDDEN_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")
# Names that courlan takes for tracking, but that name an article in ``?cid=1042``: a page that keeps one has
# two ids at worst, and its second post is a duplicate; two pages under one id replace each other.
_IDENTIFIERS = frozenset({"cid", "eid", "uid"})
# The page of a site or of one of its languages: feeds without addresses of their own link to it.
_FRONT_PAGE = re.compile(r"[^/?#]+(?:/[a-z]{2}(?:[-_][A-Za-z]{2})?)?(?:/(?:index|home|default)\.\w{3,5})?")
_ESCAPED_AMPERSAND = re.compile("^(?:amp;)+")  # of "&amp;", taken from a page as it is
_VALID_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?|\[[0-9a-f:.]+\]")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_LITERAL_BYTES = frozenset(b"!$&'()*+,;=:@/?%") | _UNRESERVED_BYTES
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_ESCAPES_NEEDED = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@/?]*")  # no escapes in it, none needed


def canonical_url(url: str) -> str:
    """The part of ``url`` that identifies its page: ASCII, without scheme. Idempotent.

    Raises InvalidInput(field="url") for anything but an absolute http or https URL.
    """
    parts, port = _parse_url(url)
    host = _normalize_host(parts)
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        host = f"{host}:{port}"
    path, query, route = _resolve(parts.path), _significant_params(parts.query), ""
    if parts.fragment[:1] in ("/", "!"):
        kind, (place, _, state) = parts.fragment[0].strip("/"), parts.fragment.lstrip("/!").partition("?")
        place, state = _resolve("/" + place), _significant_params(state)
        route = f"#{kind}{place or '/'}" + ("?" + state if state else "") if place or state else ""
    return host + path + ("?" + query if query else "") + route


def derive_id(given_id: str | None, url: str, title: str, text: str) -> str:
    """Return the id of an article: the given one, else its canonical URL, else a hash of its content.

    A canonical URL longer than ``MAX_ID_BYTES`` becomes "url:" + its hash; content becomes "content:" + the
    hash of normalized title and text, and of the site if the URL is but its front page. Raises
    InvalidInput(field="id" or "url").
    """
    if given_id is not None:
        return validate_id(given_id)
    canonical = canonical_url(url) if url else ""
    if canonical and not _FRONT_PAGE.fullmatch(canonical):
        return canonical if len(canonical) <= MAX_ID_BYTES else "url:" + _hash(canonical)
    site = canonical.partition("/")[0] + "\n" if canonical else ""
    return "content:" + _hash(f"{site}{_normalize_content(title)}\n{_normalize_content(text)}")


def validate_id(id_: str, field: str = "id") -> str:
    """Return ``id_``. Raises InvalidInput(field=field) if it is blank, too long or has controls."""
    problem = ""
    size = len(id_.encode("utf-8", "surrogatepass"))
    if not id_.strip():
        problem = "an id needs at least one visible character"
    elif not id_.isprintable() and _SURROGATE.search(id_):
        problem = "an id must be valid Unicode, not half of a surrogate pair"
    elif size > MAX_ID_BYTES:
        problem = f"{size} bytes are too long; an id has at most {MAX_ID_BYTES}"
    elif not id_.isprintable() and _has_control_characters(id_):
        problem = "control characters and line breaks are not allowed in an id"
    if problem:
        reason = "too_long" if size > MAX_ID_BYTES else "invalid"
        raise InvalidInput(f"{field}: {problem}.", field=field, reason=reason)
    return id_


def _parse_url(url: str) -> tuple[SplitResult, int | None]:
    url = url.strip()
    if len(url) > MAX_URL_CHARS:
        raise _invalid_url(f"an address has at most {MAX_URL_CHARS} characters")
    if not url.isprintable() and _has_control_characters(url):
        raise _invalid_url("control characters and line breaks are not allowed in an address")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _invalid_url(f"this is not an address ({error})") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise _invalid_url("expected an absolute address that starts with http:// or https://")
    return parts, port


def _has_control_characters(text: str) -> bool:
    return any(unicodedata.category(char) in _FORBIDDEN_CATEGORIES for char in text)


def _normalize_host(parts: SplitResult) -> str:
    host = unicodedata.normalize("NFKC", parts.hostname or "").lower()
    if ":" in host:
        host = f"[{host}]"
    elif not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            raise _invalid_url("its host name is not a valid international domain name") from None
    # Browsers read a backslash as a slash, so they would open another host than the one parsed here.
    if "\\" in parts.netloc or not _VALID_HOST.fullmatch(host):
        raise _invalid_url("it has no valid host name")
    return host.rstrip(".")


def _significant_params(query: str) -> str:
    """The parameters that do not track the reader, sorted by name; equal names keep their order."""
    if not query:
        return ""
    kept = []
    for written in _normalize_escapes(query).replace("/", "%2F").split("&"):
        part = _ESCAPED_AMPERSAND.sub("", written) if written.startswith("amp;") else written
        name, _, value = part.partition("=")
        if part and not (_tracks(name.lower()) and not (value.isdigit() and name.lower() in _IDENTIFIERS)):
            kept.append((name, part))
    return "&".join(part for _, part in sorted(kept, key=itemgetter(0)))


@lru_cache(maxsize=1024)
def _tracks(name: str) -> bool:
    """Whether a parameter tracks the reader, by courlan; ``sourcecode`` is not ``source``."""
    from courlan.clean import TRACKERS_RE  # 0.1 s and 4 MB, for a process that reads such addresses

    whole = re.compile(f"(?:{TRACKERS_RE.pattern})(?:(?<=_)|(?![a-z]))")
    return name == "gclsrc" or whole.search(name) is not None


def _resolve(path: str) -> str:
    """``path`` normalized, without dot segments (RFC 3986, 5.2.4), empty segments and final slash."""
    path = _normalize_escapes(path)
    if "//" not in path and "/." not in path:  # nearly always
        return path.rstrip("/")
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    return "".join("/" + segment for segment in kept)


def _normalize_escapes(part: str) -> str:
    """``part`` with unreserved characters unescaped and all other escapes as %XX in upper case."""
    if _NO_ESCAPES_NEEDED.fullmatch(part):
        return part
    data = _ESCAPE.sub(_normalize_escape, part).encode("utf-8", "surrogatepass")
    quoted = "".join(chr(byte) if byte in _LITERAL_BYTES else f"%{byte:02X}" for byte in data)
    return re.sub(r"%(?![0-9A-F]{2})", "%25", quoted)


def _normalize_escape(match: re.Match[str]) -> str:
    byte = int(match[1], 16)
    return chr(byte) if byte in _UNRESERVED_BYTES else match[0].upper()


def _normalize_content(text: str) -> str:
    head = len(text) if text.isascii() else NORMALIZED_CHARS
    return " ".join(nfkc(text[:head]).casefold().split()) + text[head:]


def _hash(text: str) -> str:
    return xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))


def _invalid_url(reason: str) -> InvalidInput:
    return InvalidInput(f"url: {reason}.", field="url")
