"""The files in deploy/ agree with the settings, ports and probes of the service and with its README."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import yaml

from aggregator.analysis.pool.pool import WORKER_MEMORY_BYTES
from aggregator.cli import options
from aggregator.errors import EXIT_CONFIGURATION_ERROR, EXIT_UNAVAILABLE
from aggregator.settings import Settings
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.nginx import nginx
from tests.support.server_fixture import serving_alone

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
IDLE_BYTES = 800 << 20  # all processes of a service: ARCHITECTURE, "Which process does what"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))


def test_every_environment_variable_is_a_setting() -> None:
    """The service does not start with an unknown ``AGGREGATOR_`` variable."""
    texts = [
        path.read_text(encoding="utf-8")
        for path in [*DEPLOY.rglob("*"), ROOT / "docker-compose.yml"]
        if path.is_file()
    ]
    named = {name for text in texts for name in re.findall(r"\bAGGREGATOR_([A-Z_]+)", text)}

    assert named
    assert {name.lower() for name in named} <= set(Settings.__dataclass_fields__)


def test_compose_persists_articles_and_requires_a_key() -> None:
    """Redis logs and never evicts; ports are published on loopback only; the service has a read-only root."""
    services = COMPOSE["services"]
    command = " ".join(services["redis"]["command"])

    assert "--appendonly yes" in command and "--maxmemory-policy noeviction" in command
    exposed = {name: s["ports"] for name, s in services.items() if "ports" in s and name != "proxy"}
    assert all(port.startswith("127.0.0.1:") for ports in exposed.values() for port in ports)
    assert services["aggregator"]["read_only"] and services["aggregator"]["cap_drop"] == ["ALL"]
    assert ":?" in services["aggregator"]["environment"]["AGGREGATOR_BOOTSTRAP_KEY"]
    profiles = {name: s["profiles"] for name, s in services.items() if "profiles" in s}
    assert profiles == {"prometheus": ["monitoring"], "grafana": ["monitoring"], "proxy": ["tls"]}
    assert all("memory" in s["deploy"]["resources"]["limits"] for s in services.values())
    mounted = [v.split(":")[0] for s in services.values() for v in s.get("volumes", ()) if v.startswith("./")]
    assert all((ROOT / path).exists() for path in mounted)


def test_caddy_hides_what_nginx_of_the_guide_hides_and_may_be_trusted() -> None:
    """Readiness and the headers of a signed-in user; the address of a reader is that behind the proxy."""
    caddy = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    nginx = (ROOT / "docs/guides/production.md").read_text(encoding="utf-8")
    environment = COMPOSE["services"]["aggregator"]["environment"]

    assert "./deploy/Caddyfile:/etc/caddy/Caddyfile:ro" in COMPOSE["services"]["proxy"]["volumes"]
    assert "respond /readyz 404" in caddy and "location = /readyz { return 404; }" in nginx
    cleared = re.findall(r'proxy_set_header (X-Forwarded-\S+) "";', nginx)
    assert cleared == re.findall(r"header_up -(\S+)", caddy) != []
    assert environment["AGGREGATOR_TRUSTED_PROXIES"] == "${TRUSTED_PROXIES:-}"


def test_the_server_of_replicas_is_that_of_the_guide() -> None:
    """Except for the upstream: what it hides, passes on and limits."""
    guide = (ROOT / "docs/guides/production.md").read_text(encoding="utf-8")
    replicas = (DEPLOY / "nginx-replicas.conf").read_text(encoding="utf-8")
    server = guide.partition("  server {\n")[2].partition("```")[0]
    directives = {line.partition("#")[0].strip() for line in server.splitlines() if ";" in line}

    assert directives - {line.partition("#")[0].strip() for line in replicas.splitlines()} == {
        "proxy_pass http://127.0.0.1:8080;"
    }


@pytest.mark.services
def test_an_article_that_a_killed_replica_had_received_is_answered_by_the_other(
    valkey_url: str, tmp_path: Path, free_port: int
) -> None:
    """Then one replica alone answers all, and a new one joins it on the port of the old."""
    store = f"--store-url={valkey_url}"

    def post(number: int) -> int:
        body = json.dumps({"id": f"a{number}", "title": f"Tern {number} landed"}).encode()
        url, kind = f"http://127.0.0.1:{free_port}/v1/articles", {"Content-Type": "application/json"}
        with urlopen(Request(url, body, kind), timeout=HANG_LIMIT_S) as answer:
            return int(answer.status)

    with serving_alone(tmp_path, store) as (_, other), serving_alone(tmp_path, store) as (first, url):
        block = (DEPLOY / "nginx-replicas.conf").read_text(encoding="utf-8")
        for address, used in (("127.0.0.1:8080", url), ("127.0.0.1:8081", other)):
            block = block.replace(address, used.removeprefix("http://"))
        block = re.sub(r"ssl_certificate.*;", "", block).replace("8443 ssl", f"127.0.0.1:{free_port}")
        with (
            nginx(tmp_path, free_port, "return 404; server_name unused;", block),
            ThreadPoolExecutor() as pool,
        ):
            assert {post(0), post(1)} == {201}
            first.send_signal(signal.SIGSTOP)
            waiting = [pool.submit(post, number) for number in (2, 3)]
            wait(waiting, return_when=FIRST_COMPLETED)
            first.kill()
            assert {each.result(HANG_LIMIT_S) for each in waiting} == {201}
            assert {post(number) for number in range(4, 8)} == {201}
            with serving_alone(tmp_path, store, f"--port={url.rpartition(':')[2]}") as (_, again):
                assert again == url
                assert {post(number) for number in range(8, 12)} == {201}


def test_prometheus_can_read_its_key() -> None:
    """It runs as nobody, and Compose mounts a file with the mode that it has on the host."""
    guide = (ROOT / "docs/guides/production.md").read_text(encoding="utf-8")

    assert re.search(r"mkdir -m 700 -p secrets\b", guide)
    assert "chmod 644 secrets/bootstrap_key" in guide and "chmod 600" not in guide


def test_the_unit_of_the_guide_is_upgraded_in_its_own_environment() -> None:
    """Another environment than that of the unit would not be started."""
    unit = (DEPLOY / "aggregator.service").read_text(encoding="utf-8")
    guide = (ROOT / "docs/guides/upgrading.md").read_text(encoding="utf-8")
    production = (ROOT / "docs/guides/production.md").read_text(encoding="utf-8")
    (environment,) = re.findall(r"^ExecStart=(\S+)/bin/aggregator serve$", unit, re.MULTILINE)

    install = f"{environment}/bin/pip install ./packages/client ."
    assert all(install in text for text in (unit, guide, production))
    assert f"{environment}/bin/aggregator restore" in guide


@pytest.mark.parametrize("name", ["README.md", "docker-compose.yml"])
def test_the_compose_command_is_printed_with_the_variable_that_it_needs(name: str) -> None:
    """Compose refuses to start without the key, so the paragraph with the command sets it."""
    paragraphs = (ROOT / name).read_text(encoding="utf-8").split("\n\n")
    commands = [text for text in paragraphs if "docker compose up" in text]

    assert commands
    assert all("export AGGREGATOR_BOOTSTRAP_KEY=" in text for text in commands)


def test_memory_limits_leave_room_for_two_exploding_pages() -> None:
    """Two analysis processes may reach their memory limit without a kill of the container."""
    values = yaml.safe_load((DEPLOY / "helm" / "aggregator" / "values.yaml").read_text(encoding="utf-8"))
    limits = (
        values["resources"]["limits"]["memory"].removesuffix("i"),
        COMPOSE["services"]["aggregator"]["deploy"]["resources"]["limits"]["memory"].upper(),
    )

    assert all(
        limit.endswith("G") and int(limit[:-1]) << 30 > 2 * WORKER_MEMORY_BYTES + IDLE_BYTES
        for limit in limits
    )


def test_the_image_runs_unprivileged_and_contains_only_the_package() -> None:
    """Two stages, a numeric user (Kubernetes can check it), a health check, no secret in the context."""
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    context = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()

    assert sum(line.startswith("FROM ") for line in lines) == 2
    assert "USER 10001" in lines and any(line.startswith("HEALTHCHECK") for line in lines)
    copied = {
        name.removeprefix("./")
        for line in lines
        if line.startswith("COPY ") and "--from" not in line
        for name in line.split()[1:-1]
    }
    assert context[0] == "*" and {line[1:] for line in context if line[0] == "!"} == copied
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.parametrize("name", ["prometheus.yml", "prometheus-kubernetes.yml"])
def test_prometheus_sends_the_key_that_metrics_requires(name: str) -> None:
    """Both deployments listen beyond loopback, so keys are enforced; neither makes /metrics public."""
    (job,) = yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))["scrape_configs"]

    assert job["job_name"] == "aggregator" and job["authorization"]["credentials_file"]
    assert "METRICS_PUBLIC" not in str(COMPOSE)


def test_only_the_service_reaches_the_store() -> None:
    """The store requires no password; its maxmemory limits its size."""
    services, networks = COMPOSE["services"], COMPOSE["networks"]

    assert networks["store"]["internal"]
    assert {name for name, s in services.items() if "store" in s.get("networks", ())} == {
        "aggregator",
        "backup",
        "redis",
    }
    assert services["redis"]["networks"] == ["store"] and "--maxmemory" in services["redis"]["command"]


def test_scheduled_backups_use_the_command_and_the_store_of_the_service() -> None:
    """The same user and settings."""
    unit = (DEPLOY / "aggregator-backup.service").read_text(encoding="utf-8")
    service = (DEPLOY / "aggregator.service").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=\S+/aggregator (.+)$", unit, re.MULTILINE)

    assert options.build_parser().parse_args(command.split()).command == "backup"
    looped = re.search(r"aggregator (backup[^;]+);", COMPOSE["services"]["backup"]["entrypoint"][-1])
    assert looped and options.build_parser().parse_args(looped[1].split()).command == "backup"
    shared = "REDIS_URL", COMPOSE["services"]["aggregator"]["environment"]["REDIS_URL"]
    assert shared in COMPOSE["services"]["backup"]["environment"].items()
    assert "DynamicUser=yes" in unit and "User=aggregator\n" in unit and "DynamicUser=yes" in service
    for line in ("AGGREGATOR_DATA_DIR=/var/lib/aggregator", "EnvironmentFile=-/etc/aggregator.env"):
        assert line in unit and line in service


def test_the_unit_stops_in_time() -> None:
    """SIGTERM to the main process only, with a timeout of more than its ten seconds."""
    unit = (DEPLOY / "aggregator.service").read_text(encoding="utf-8")

    assert "KillMode=mixed" in unit
    assert int(re.findall(r"TimeoutStopSec=(\d+)", unit)[0]) > 10
    assert f"RestartPreventExitStatus={EXIT_CONFIGURATION_ERROR}" in unit


def test_every_deployment_starts_a_service_again_whose_store_was_unavailable() -> None:
    """Without a limit on the number of attempts."""
    unit = (DEPLOY / "aggregator.service").read_text(encoding="utf-8")
    (prevented,) = re.findall(r"^RestartPreventExitStatus=(.+)$", unit, re.MULTILINE)

    assert "Restart=on-failure" in unit.splitlines() and "StartLimitIntervalSec=0" in unit.splitlines()
    assert str(EXIT_UNAVAILABLE) not in prevented.split()
    assert {service["restart"] for service in COMPOSE["services"].values()} == {"unless-stopped"}


def test_the_unit_allows_lowering_priorities() -> None:
    """``~@resources`` forbids it, so a later line has to allow it."""
    unit = (DEPLOY / "aggregator.service").read_text(encoding="utf-8")
    filters = re.findall(r"^SystemCallFilter=(.+)$", unit, re.MULTILINE)

    assert filters.index("setpriority") > filters.index("~@privileged @resources")


@pytest.mark.services
@pytest.mark.parametrize("host", ["127.0.0.1", "::"])
def test_the_health_check_follows_the_settings(host: str, tmp_path: Path, free_port: int) -> None:
    """Of a service on another port, or on all addresses, also of IPv4; without one it fails."""
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    (check,) = (json.loads(line.strip()[4:]) for line in lines if line.startswith("  CMD ["))
    if host == "::" and not socket.has_dualstack_ipv6():
        pytest.skip("needs IPv6")
    environment = os.environ | {
        "AGGREGATOR_HOST": host, "AGGREGATOR_PORT": str(free_port), "AGGREGATOR_STORE_URL": "memory",
        "AGGREGATOR_BOOTSTRAP_KEY": "k" * 32, "AGGREGATOR_DATA_DIR": str(tmp_path),
    }  # fmt: skip
    healthy = partial(
        subprocess.call, [sys.executable, DEPLOY / Path(check[1]).name], env=environment, timeout=HANG_LIMIT_S
    )
    assert healthy() == 1
    service = [sys.executable, "-m", "aggregator", "serve"]
    with subprocess.Popen(service, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and any("ready on" in line for line in process.stdout)
            assert healthy() == 0
            with urlopen(f"http://127.0.0.1:{free_port}/healthz") as answer:
                assert answer.status == 200
        finally:
            process.terminate()
