"""What is in deploy/ fits the service: its settings, ports, probes, and the promises of the README."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
import yaml

from aggregator.analysis.pool.pool import WORKER_MEMORY_BYTES
from aggregator.runtime.exit_codes import EXIT_CONFIGURATION_ERROR
from aggregator.settings import Settings, load

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
AT_REST = 800 << 20  # all processes of a service: ARCHITECTURE, "Which process does what"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
MANIFESTS = [
    document
    for path in sorted((DEPLOY / "kubernetes").glob("*.yml"))
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]


def test_every_variable_that_is_set_is_a_setting() -> None:
    """An unknown one would stop the start."""
    texts = [
        path.read_text(encoding="utf-8")
        for path in [*DEPLOY.rglob("*"), ROOT / "docker-compose.yml"]
        if path.is_file()
    ]
    named = {name for text in texts for name in re.findall(r"\bAGGREGATOR_([A-Z_]+)", text)}

    assert named
    assert {name.lower() for name in named} <= set(Settings.__dataclass_fields__)


def test_compose_keeps_articles_and_asks_for_a_key() -> None:
    """Redis logs and never evicts; nothing but loopback is published; the roots are read-only where they can be."""
    services = COMPOSE["services"]
    command = " ".join(services["redis"]["command"])

    assert "--appendonly yes" in command and "--maxmemory-policy noeviction" in command
    assert all(port.startswith("127.0.0.1:") for s in services.values() for port in s.get("ports", ()))
    assert services["aggregator"]["read_only"] and services["aggregator"]["cap_drop"] == ["ALL"]
    assert ":?" in services["aggregator"]["environment"]["AGGREGATOR_BOOTSTRAP_KEY"]
    assert {name for name, s in services.items() if s.get("profiles")} == {"prometheus", "grafana"}
    mounted = [v.split(":")[0] for s in services.values() for v in s.get("volumes", ()) if v.startswith("./")]
    assert all((ROOT / path).exists() for path in mounted)


def test_the_manifests_probe_limit_and_protect() -> None:
    """Every container: three probes, limits, no privileges; two replicas of the service, one of which stays."""
    kinds = {(m["kind"], m["metadata"]["name"]): m for m in MANIFESTS}
    pods = [m["spec"]["template"]["spec"] for m in MANIFESTS if m["kind"] in ("Deployment", "StatefulSet")]
    service = kinds["Deployment", "aggregator"]["spec"]
    container = service["template"]["spec"]["containers"][0]

    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        for each in pod["containers"]:
            assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(each)
            assert "memory" in each["resources"]["limits"]
            assert each["securityContext"]["readOnlyRootFilesystem"]
    assert (service["replicas"], service["strategy"]["rollingUpdate"]["maxUnavailable"]) == (2, 0)
    assert kinds["PodDisruptionBudget", "aggregator"]["spec"]["minAvailable"] == 1
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert "noeviction" in kinds["ConfigMap", "aggregator-redis"]["data"]["redis.conf"]


def test_no_variable_of_kubernetes_is_taken_for_a_setting() -> None:
    """It tells every container of the services beside it, as ``AGGREGATOR_PORT=tcp://10.0.0.1:80``, unless told not to."""
    services = [m["metadata"]["name"] for m in MANIFESTS if m["kind"] == "Service"]
    told = {f"{name.upper().replace('-', '_')}_PORT": "tcp://10.0.0.1:80" for name in services}
    for manifest in MANIFESTS:
        if manifest["kind"] == "Deployment":
            pod = manifest["spec"]["template"]["spec"]
            load({} if pod.get("enableServiceLinks") is False else told)


def test_an_exploding_page_costs_no_container() -> None:
    """One page in a shared process and one beside it may take what they are given; the kernel ends all of a container at once."""
    (pod,) = (m["spec"]["template"]["spec"] for m in MANIFESTS if m["kind"] == "Deployment")
    limits = (
        pod["containers"][0]["resources"]["limits"]["memory"].removesuffix("i"),
        COMPOSE["services"]["aggregator"]["deploy"]["resources"]["limits"]["memory"].upper(),
    )

    assert all(
        limit.endswith("G") and int(limit[:-1]) << 30 > 2 * WORKER_MEMORY_BYTES + AT_REST for limit in limits
    )


def test_the_image_runs_as_nobody_special_and_holds_only_the_package() -> None:
    """Two stages, a number for a user (Kubernetes can check it), a health check, and no secret in the context."""
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
def test_prometheus_brings_the_key_that_metrics_asks_for(name: str) -> None:
    """Both deployments listen beyond loopback, so keys are asked for; neither opens /metrics to all."""
    (job,) = yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))["scrape_configs"]

    assert job["job_name"] == "aggregator" and job["authorization"]["credentials_file"]
    assert "OPEN_METRICS" not in str(MANIFESTS) + str(COMPOSE)


def test_nobody_but_the_service_reaches_the_store() -> None:
    """It asks for no password in either deployment; and it has a bound that it answers at, before the machine has none left."""
    services, networks = COMPOSE["services"], COMPOSE["networks"]
    (policy,) = (m["spec"] for m in MANIFESTS if m["kind"] == "NetworkPolicy" and "ingress" in m["spec"])

    assert networks["store"]["internal"]
    assert {name for name, s in services.items() if "store" in s.get("networks", ())} == {
        "aggregator",
        "redis",
    }
    assert services["redis"]["networks"] == ["store"] and "--maxmemory" in services["redis"]["command"]
    assert policy["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "aggregator-redis"}
    (from_,) = policy["ingress"][0]["from"]
    assert from_["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "aggregator"}


def test_the_service_reaches_no_private_address_but_the_store() -> None:
    """A second wall behind the one that webhooks have; the metadata of clouds are at 169.254.169.254."""
    (policy,) = (m["spec"] for m in MANIFESTS if m["kind"] == "NetworkPolicy" and "egress" in m["spec"])
    blocks = [to["ipBlock"] for rule in policy["egress"] for to in rule.get("to", ()) if "ipBlock" in to]
    open_ = {
        address
        for address in ("10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.31.0.1", "192.168.9.9", "fd00::1", "93.184.215.14")
        for block in blocks
        if ip_address(address) in ip_network(block["cidr"])
        and not any(ip_address(address) in ip_network(hole) for hole in block.get("except", ()))
    }  # fmt: skip

    assert open_ == {"93.184.215.14"}


def test_the_unit_reloads_and_leaves_in_time() -> None:
    """SIGHUP on reload; SIGTERM to the first process alone, with more than the ten seconds that it may take."""
    unit = (DEPLOY / "aggregator.service").read_text(encoding="utf-8")

    assert "ExecReload=/bin/kill -HUP $MAINPID" in unit and "KillMode=mixed" in unit
    assert int(re.findall(r"TimeoutStopSec=(\d+)", unit)[0]) > 10
    assert f"RestartPreventExitStatus={EXIT_CONFIGURATION_ERROR}" in unit


def test_the_unit_lets_analysis_step_back() -> None:
    """@resources forbids it; what comes later in the file counts."""
    unit = (DEPLOY / "aggregator.service").read_text(encoding="utf-8")
    filters = re.findall(r"^SystemCallFilter=(.+)$", unit, re.MULTILINE)

    assert filters.index("setpriority sched_setattr") > filters.index("~@privileged @resources")
