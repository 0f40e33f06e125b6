"""A real redis-server behind TLS, users and passwords: what works, and what is said when something does not fit."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import trustme
from redis import exceptions as driver

from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.base import Put, Transaction
from aggregator.store.errors import describe
from aggregator.store.redis import open_redis_store
from tests.support.cluster import free_ports
from tests.support.server_fixture import serving

pytestmark = pytest.mark.redis

# As docs/OPERATING.md recommends them.
RULES = "~* +@all -@dangerous +info +config|get"


@dataclass(frozen=True)
class Guarded:
    """Where it listens, and the certificates of its authority and of a stranger."""

    tls_port: int
    plain_port: int
    authority: Path
    stranger: Path

    def url(
        self, who: str = "crawler:secret", *, host: str = "localhost", authority: Path | None = None
    ) -> str:
        """The address under which the service would be told of it."""
        return f"rediss://{who}@{host}:{self.tls_port}/0?ssl_ca_certs={authority or self.authority}"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One server: TLS on one port, none on another, no access without a password."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed")
    place = tmp_path_factory.mktemp("guarded")
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(place / "authority.pem")
    stranger.cert_pem.write_to_path(place / "stranger.pem")
    issued = authority.issue_cert("localhost")
    issued.private_key_pem.write_to_path(place / "key.pem")
    issued.cert_chain_pems[0].write_to_path(place / "cert.pem")
    tls_port, plain_port = free_ports(2)
    options = {
        "port": plain_port, "bind": "127.0.0.1", "tls-port": tls_port, "tls-auth-clients": "no", "dir": place,
        "tls-cert-file": place / "cert.pem", "tls-key-file": place / "key.pem",
        "tls-ca-cert-file": place / "authority.pem", "appendonly": "yes", "maxmemory-policy": "noeviction",
        "requirepass": "of-the-owner",
    }  # fmt: skip
    lines = [f"{name} {value}" for name, value in options.items()]
    lines += [f"user crawler on >secret {RULES}", "user looker on >glass ~* &* +@read +info +ping"]
    (place / "redis.conf").write_text("\n".join(lines))
    with subprocess.Popen([binary, place / "redis.conf"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any("Ready to accept connections" in line for line in process.stdout)
        yield Guarded(tls_port, plain_port, place / "authority.pem", place / "stranger.pem")
        process.terminate()


@pytest.mark.parametrize("who", ["crawler:secret", ":of-the-owner"])
async def test_the_right_password_over_tls(guarded: Guarded, who: str) -> None:
    """A user with no more rights than it needs, and the server's one password."""
    store = open_redis_store(guarded.url(who))
    try:
        await store.check()
        assert await store.commit(Transaction((), (Put(b"{t}a", b"x"),))) == ()
        assert await store.read([b"{t}a"]) == [b"x"]
        assert (await store.info()).ready
    finally:
        await store.close()


REFUSED = {
    "wrong password": (lambda g: g.url("crawler:guess"), "refuses this user name or password"),
    "wrong password of the server": (lambda g: g.url(":guess"), "refuses this user name or password"),
    "no password": (lambda g: f"redis://localhost:{g.plain_port}", "refuses this user name or password"),
    "a user without scripts": (lambda g: g.url("looker:glass"), "allow EVAL and EVALSHA to this user"),
    "another authority": (lambda g: g.url(authority=g.stranger), "is not trusted (self-signed certificate"),
    "another host name": (lambda g: g.url(host="127.0.0.1"), "is not trusted (IP address mismatch"),
    "no such file": (
        lambda g: g.url(authority=Path("absent.pem")),
        "absent.pem (ssl_ca_certs) cannot be read",
    ),
    "no such option": (lambda g: g.url().replace("_certs", "_cert"), "options of redis-py behind ?"),
}


@pytest.mark.parametrize("mistake", REFUSED)
async def test_what_does_not_fit_is_named(guarded: Guarded, mistake: str) -> None:
    """A mistake that no waiting mends is one of the configuration, and never shows the password."""
    url_of, says = REFUSED[mistake]
    with pytest.raises(ConfigurationError) as error:
        store = open_redis_store(url_of(guarded))
        try:
            await store.check()
        finally:
            await store.close()

    assert says in str(error.value)
    assert not any(word in str(error.value) for word in ("secret", "guess", "glass", "owner"))


async def test_plain_where_tls_is_spoken(guarded: Guarded) -> None:
    """It looks like a server that is away; the sentence says what else it may be."""
    store = open_redis_store(f"redis://crawler:secret@localhost:{guarded.tls_port}")
    try:
        with pytest.raises(StoreUnavailable, match=r"TLS \(rediss://"):
            await store.check()
    finally:
        await store.close()


def test_tls_where_plain_is_spoken() -> None:
    """The greeting is never answered."""
    said = describe(driver.TimeoutError("Timeout connecting to server"), "localhost:6379")

    assert "took no connection in time" in said and "rediss://" in said


@pytest.mark.services
async def test_the_service_runs_on_it(guarded: Guarded) -> None:
    """The whole service, with all its commands, as a user who may do nothing dangerous."""
    async with serving(store_url=guarded.url(), log_level="ERROR") as url, aiohttp.ClientSession() as session:
        posted = await session.post(url + "/v1/articles", json={"id": "a", "text": "The ferry runs again."})
        found = await session.get(url + "/v1/articles/a")
        ready = await session.get(url + "/readyz")

    assert (posted.status, found.status, ready.status) == (201, 200, 200)
