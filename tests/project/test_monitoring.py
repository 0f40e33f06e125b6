"""Dashboard, alert rules, runbook and table of metrics speak of the series that the service has, and of all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry, ProcessCollector

from aggregator.http.metrics.registry import markdown_table

ROOT = Path(__file__).resolve().parents[2]
METRICS, RUNBOOK = (
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("metrics.md", "runbook.md")
)
ALERTS = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text(encoding="utf-8"))
RULES = {rule["alert"]: rule for group in ALERTS["groups"] for rule in group["rules"]}
DASHBOARD = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text(encoding="utf-8"))
DRAWN = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
_NAME = re.compile(r"\b((?:aggregator|process)_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?")


def series() -> dict[str, set[str]]:
    """Every name that a query may use, with its labels: from the table, which is generated from the code."""
    found = {}
    for name, kind, labels in re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", markdown_table(), re.MULTILINE):
        names = set(re.findall(r"`(\w+)`", labels))
        if kind == "histogram":
            found |= {f"{name}_bucket": names | {"le"}, f"{name}_sum": names, f"{name}_count": names}
        else:
            found[name] = names
    own = CollectorRegistry()
    ProcessCollector(registry=own)
    found["up"] = set()  # Prometheus' own: whether it reaches a target
    return found | {sample.name: set() for family in own.collect() for sample in family.samples}


SERIES = series()
ALWAYS = {"job", "instance", "worker"}


def test_the_table_of_metrics_is_the_one_that_the_code_prints() -> None:
    """Paste the output of http.metrics.markdown_table() between the two comments."""
    found = re.search(r"<!-- metrics:.*?-->\n(.*?)\n<!-- /metrics -->", METRICS, re.DOTALL)

    assert found is not None
    assert found[1] == markdown_table()


@pytest.mark.parametrize("expression", [*(rule["expr"] for rule in RULES.values()), *DRAWN])
def test_an_expression_names_series_and_labels_that_exist(expression: str) -> None:
    """Nothing is drawn or watched that the service does not say; parentheses and braces close."""
    used = _NAME.findall(expression)
    grouped = {
        name.strip() for names in re.findall(r"\bby \(([^)]*)\)", expression) for name in names.split(",")
    }

    assert used
    assert {name for name, _ in used} <= set(SERIES)
    for name, matchers in used:
        assert set(re.findall(r"(\w+)\s*[=!]~?", matchers)) <= SERIES[name] | ALWAYS
    assert grouped <= set().union(ALWAYS, *(SERIES[name] for name, _ in used))
    assert all(
        expression.count(opening) == expression.count(closing) for opening, closing in ("()", "{}", "[]")
    )


def test_every_counter_is_read_as_a_rate_and_no_gauge_is() -> None:
    """The mistake that draws nonsense without an error."""
    kinds = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", markdown_table(), re.MULTILINE))
    for expression in [*(rule["expr"] for rule in RULES.values()), *DRAWN]:
        for before, name in re.findall(r"(\w*\(?)(aggregator_[a-z0-9_]+)", expression):
            counts = (
                name.endswith(("_total", "_bucket", "_sum", "_count")) and name not in kinds
            ) or kinds.get(name) == "counter"
            assert counts == (before in ("rate(", "increase(")), expression


def test_every_alert_has_its_entry_and_every_entry_its_alert() -> None:
    """Meaning, first look, remedy: nobody is woken without knowing what to do."""
    alerts = RUNBOOK[RUNBOOK.index("## Alerts") : RUNBOOK.index("## Situations")]
    entries = dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", alerts, re.MULTILINE | re.DOTALL))

    assert set(entries) == set(RULES)
    for name, entry in entries.items():
        assert re.findall(r"^\* \*\*(.+?):\*\* \S", entry, re.MULTILINE) == [
            "Meaning",
            "First look",
            "Remedy",
        ], name
        assert RULES[name]["annotations"]["runbook"] == f"docs/runbook.md#{name.lower()}"
        assert RULES[name]["annotations"]["summary"] and RULES[name]["labels"]["severity"] in (
            "page",
            "ticket",
        )


def test_every_series_is_drawn() -> None:
    """What is worth counting is worth a look."""
    drawn = {name for expression in DRAWN for name, _ in _NAME.findall(expression)}
    families = set(re.findall(r"^\| `(\w+)`", markdown_table(), re.MULTILINE))

    assert {f for f in families if not any(name.startswith(f) for name in drawn)} == set()
