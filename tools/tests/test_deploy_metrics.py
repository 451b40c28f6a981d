"""Checks the metrics of controller, switch and agent with Debian's Prometheus. Then checks that deploy/prometheus and
deploy/grafana use only these metrics."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import struct
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from content import content
from fakeagent import FakeAgent
from live import running
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from realagent import needed, real_agent
from sluice.agents.client import connected
from sluice.agents.cookies import Cookies
from sluice.agents.messages import configuration
from sluice.config.load import parse
from sluice.loops import sweep
from sluice.switch.plan import make_plan
from sluice.switch.rules import Rules
from sluice.views import metrics
from sluice.views.metrics import families

from tools import gen_docs
from topo.testbed.namespaces import free_port
from topo.testbed.switches.embedded import BINARY
from topo.testbed.switches.started import start

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus"
DASHBOARD = ROOT / "deploy/grafana/sluice.json"
EMPTY = {"sluice_news_limit_per_second": "a destination has a limit in a crowd only"}
"""Metrics that have no sample in normal operation, with the reason."""
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
PATIENCE_S = 60.0
RESOURCES = "{send: {budget: 1MB, needs: paper}, idle: {limit: 100, rate: 1000}}"

prometheus = pytest.mark.skipif(shutil.which("promtool") is None, reason="apt-get install prometheus")
built = pytest.mark.skipif(not BINARY.exists(), reason="the embedded switch is not built: `make setup` builds it")


class Given(Collector):
    """A collector of fixed metric families."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._found = list(metrics)

    def collect(self) -> Iterator[Metric]:
        return iter(self._found)


def objections(text: bytes) -> str:
    """Return the complaints of ``promtool check metrics`` about the text of a scrape; "" if there are none."""
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    output = (done.stdout + done.stderr).decode()
    assert done.returncode == 0 or output, "promtool fails and prints nothing"
    return output


def served(metrics: Iterable[Metric]) -> bytes:
    """Return the metric families in the text format that the controller serves."""
    registry = CollectorRegistry()
    registry.register(Given(metrics))
    return generate_latest(registry)


def fetch(address: str, accept: str = "*/*") -> str:
    with urllib.request.urlopen(urllib.request.Request(address, headers={"Accept": accept}), timeout=10) as answer:
        return answer.read().decode()


