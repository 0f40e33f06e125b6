"""Dashboard, alert rules, runbook and metrics table use existing series, and cover all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml  # no stubs
from prometheus_client import CollectorRegistry, ProcessCollector

from tests.project.metrics_table import markdown_table

ROOT = Path(__file__).resolve().parents[2]
METRICS, RUNBOOK = (
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("metrics.md", "runbook.md")
)
ALERTS = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text(encoding="utf-8"))
RULES = {rule["alert"]: rule for group in ALERTS["groups"] for rule in group["rules"]}
DASHBOARD = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text(encoding="utf-8"))
PANEL_EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
_NAME = re.compile(r"\b((?:aggregator|process)_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?")


def series() -> dict[str, set[str]]:
    """Every series with its labels, from the generated table."""
    found: dict[str, set[str]] = {}
    for name, kind, labels in re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", markdown_table(), re.MULTILINE):
        names = set(re.findall(r"`(\w+)`", labels))
        if kind == "histogram":
            found |= {f"{name}_bucket": names | {"le"}, f"{name}_sum": names, f"{name}_count": names}
        else:
            found[name] = names
    process = CollectorRegistry()
    ProcessCollector(registry=process)
    found["up"] = set()  # added by Prometheus: whether it reaches a target
    return found | {sample.name: set() for family in process.collect() for sample in family.samples}


SERIES = series()
COMMON_LABELS = {"job", "instance", "worker"}


def test_the_metrics_table_matches_the_code() -> None:
    """To update it, paste the output of tests.project.metrics_table between the two comments."""
    found = re.search(r"<!-- metrics:.*?-->\n(.*?)\n<!-- /metrics -->", METRICS, re.DOTALL)

    assert found is not None
    assert found[1] == markdown_table()


@pytest.mark.parametrize("expression", [*(rule["expr"] for rule in RULES.values()), *PANEL_EXPRESSIONS])
def test_expressions_use_existing_series_and_labels(expression: str) -> None:
    """Panels and alert rules; parentheses and braces are balanced."""
    used = _NAME.findall(expression)
    grouped = {
        name.strip() for names in re.findall(r"\bby \(([^)]*)\)", expression) for name in names.split(",")
    }

    assert used
    assert {name for name, _ in used} <= set(SERIES)
    for name, matchers in used:
        assert set(re.findall(r"(\w+)\s*[=!]~?", matchers)) <= SERIES[name] | COMMON_LABELS
    assert grouped <= set().union(COMMON_LABELS, *(SERIES[name] for name, _ in used))
    assert all(
        expression.count(opening) == expression.count(closing) for opening, closing in ("()", "{}", "[]")
    )


def test_counters_are_read_as_rates_and_gauges_are_not() -> None:
    """Otherwise a panel is wrong without an error."""
    kinds = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", markdown_table(), re.MULTILINE))
    for expression in [*(rule["expr"] for rule in RULES.values()), *PANEL_EXPRESSIONS]:
        for before, name in re.findall(r"(\w*\(?)(aggregator_[a-z0-9_]+)", expression):
            counts = (
                name.endswith(("_total", "_bucket", "_sum", "_count")) and name not in kinds
            ) or kinds.get(name) == "counter"
            assert counts == (before in ("rate(", "increase(")), expression


def test_what_an_alert_leaves_out_by_instance_has_an_alert_of_its_own() -> None:
    """A replica that alone cannot use the store is left out of NotReady and hidden in a maximum."""
    excluded = {
        name
        for rule in RULES.values()
        for name in re.findall(r"unless on \(instance\) (aggregator_\w+) == 0", rule["expr"])
    }
    reported = {
        name
        for rule in RULES.values()
        for name in re.findall(r"min by \(instance\) \(avg_over_time\((\w+)\[2m\]\)\) < ", rule["expr"])
    }

    assert excluded
    assert excluded <= reported


def test_every_alert_has_a_runbook_entry() -> None:
    """With meaning, first look and remedy, linked by its whole address; no entry is left over."""
    alerts = RUNBOOK[RUNBOOK.index("## Alerts") : RUNBOOK.index("## Situations")]
    entries = dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", alerts, re.MULTILINE | re.DOTALL))

    assert set(entries) == set(RULES)
    for name, entry in entries.items():
        assert re.findall(r"^\* \*\*(.+?):\*\* \S", entry, re.MULTILINE) == [
            "Meaning",
            "First look",
            "Remedy",
        ], name
        annotations = RULES[name]["annotations"]
        assert annotations["runbook_url"] == f"https://docs.news.example/runbook.html#{name.lower()}"
        assert not {"runbook", "runbook_path"} & set(annotations)
        assert (
            annotations["summary"]
            and annotations["description"]
            and RULES[name]["labels"]["severity"]
            in (
                "page",
                "ticket",
            )
        )


def test_every_series_is_on_the_dashboard() -> None:
    """Each metric family has a panel."""
    shown = {name for expression in PANEL_EXPRESSIONS for name, _ in _NAME.findall(expression)}
    families = set(re.findall(r"^\| `(\w+)`", markdown_table(), re.MULTILINE))

    assert {f for f in families if not any(name.startswith(f) for name in shown)} == set()


def test_names_follow_the_rules_of_prometheus() -> None:
    """As `promtool check metrics` wants them: suffixes by kind, base units, and only times since 1970."""
    for name, kind, _, meaning in re.findall(
        r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*) \|$", markdown_table(), re.MULTILINE
    ):
        assert name.startswith("aggregator_")
        assert name.endswith("_total") == (kind == "counter"), name
        assert name.endswith("_timestamp_seconds") == ("since 1970" in meaning), name
        if kind == "histogram" and "seconds" in name:
            assert name.endswith("_duration_seconds"), name
        assert not re.search(r"_(ms|millis|milliseconds|minutes|hours|days|kb|mb)(_|$)", name), name
        assert not re.search(r"_(bucket|count|sum)$", name), name  # of histograms only


def test_values_in_descriptions_have_a_form_that_people_read() -> None:
    """A ratio is shown in percent, a number of bytes or seconds with its unit."""
    for name, rule in RULES.items():
        template = rule["annotations"]["description"]
        is_ratio = bool(re.search(r" > 0\.\d+$", rule["expr"])) and " / " in rule["expr"]
        if is_ratio and name != "CommitConflicts":  # may exceed 1
            assert "humanizePercentage" in template, name
        assert template.count("{{") == template.count("}}")
