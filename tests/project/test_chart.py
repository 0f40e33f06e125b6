"""Helm chart: rendered by Helm itself, valid for Kubernetes, with probes, limits and network policies."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from aggregator.cli import options
from aggregator.settings import load

helm = pytest.importorskip("helm_python", reason="needs helm-python-sdk (scripts/setup dev)")
kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="needs scripts/setup dev")

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm" / "aggregator"
ALERTS = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
PLACED = {
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"pool": "news"},
    "tolerations": [{"key": "news", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "arch", "operator": "In", "values": ["arm64"]}]}]}}},
    "priorityClassName": "high",
    "storageClass": "fast",
    "serviceAccount": {"create": False, "name": "mine"},
    "podAnnotations": {"sidecar": "no"},
    "podLabels": {"team": "desk"},
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca"}],
    "settings": {"port": 9000, "host": "::"},
}  # fmt: skip
MONITORING = {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}}
Manifest = dict[str, Any]


def render(**values: object) -> dict[tuple[str, str], Manifest]:
    """The objects of the chart by kind and name; Helm checks the values against values.schema.json."""
    with helm.Chart.load(str(CHART)) as chart:
        files = chart.render(values, name="aggregator", namespace="news")
    return by_name(text for name, text in files.items() if not name.endswith(".txt"))


def by_name(texts: Any) -> dict[tuple[str, str], Manifest]:
    """Documents of YAML texts by kind and name."""
    documents = [document for text in texts for document in yaml.safe_load_all(text) if document]
    found = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    assert len(found) == len(documents), "two objects have the same name"
    return found


def pods(rendered: dict[tuple[str, str], Manifest]) -> list[Manifest]:
    """Specifications of the pods that run all the time."""
    return [
        manifest["spec"]["template"]["spec"]
        for (kind, _), manifest in rendered.items()
        if kind in ("Deployment", "StatefulSet")
    ]


def test_containers_have_probes_limits_and_no_privileges() -> None:
    """Every container has three probes and limits; at least one of two replicas stays during a rollout."""
    rendered = render()
    service = rendered["Deployment", "aggregator"]["spec"]
    container = service["template"]["spec"]["containers"][0]

    for pod in pods(rendered):
        assert pod["securityContext"]["runAsNonRoot"] and pod.get("restartPolicy", "Always") == "Always"
        for spec in pod["containers"]:
            assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(spec)
            assert "memory" in spec["resources"]["limits"]
            assert spec["securityContext"]["readOnlyRootFilesystem"]
    assert (service["replicas"], service["strategy"]["rollingUpdate"]["maxUnavailable"]) == (2, 0)
    assert rendered["PodDisruptionBudget", "aggregator"]["spec"]["minAvailable"] == 1
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert "noeviction" in rendered["ConfigMap", "aggregator-redis"]["data"]["redis.conf"]
    assert "METRICS_PUBLIC" not in str(rendered)


def test_service_variables_of_kubernetes_are_not_read_as_settings() -> None:
    """Kubernetes sets ``AGGREGATOR_PORT=tcp://10.0.0.1:80`` unless service links are disabled."""
    jobs = [job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
            for (kind, _), job in render().items() if kind == "CronJob"]  # fmt: skip
    service = render()["Deployment", "aggregator"]["spec"]["template"]["spec"]

    assert jobs and all(pod["enableServiceLinks"] is False for pod in (service, *jobs))


def test_the_store_is_reached_by_the_service_and_its_backup_alone() -> None:
    """It requires no password. The service reaches no private address, as that of a cloud's metadata."""
    policies = [m["spec"] for (kind, _), m in render().items() if kind == "NetworkPolicy"]
    (store,) = (policy for policy in policies if "ingress" in policy)
    (service,) = (policy for policy in policies if "egress" in policy)
    blocks = [to["ipBlock"] for rule in service["egress"] for to in rule.get("to", ()) if "ipBlock" in to]
    addresses = (
        "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.31.0.1", "192.168.9.9", "fd00::1",
        "93.184.215.14",
    )  # fmt: skip
    reachable = {
        address
        for address in addresses
        for block in blocks
        if ip_address(address) in ip_network(block["cidr"])
        and not any(ip_address(address) in ip_network(excluded) for excluded in block.get("except", ()))
    }

    assert store["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "aggregator-redis"}
    assert [from_["podSelector"]["matchLabels"] for from_ in store["ingress"][0]["from"]] == [
        {"app.kubernetes.io/name": "aggregator"},
        {"app.kubernetes.io/name": "aggregator-backup"},
    ]
    assert reachable == {"93.184.215.14"}


def test_scheduled_backups_use_the_command_and_the_store_of_the_service() -> None:
    """The same image, user and store."""
    rendered = render()
    job = rendered["CronJob", "aggregator-backup"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    pod = rendered["Deployment", "aggregator"]["spec"]["template"]["spec"]
    (container,), (served,) = job["containers"], pod["containers"]

    assert options.build_parser().parse_args(container["args"]).command == "backup"
    assert container["image"] == served["image"]
    assert container["env"][0] == served["env"][0] and served["env"][0]["name"] == "REDIS_URL"
    assert job["securityContext"] == pod["securityContext"]
    assert container["securityContext"] == served["securityContext"]


def test_the_guide_uses_names_of_the_chart() -> None:
    """Secret, key, deployment, service and port of docs/guides/kubernetes.md."""
    rendered = render()
    text = (DEPLOY.parent / "docs" / "guides" / "kubernetes.md").read_text(encoding="utf-8")
    named = {(kind.lower(), name) for kind, name in rendered}

    assert set(re.findall(r"\b(deployment|service)/(\w+)", text)) <= named
    secret, key = re.search(r"secret generic (\w+) -n news --from-literal=([\w-]+)=", text).groups()  # type: ignore[union-attr]
    assert f"'secretKeyRef': {{'name': '{secret}', 'key': '{key}'" in str(rendered)
    port = int(re.search(r"service/aggregator 8080:(\d+)", text)[1])  # type: ignore[index]
    assert port in [p["port"] for p in rendered["Service", "aggregator"]["spec"]["ports"]]


def test_monitoring_selects_the_service() -> None:
    """The alert rules are those of deploy/alerts.yml; the scrape job has the name that they select."""
    rendered = render(**MONITORING)
    monitor = rendered["ServiceMonitor", "aggregator"]["spec"]
    (endpoint,) = monitor["endpoints"]
    service = rendered["Service", "aggregator"]

    assert rendered["PrometheusRule", "aggregator"]["spec"] == ALERTS
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "aggregator"}]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert monitor["selector"]["matchLabels"] == service["metadata"]["labels"]


