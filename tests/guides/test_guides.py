"""Every guide is executed against a service, as far as this machine allows (``blocks.py``)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from tests.guides.blocks import missing_line, parse_blocks, split_output, write_script
from tests.support.cluster import free_ports
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving_alone

ROOT = Path(__file__).resolve().parents[2]
GUIDES = {path.stem: path for path in sorted((ROOT / "docs" / "guides").glob("*.md"))}
MAX_WORDS, MAX_PRODUCTION_WORDS = 600, 700
SERVICE, SITE, REDIS, TLS = "http://127.0.0.1:8080", "8000", "6379", "8443"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a service in memory that may call webhooks on this machine."""
    directory = tmp_path_factory.mktemp("service")
    with serving_alone(directory, "--store-url=memory", "--webhook-allow-private-addresses") as (_, url):
        yield url


@dataclass
class Channel:
    """Stand-in for a channel of Slack: its address and the messages that it got."""

    url: str
    messages: list[bytes] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def slack() -> Iterator[Channel]:
    """A server on this machine that accepts messages."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            channel.messages.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            channel.arrived.set()

        def log_message(self, format: str, *arguments: object) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        channel = Channel(f"http://127.0.0.1:{server.server_port}/services")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield channel
        server.shutdown()
        thread.join()


@pytest.mark.services
@pytest.mark.parametrize("name", GUIDES)
def test_the_guide_works(name: str, service: str, slack: Channel, tmp_path: Path) -> None:
    """Every block succeeds and prints what the guide says."""
    text = GUIDES[name].read_text(encoding="utf-8")
    missing = [tool for tool in ("redis-server", "nginx") if f"\n{tool} " in text and not shutil.which(tool)]
    if missing:
        pytest.skip(f"{missing} are not installed")
    ports = dict(zip((SITE, REDIS, TLS, SERVICE.rpartition(":")[2]), map(str, free_ports(4)), strict=True))
    text = text if "\naggregator serve" in text else text.replace(SERVICE, service)
    text = re.sub(rf"\b({'|'.join(ports)})\b", lambda found: ports[found[0]], text)
    blocks = parse_blocks(text)
    script = write_script(blocks, tmp_path)

    done = subprocess.run(
        ["bash", script],
        cwd=tmp_path,
        env=environment(SLACK_URL=slack.url),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-3000:]
    printed = split_output(done.stdout)
    for number, block in enumerate(blocks):
        if block.language == "text" and blocks[number - 1].is_run:
            assert missing_line(block.text, printed[number - 1]) is None, "\n".join(printed[number - 1])
    if name == "slack":
        assert slack.arrived.wait(HANG_LIMIT_S)
        assert "text" in json.loads(slack.messages[0])


def environment(**variables: str) -> dict[str, str]:
    """That of this process without settings of the service, with its commands first on the path."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("AGGREGATOR_", "REDIS_"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**inherited, "PATH": path, **variables}


@pytest.mark.parametrize("name", GUIDES)
def test_the_guide_is_short_and_names_existing_files(name: str) -> None:
    """It has as many words as CONTRIBUTING.md allows; files of deploy/ exist; the index links to it."""
    text = GUIDES[name].read_text(encoding="utf-8")
    files = re.findall(r"\bdeploy/[\w./-]*\w", text)

    assert len(text.split()) <= (MAX_PRODUCTION_WORDS if name == "production" else MAX_WORDS)
    assert all((ROOT / file).exists() for file in files)
    assert name == "index" or f"({name}.md)" in GUIDES["index"].read_text(encoding="utf-8")


def test_the_compose_guide_uses_names_of_the_compose_file() -> None:
    """Services, profiles and variables."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    text = GUIDES["production"].read_text(encoding="utf-8")

    assert set(re.findall(r"docker compose exec (\w+)", text)) <= set(compose["services"])
    profiles = {name for service in compose["services"].values() for name in service.get("profiles", ())}
    assert set(re.findall(r"--profile (\w+)", text)) == profiles == {"monitoring", "tls"}
    variables = ("REDIS_MAXMEMORY", "AGGREGATOR_BOOTSTRAP_KEY", "PUBLIC_HOST")
    assert all(name in json.dumps(compose) for name in variables)


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """Unit files by `systemd-analyze verify`, with a program that exists."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    units = []
    for unit in sorted((ROOT / "deploy").glob("aggregator*.[st]*[er]")):
        text = unit.read_text(encoding="utf-8").replace("/opt/aggregator/bin/aggregator", "/bin/true")
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
        units.append(str(tmp_path / unit.name))

    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)

    assert len(units) == 3
    assert (done.returncode, done.stderr) == (0, "")
