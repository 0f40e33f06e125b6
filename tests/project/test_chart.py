"""Helm chart and kustomizations: rendered by Helm itself, valid for Kubernetes, equal to plain manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from aggregator.settings import load

helm = pytest.importorskip("helm_python", reason="needs helm-python-sdk (scripts/setup dev)")
kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="needs scripts/setup dev")

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm" / "aggregator"
ALERTS = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
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


def kustomize(directory: Path) -> dict[tuple[str, str], Manifest]:
    """The objects of a kustomization that only lists resources, which is all that those in deploy/ do."""
    kustomization = yaml.safe_load((directory / "kustomization.yaml").read_text(encoding="utf-8"))
    assert set(kustomization) == {"apiVersion", "kind", "resources"}
    paths = [directory / name for name in kustomization["resources"]]
    found = by_name(path.read_text(encoding="utf-8") for path in paths if path.is_file())
    for path in paths:
        if path.is_dir():
            found |= kustomize(path)
    return found


def test_the_default_values_render_the_plain_manifests() -> None:
    """The chart, the kustomization and deploy/kubernetes are one deployment."""
    rendered, plain = render(), kustomize(DEPLOY / "kubernetes")

    assert set(rendered) == set(plain)
    for name, manifest in plain.items():
        assert rendered[name] == manifest, name


def test_monitoring_is_the_same_in_both() -> None:
    """The alert rules are those of deploy/alerts.yml; the scrape job has the name that they select."""
    rendered, plain = render(**MONITORING), kustomize(DEPLOY / "kubernetes-monitoring")
    rule = plain["PrometheusRule", "aggregator"]
    (endpoint,) = plain["ServiceMonitor", "aggregator"]["spec"]["endpoints"]
    service = plain["Service", "aggregator"]

    assert set(rendered) == set(plain)
    assert rendered["PrometheusRule", "aggregator"]["spec"] == rule["spec"] == ALERTS
    assert rendered["ServiceMonitor", "aggregator"]["spec"] == plain["ServiceMonitor", "aggregator"]["spec"]
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "aggregator"}]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert (
        plain["ServiceMonitor", "aggregator"]["spec"]["selector"]["matchLabels"]
        == service["metadata"]["labels"]
    )


def test_alerts_link_the_runbook_where_it_is_served() -> None:
    """Each rule has its anchor below the given address."""
    address = "https://handbook.news.example/aggregator"
    rendered = render(prometheusRule={"enabled": True, "runbookUrl": address})
    for group in rendered["PrometheusRule", "aggregator"]["spec"]["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["runbook_url"] == f"{address}#{rule['alert'].lower()}"


@pytest.mark.parametrize(
    "values",
    [
        {},
        {**MONITORING, "replicas": 1, "backup": {"enabled": False}},
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
