"""The dashboard and the alert rules read metrics that `/metrics` serves, with labels that these have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.e2e.api.conftest import OPERATOR_KEY, serving, settings_for

from agentic_rag_backend.container import open_container
from agentic_rag_backend.telemetry import metrics

ROOT = Path(__file__).resolve().parents[3]
_METRIC = re.compile(r"\b(?:agentic_rag|process)_\w+")
_SELECTED = re.compile(r"\{([^}]*)\}")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*[\"']")
_GROUPED = re.compile(r"\bby \(([^)]*)\)")
OF_PROMETHEUS = {"instance", "le"}


def _expressions() -> Iterator[tuple[str, str]]:
    dashboard = json.loads((ROOT / "infra" / "grafana" / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])
    rules = yaml.safe_load((ROOT / "infra" / "prometheus" / "alerts.yaml").read_text())
    for group in rules["groups"]:
        yield from ((rule["alert"], rule["expr"]) for rule in group["rules"])


def _labels_of(expression: str) -> set[str]:
    selected = {label for selector in _SELECTED.findall(expression) for label in _LABEL.findall(selector)}
    grouped = {label.strip() for names in _GROUPED.findall(expression) for label in names.split(",")}
    return (selected | grouped) - OF_PROMETHEUS


async def test_every_metric_is_served_and_every_label_is_one_of_its_metrics(tmp_path: Path) -> None:
    async with open_container(settings_for(tmp_path / "data")) as container, serving(container) as http:
        response = await http.get("/metrics", headers={"Authorization": f"Bearer {OPERATOR_KEY}"})
    families = list(text_string_to_metric_families(response.text))
    served = {sample.name for family in families for sample in family.samples}
    # A metric with labels has no sample before its first use. Its family is served.
    for family in families:
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
        served |= {f"{family.name}{suffix}" for suffix in suffixes}
    labels = {name for value in vars(metrics).values() for name in getattr(value, "_labelnames", ())} | {
        "store",
        "state",
        "queue",
        "version",
        "runs_jobs",
    }
    shown = set[str]()
    for title, expression in _expressions():
        names = set(_METRIC.findall(expression))
        assert names, title
        assert names <= served, f"{title}: {names - served}"
        assert _labels_of(expression) <= labels, f"{title}: {_labels_of(expression) - labels}"
        shown |= names
    own = {name for name in served if name.startswith("agentic_rag_") and not name.endswith(("_sum", "_count", "_created"))}
    assert own - shown == set(), "a metric that no panel shows"


def test_every_alert_names_a_section_of_the_guide() -> None:
    rules = yaml.safe_load((ROOT / "infra" / "prometheus" / "alerts.yaml").read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        path, _, anchor = rule["annotations"]["guide"].partition("#")
        text = (ROOT / path).read_text()
        titles = (line.lstrip("# ").lower() for line in text.splitlines() if line.startswith("#"))
        assert not anchor or anchor in {title.replace(" ", "-") for title in titles}, rule["alert"]
