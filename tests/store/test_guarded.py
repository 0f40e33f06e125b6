"""redis-server with TLS, users and passwords: valid access, and error messages for each mistake."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import trustme
from redis import exceptions as driver

from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.base import Put, Transaction
from aggregator.store.diagnostics import describe
from tests.support.cluster import free_ports
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving
from tests.support.stores import open_patient_store

pytestmark = pytest.mark.redis

# As docs/operating.md recommends them.
RULES = "~* +@all -@dangerous +info +config|get"


@dataclass(frozen=True)
class Guarded:
    """Ports of the server, and the certificates of its authority and of an unrelated one."""

    tls_port: int
    plain_port: int
    authority: Path
    other_authority: Path

    def url(
        self, user: str = "crawler:secret", *, host: str = "localhost", authority: Path | None = None
    ) -> str:
        """The value of store_url for this server."""
        return f"rediss://{user}@{host}:{self.tls_port}/0?ssl_ca_certs={authority or self.authority}"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A server with TLS on one port, without it on another, and no access without a password."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed")
    directory = tmp_path_factory.mktemp("guarded")
    authority, other_authority = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(directory / "authority.pem")
    other_authority.cert_pem.write_to_path(directory / "other_authority.pem")
    issued = authority.issue_cert("localhost")
    issued.private_key_pem.write_to_path(directory / "key.pem")
    issued.cert_chain_pems[0].write_to_path(directory / "cert.pem")
    tls_port, plain_port = free_ports(2)
    options = {
        "port": plain_port,
        "bind": "127.0.0.1",
        "tls-port": tls_port,
        "tls-auth-clients": "no",
        "dir": directory,
        "tls-cert-file": directory / "cert.pem",
        "tls-key-file": directory / "key.pem",
        "tls-ca-cert-file": directory / "authority.pem",
        "appendonly": "yes",
        "maxmemory-policy": "noeviction",
        "requirepass": "of-the-owner",
    }
    lines = [f"{name} {value}" for name, value in options.items()]
    lines += [f"user crawler on >secret {RULES}", "user looker on >glass ~* &* +@read +info +ping"]
    (directory / "redis.conf").write_text("\n".join(lines))
    with subprocess.Popen([binary, directory / "redis.conf"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any("Ready to accept connections" in line for line in process.stdout)
        yield Guarded(tls_port, plain_port, directory / "authority.pem", directory / "other_authority.pem")
        process.terminate()


@pytest.mark.parametrize("user", ["crawler:secret", ":of-the-owner"])
async def test_the_correct_password_over_tls(guarded: Guarded, user: str) -> None:
    """A user with the minimum of permissions, and the default user."""
    store = open_patient_store(guarded.url(user))
    try:
        await store.check()
        assert await store.commit(Transaction((), (Put(b"{t}a", b"x"),))) == ()
        assert await store.read([b"{t}a"]) == [b"x"]
        assert (await store.info()).ready
    finally:
        await store.close()


REJECTED: dict[str, tuple[Callable[[Guarded], str], str]] = {
    "wrong password": (lambda g: g.url("crawler:guess"), "rejects this user name or password"),
    "wrong password of the default user": (
        lambda g: g.url(":guess"),
        "rejects this user name or password",
    ),
    "no password": (lambda g: f"redis://localhost:{g.plain_port}", "rejects this user name or password"),
    "a user without scripts": (lambda g: g.url("looker:glass"), "allow EVAL and EVALSHA to this user"),
    "another authority": (
        lambda g: g.url(authority=g.other_authority),
        "is not trusted (self-signed certificate",
    ),
    "another host name": (lambda g: g.url(host="127.0.0.1"), "is not trusted (IP address mismatch"),
    "no such file": (
        lambda g: g.url(authority=Path("absent.pem")),
        "absent.pem (ssl_ca_certs) cannot be read",
    ),
    "no such option": (lambda g: g.url().replace("_certs", "_cert"), "there is no option 'ssl_ca_cert';"),
}


@pytest.mark.parametrize("mistake", REJECTED)
async def test_a_mistake_in_the_url_is_a_configuration_error(guarded: Guarded, mistake: str) -> None:
    """The message names the mistake and never contains the password."""
    url_of, message = REJECTED[mistake]
    with pytest.raises(ConfigurationError) as error:
        store = open_patient_store(url_of(guarded))
        try:
            await store.check()
        finally:
            await store.close()

    assert message in str(error.value)
    assert not any(word in str(error.value) for word in ("secret", "guess", "glass", "owner"))


async def test_plain_connection_to_a_tls_port(guarded: Guarded) -> None:
    """It looks like an unreachable server; the message mentions TLS."""
    store = open_patient_store(f"redis://crawler:secret@localhost:{guarded.tls_port}")
    try:
        with pytest.raises(StoreUnavailable, match=r"TLS \(rediss://"):
            await store.check()
    finally:
        await store.close()


def test_tls_connection_to_a_plain_port() -> None:
    """The TLS handshake times out."""
    message = describe(driver.TimeoutError("Timeout connecting to server"), "localhost:6379")

    assert "did not accept a connection in time" in message and "rediss://" in message


@pytest.mark.services
async def test_the_service_runs_on_a_guarded_server(guarded: Guarded) -> None:
    """The whole service works as a user without dangerous permissions."""
    async with serving(store_url=guarded.url(), log_level="ERROR") as url, aiohttp.ClientSession() as session:
        async with asyncio.timeout(HANG_LIMIT_S):
            while (await session.get(url + "/readyz")).status != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        posted = await session.post(url + "/v1/articles", json={"id": "a", "text": "The ferry runs again."})
        found = await session.get(url + "/v1/articles/a")
        ready = await session.get(url + "/readyz")

    assert (posted.status, found.status, ready.status) == (201, 200, 200)
