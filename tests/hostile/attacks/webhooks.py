"""Server-side request forgery through webhooks, and what webhooks disclose."""

from __future__ import annotations

import asyncio
import json

from tests.hostile.attacks.running import Target

HOSTS = (
    "127.0.0.1", "127.1", "127.0.1", "0", "0.0.0.0", "2130706433", "0x7f000001", "0x7f.1", "017700000001",
    "0177.0.0.1",
    "127.0.0.1.", "127.000.000.001", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    "[::127.0.0.1]", "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fe80::1]", "[fe80::1%25lo]",
    "[fc00::1]", "[fec0::1]", "[ff02::1]",
    "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.100.100.200", "192.0.0.192",
    "198.18.0.1", "192.0.2.1", "192.88.99.1",
    "240.0.0.1", "255.255.255.255", "224.0.0.1", "localhost", "LOCALHOST", "localhost.", "sub.localhost",
    "\u2460\u2461\u2466.0.0.1",
    "\uff11\uff12\uff17.0.0.1", "127\u30020.0.1", "[3fff::1]", "[5f00::1]", "[100::1]", "[2001:db8::1]",
    "metadata.google.internal",
)  # fmt: skip
URLS = (
    "http://{listener}/", "https://{listener}/", "https://localhost:{port}/", "https://user@{listener}/",
    "https://example.com@{listener}/",
    "https://{listener}#@example.com/", "https://example.com\\@{listener}/", "//{listener}/",
    "HTTPS://{listener}", "file:///etc/passwd",
    "gopher://{listener}/", "ftp://{listener}/", "unix:///tmp/x", "https:/{listener}/", "https:{listener}",
    "https://{listener}\t/", "https://\n{listener}/",
    "https://{listener}/\r\nX: y", "https://[::ffff:127.0.0.1]:{port}/", "https://0x7f000001:{port}/",
    "https://127.1:{port}/", "https://{hostname}:{port}/",
    "https://2130706433:{port}/", "https://0:{port}/", "https://[::]:{port}/",
    "https://%31%32%37.0.0.1:{port}/", "https://127.0.0.1%2f:{port}/",
)  # fmt: skip


async def forgery(target: Target) -> None:
    """No address form reaches a listener on this machine; the caller learns nothing of it."""
    reached: list[bytes] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(accept, "0.0.0.0", 0)
    port = server.sockets[0].getsockname()[1]
    values = {"listener": f"127.0.0.1:{port}", "port": port, "hostname": "localhost"}
    urls = [f"https://{host}:{port}/" for host in HOSTS] + [url.format(**values) for url in URLS]
    refused = called = 0
    for url in urls:
        status, _, answer = await target.request("POST", "/v1/webhooks", "editor", json={"url": url})
        refused += status == 400
        if status in (200, 201):
            hook = json.loads(answer)["id"]
            called += 1
            status, _, answer = await target.request(
                "POST", f"/v1/webhooks/{hook}/actions", "editor", json={"action": "ping"}
            )
            await target.request("DELETE", f"/v1/webhooks/{hook}", "editor")
            is_blocked = status == 409 and (
                b"must not reach" in answer
                or b"no such host" in answer
                or b"failure in name" in answer.lower()
            )
            target.findings.check("webhook addresses", is_blocked, f"{url}: {status} {answer[:200]!r}")
        else:
            target.findings.check("webhook addresses", status == 400, f"{url}: {status}")
    target.findings.check("webhook addresses", not reached, f"reached the listener: {reached}")
    target.findings.notes["webhook addresses"] = (
        f"{refused} refused, {called} refused at the call, {len(reached)} connections"
    )
    server.close()


async def disclosure(target: Target) -> None:
    """A webhook's secret is returned to its owner only; one key gets half of the webhooks and desks."""
    check = target.findings.check
    _, _, answer = await target.request(
        "POST", "/v1/webhooks", "editor", json={"url": "https://hooks.example/a"}
    )
    hook = json.loads(answer)
    secret = hook["secret"].encode()
    for caller in ("admin", "reader", "crawler", "bound", "no key", "wrong"):
        for method, path in (
            ("GET", "/v1/webhooks"),
            ("GET", f"/v1/webhooks/{hook['id']}"),
            ("POST", "/v1/webhooks"),
            ("GET", "/health"),
            ("GET", "/metrics"),
        ):
            _, _, answer = await target.request(
                method, path, caller, json={"url": "https://hooks.example/a"} if method == "POST" else None
            )
            check("webhook secrets", secret not in answer, f"{method} {path} {caller}")
    check("webhook secrets", secret not in target.log.read_bytes(), "the secret is in the log")
    for path, body, number in (
        ("/v1/webhooks", {"url": "https://hooks.example/%d"}, 60),
        ("/v1/desks", {"name": "%d", "terms": ["x"]}, 520),
    ):
        texts = [json.dumps(body).replace("%d", str(i)).encode() for i in range(number)]
        statuses = [(await target.request("POST", path, "editor", data=text))[0] for text in texts]
        other, _, _ = await target.request("POST", path, "admin", data=json.dumps(body).encode())
        check(
            "shares of one key",
            statuses[-1] == 409 and other in (200, 201),
            f"{path}: {statuses.count(201)} created, another key: {other}",
        )