def test_alerts_link_the_runbook_where_it_is_served() -> None:
    """Each rule has its anchor below the given address."""
    address = "https://handbook.news.example/aggregator"
    rendered = render(prometheusRule={"enabled": True, "runbookUrl": address})
    for group in rendered["PrometheusRule", "aggregator"]["spec"]["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["runbook_url"] == f"{address}#{rule['alert'].lower()}"


@pytest.mark.integration
@pytest.mark.parametrize(
    "values",
    [
        {},
        {**MONITORING, "replicas": 1, "backup": {"enabled": False}},
        PLACED,
        {
            "redis": {"enabled": False},
            "secretSettings": {"store_url": {"name": "store", "key": "url"}},
            "bootstrapKeySecret": "",
            "settings": {"public_url": "https://news.example/dedup", "workers": 2, "access_log": True},
            "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls"},
        },
        {"redis": {"enabled": False}, "settings": {"store_url": "rediss://store.example:6379"}},
    ],
)
def test_rendered_objects_are_valid_and_the_service_accepts_their_settings(values: dict[str, Any]) -> None:
    """Strictly by the schemas of Kubernetes 1.34; custom resources have no schema there."""
    for (kind, _), manifest in render(**values).items():
        if kind not in ("ServiceMonitor", "PrometheusRule"):
            kubernetes_validate.validate(manifest, "1.34", strict=True)
        if kind == "Deployment":
            (container,) = manifest["spec"]["template"]["spec"]["containers"]
            load({variable["name"]: variable.get("value", "x" * 32) for variable in container["env"]
                  if variable["name"] != "AGGREGATOR_STORE_URL" or "value" in variable})  # fmt: skip


def test_every_pod_is_placed_and_the_port_is_that_of_the_settings() -> None:
    """Those of the store and of the backup too, with their volumes."""
    rendered = render(**PLACED)
    job = rendered["CronJob", "aggregator-backup"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    names = ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", "priorityClassName")
    for pod in (*pods(rendered), job):
        assert {name: pod[name] for name in names} == {name: PLACED[name] for name in names}
    claims = [
        rendered["PersistentVolumeClaim", "aggregator-backups"]["spec"],
        rendered["StatefulSet", "aggregator-redis"]["spec"]["volumeClaimTemplates"][0]["spec"],
    ]
    assert {claim["storageClassName"] for claim in claims} == {"fast"}
    template = rendered["Deployment", "aggregator"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert template["spec"]["serviceAccountName"] == "mine" and ("ServiceAccount", "mine") not in rendered
    assert template["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true", "prometheus.io/port": "9000", "sidecar": "no",
    }  # fmt: skip
    assert template["metadata"]["labels"]["team"] == "desk"
    assert container["ports"] == [{"name": "http", "containerPort": 9000}]
    assert {"name": "HTTPS_PROXY", "value": "http://proxy:3128"} in container["env"]
    assert {"name": "ca", "mountPath": "/etc/ca"} in container["volumeMounts"]
    assert {"name": "ca", "configMap": {"name": "ca"}} in template["spec"]["volumes"]


def test_the_ingress_serves_the_public_address() -> None:
    """Host and path; the service adds the path to its links."""
    settings = {"public_url": "https://news.example/dedup"}
    (rule,) = render(settings=settings, ingress={"enabled": True})["Ingress", "aggregator"]["spec"]["rules"]
    (path,) = rule["http"]["paths"]

    assert (rule["host"], path["path"]) == ("news.example", "/dedup")


@pytest.mark.parametrize(
    "values",
    [
        {"replica": 3},
        {"replicas": 0},
        {"settings": {"public-url": "x"}},
        {"imagePullSecrets": ["registry"]},
        {"tolerations": {"key": "x"}},
        {"redis": {"enabled": False}},  # without a store
        {"ingress": {"enabled": True}},  # without a public address
        {"prometheusRule": {"enabled": True, "runbookUrl": "docs/runbook.md"}},  # not a whole address
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any]) -> None:
    """Misspelled names, and combinations that could not work."""
    with pytest.raises(helm.HelmError):
        render(**values)


def test_the_chart_has_the_version_of_the_package() -> None:
    """A release changes both; Helm's lint finds no error."""
    import aggregator

    metadata = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert metadata["version"] == metadata["appVersion"] == aggregator.__version__
    assert "[ERROR]" not in str(helm.lint(str(CHART)))