async def check_served(port: int) -> str:
    """Check the metrics at a port, in the text format and in OpenMetrics; return the metrics in the text format.

    promtool checks the text format, and the client library's strict parser checks OpenMetrics.
    """
    address = f"http://127.0.0.1:{port}/metrics"
    text, openmetrics = [await asyncio.to_thread(fetch, address, accept) for accept in ("*/*", OPENMETRICS)]
    assert objections(text.encode()) == ""
    names = [family.name for family in text_string_to_metric_families(openmetrics)]
    assert len(names) == len(set(names)) > 0
    return text


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load((RULES / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]


def queries() -> list[str]:
    """Return the dashboard's queries, with each variable replaced by the value of the choice "All"."""
    board = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    for name, value in {"$__rate_interval": "5s", "$job": ".*", "$service": ".*"}.items():
        queries = [query.replace(name, value) for query in queries]
    return queries


def named(texts: Iterable[str]) -> set[str]:
    """Return the names of sluice's metrics that occur in queries."""
    return {name for text in texts for name in re.findall(r"\bsluice_\w+", text)}


@prometheus
def test_the_controllers_names_keep_to_the_conventions() -> None:
    assert objections(served(families(gen_docs.STATUS))) == ""


@prometheus
def test_a_name_against_the_conventions_is_noticed() -> None:
    assert "sluice_wait_ms" in objections(served([GaugeMetricFamily("sluice_wait_ms", "Wait", 1)]))
    named_as_in_openmetrics = b"# HELP sluice_a Counted.\n# TYPE sluice_a counter\nsluice_a_total 1\n"
    assert "sluice_a_total no help text" in objections(named_as_in_openmetrics)


@prometheus
@needed[0]
@needed[1]
async def test_what_an_agent_serves_keeps_to_the_conventions(tmp_path: Path) -> None:
    port = free_port()
    with real_agent(tmp_path, "--metrics", f"127.0.0.1:{port}") as control:
        plan = make_plan(parse(content(agents=(control, "127.0.0.1:9471"))))
        async with connected(control) as agent:
            assert await agent.configure(configuration(plan, control, Rules(7, b"-"), Cookies.fresh())) == []
        assert "sluice_agent_handshakes_total{" in await check_served(port)


@prometheus
def test_rules_fire_when_they_should_and_rest_else() -> None:
    for words in (["check", "config", "prometheus.yml"], ["test", "rules", "alerts_test.yaml"]):
        done = subprocess.run(["promtool", *words], cwd=RULES, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    fired = re.findall(r'alertname="(\w+)"', (RULES / "alerts_test.yaml").read_text())
    assert sorted(fired) == sorted(rule["alert"] for rule in alerts())


def test_an_alert_says_what_is_so_and_what_to_do() -> None:
    assert [rule["alert"] for rule in alerts() if set(rule["annotations"]) != {"summary", "remedy"}] == []


@asynccontextmanager
async def switch(folder: Path, port: int) -> AsyncGenerator[str]:
    """Run a switch whose interfaces are files and that serves metrics at a port; yield its P4Runtime address."""
    (folder / "eth1_in.pcap").write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    flags = ("--use-files", "0", "--metrics-addr", f"127.0.0.1:{port}")
    it = await start(ports={1: "eth1"}, flags=flags, folder=folder)
    try:
        yield it.address
    finally:
        await it.stop()


@asynccontextmanager
async def controller(folder: Path, address: str, port: int) -> AsyncGenerator[None]:
    """Run a controller that serves metrics at a port, and whose configuration yields samples for all metrics."""
    async with FakeAgent(folder / "a1.sock") as first_agent, FakeAgent(folder / "a2.sock") as second_agent:
        first_agent.hits = second_agent.hits = {"big": 3}
        text = content(address, control=str(folder / "s.sock"), agents=(first_agent.control, second_agent.control))
        head, plain = text.split("- name: plain")
        plain = plain.replace("  servers:", f"  resources: {RESOURCES}\n  servers:")
        path = folder / "sluice.yaml"
        path.write_text(f"{head}- name: plain{plain}news: {{mode: production}}\n")
        async with running(path) as it:
            with metrics.serve(it.controller, f"127.0.0.1:{port}"):
                yield


@asynccontextmanager
async def scraping(folder: Path, targets: dict[str, int]) -> AsyncGenerator[str]:
    """Run Prometheus with the rules of deploy/prometheus; it scrapes the ports of each job every second. Yield the
    address of its API."""
    port = free_port()
    config = yaml.safe_load((RULES / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(RULES / "alerts.yaml")]
    for job in config["scrape_configs"]:
        job["static_configs"] = [{"targets": [f"127.0.0.1:{targets[job['job_name']]}"]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    with (folder / "prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *("prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"),
            f"--web.listen-address=127.0.0.1:{port}",
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://127.0.0.1:{port}/api/v1"
    finally:
        process.kill()
        await process.wait()


async def ask(api: str, path: str, **query: str) -> Any:
    """Return the data in an answer of Prometheus's API; None as long as the API does not answer."""
    address = f"{api}/{path}?{urllib.parse.urlencode(query)}"
    try:
        return json.loads(await asyncio.to_thread(fetch, address))["data"]
    except (ConnectionError, urllib.error.URLError):
        return None


async def without_data(api: str, queries: list[str]) -> list[str]:
    """Return the queries that yield no data within a minute."""
    deadline = time.monotonic() + PATIENCE_S
    while queries and time.monotonic() < deadline:
        await asyncio.sleep(0.5)
        answers = [await ask(api, "query", query=query) for query in queries]
        queries = [query for query, answer in zip(queries, answers, strict=True) if not (answer and answer["result"])]
    return queries


@prometheus
@built
async def test_rules_and_dashboard_know_what_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "SWEEP_S", 1.0)
    ports = {"sluice": free_port(), "sluice-switch": free_port()}
    async with (
        switch(tmp_path, ports["sluice-switch"]) as address,
        controller(tmp_path, address, ports["sluice"]),
        scraping(tmp_path, ports) as api,
    ):
        for port in ports.values():
            await check_served(port)
        empty = await without_data(api, [query for query in queries() if not named([query]) & EMPTY.keys()])
        assert empty == [], "no data"
        there = set(await ask(api, "label/__name__/values"))
        assert named([*queries(), *(rule["expr"] for rule in alerts())]) - there == EMPTY.keys()
        rules = [rule for group in (await ask(api, "rules"))["groups"] for rule in group["rules"]]
        assert len(rules) == len(alerts())
        assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}
