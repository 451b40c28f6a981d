"""The Prometheus endpoint. Every scrape reads the switch; if the reading fails, ``sluice_up`` is 0."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sluice import columns
from sluice.columns import Column
from sluice.controller import Controller
from sluice.log import logger
from sluice.views import status

_log = logger("metrics")

_PATIENCE_S = 5.0
Row = tuple[Sequence[str], Mapping[str, Any]]
"""The label values of an object's samples, such as a server's, and the object's status: values by column name."""

_STATES = ("in", "full", "draining", "ejected", "absent")
"""States of a server; the state `absent` is that of an agent that does not answer."""


class StatusCollector(Collector):
    """Collects metrics from the controller's status."""

    def __init__(self, controller: Controller, loop: asyncio.AbstractEventLoop) -> None:
        self._controller = controller
        self._loop = loop

    def describe(self) -> Iterator[Metric]:
        """Return no metrics, because registering the collector must not read the switch."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics. The HTTP server's thread calls this method."""
        gathering = asyncio.run_coroutine_threadsafe(status.gather(self._controller), self._loop)
        try:
            shown = gathering.result(_PATIENCE_S)
        except Exception as error:
            gathering.cancel()
            _log.warning("scrape failed", extra={"error": repr(error)})
            shown = {}
        yield from families(shown)


def families(shown: dict[str, Any]) -> Iterator[Metric]:
    """Yield every metric of a status from ``status.gather``; only ``sluice_up 0`` for a status without services, such
    as that of a backup controller."""
    up = "services" in shown
    yield GaugeMetricFamily("sluice_up", "1 while the controller leads its switch", float(up))
    if up:
        yield from _of_switch(shown)
        yield from _of_services(shown["services"])
        yield from _of_servers(shown["services"])
        if any("content" in service for service in shown["services"]):
            yield from _of_content([service for service in shown["services"] if "content" in service])
        yield from _of_resources(shown)
        if "news" in shown:
            yield from _of_news(shown["news"])


def _of_switch(shown: dict[str, Any]) -> Iterator[Metric]:
    packets = shown["packets"]
    yield CounterMetricFamily("sluice_forwarded", "Packets forwarded or answered", packets["forwarded"])
    for column in columns.PACKETS:
        rows = [((reason,), {column.name: count}) for reason, count in packets[column.name].items()]
        yield _family("sluice", column, ["reason"], rows)
    if table := shown.get("table"):
        yield GaugeMetricFamily("sluice_slots", "Slots of the connection table", table["slots"])
        yield GaugeMetricFamily(
            "sluice_slots_kept", "Slots that a connection holds, counted once a minute", table["kept"]
        )


def _of_services(services: list[dict[str, Any]]) -> Iterator[Metric]:
    rows = [((service["name"],), service) for service in services]
    yield from _families("sluice_service", columns.SERVICE, ["service"], rows)
    conditions = {(service["name"], service["condition"]): 1.0 for service in services}
    yield _gauge("sluice_service_condition", "1 for the current condition", ["service", "condition"], conditions)
    refuses = {(service["name"],): float(service["refuses"]) for service in services}
    meaning = "1 while new connections are refused because all servers are full"
    yield _gauge("sluice_service_refuses", meaning, ["service"], refuses)


def _of_servers(services: list[dict[str, Any]]) -> Iterator[Metric]:
    labels = ["service", "server"]
    values = [((service["name"], server["name"]), server) for service in services for server in service["servers"]]
    yield from _families("sluice_server", (*columns.SERVER, *columns.SERVER_LEVELS), labels, values)
    states = {(*name, state): float(server["state"] == state) for name, server in values for state in _STATES}
    yield _gauge("sluice_server_state", "1 for the current state", [*labels, "state"], states)


def _of_content(services: list[dict[str, Any]]) -> Iterator[Metric]:
    for key, label, text in (
        ("counts", "event", "Events that agents count of connections"),
        ("rules", "rule", "Requests that a rule decided"),
        ("refused", "reason", "Requests refused"),
    ):
        family = CounterMetricFamily(f"sluice_content_{key}", text, labels=["service", label])
        for service in services:
            for name, count in service["content"][key].items():
                family.add_metric([service["name"], name], count)
        yield family
    groups = [
        ((service["name"], name), group) for service in services for name, group in service["content"]["groups"].items()
    ]
    yield from _families("sluice_content", columns.GROUP, ["service", "group"], groups)
    does = [(service["name"], service["content"]["without_agents"]) for service in services]
    meaning = "1 while no agent answers; the label has what new connections get: refuse, or a group"
    without = {labels: 1.0 for labels in does if labels[1] is not None}
    yield _gauge("sluice_content_without_agents", meaning, ["service", "does"], without)
    agents = [
        ((service["name"], agent["name"]), agent) for service in services for agent in service["content"]["agents"]
    ]
    yield from _families("sluice_agent", columns.AGENT, ["service", "agent"], agents)


def _of_resources(shown: dict[str, Any]) -> Iterator[Metric]:
    rows = [
        ((service["name"], server["name"]), server["resources"])
        for service in shown["services"]
        for server in service["servers"]
        if server.get("resources")
    ]
    labels = ["service", "server"]
    sides = [((*name, side), row[side]) for name, row in rows for side in ("send", "receive") if side in row]
    if sides:
        yield from _families("sluice_buffers", columns.BUFFERS, [*labels, "direction"], sides)
    idle = [(name, row["idle"]) for name, row in rows if "idle" in row]
    if idle:
        yield from _families("sluice_connections", columns.CONNECTIONS, labels, idle)


def _of_news(news: dict[str, Any]) -> Iterator[Metric]:
    yield GaugeMetricFamily("sluice_news_alarm", "1 while responses slow down and requests rise", news["alarm"])
    rate, average = _number(news["ar_bps"]) / 8, _number(news["ar_average_bps"]) / 8
    yield GaugeMetricFamily("sluice_news_ar_bytes_per_second", "Rate of the fastest tenth of the responses (AR)", rate)
    yield GaugeMetricFamily("sluice_news_ar_average_bytes_per_second", "Long-term average of AR", average)
    yield GaugeMetricFamily("sluice_news_flows", "Responses that AR was measured on", news["flows"])
    yield GaugeMetricFamily("sluice_news_flow_share", "Share of the responses that is measured", news["flow_share"])
    cause = {(news["cause"],): 1.0}
    yield _gauge("sluice_news_cause", "1 for the cause that flash-crowd control has found", ["cause"], cause)
    limits = {(row["destination"],): row["limit_per_s"] for row in news["limits"]}
    yield _gauge("sluice_news_limit_per_second", "Limit on new connections", ["destination"], limits)
    rows = [((row["name"],), row) for row in news["destinations"]]
    yield from _families("sluice_destination", columns.DESTINATION, ["destination"], rows)


def _gauge(name: str, meaning: str, labels: Sequence[str], values: Mapping[tuple[str, ...], float]) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for row, value in values.items():
        family.add_metric(row, value)
    return family


def _families(
    prefix: str, listed_columns: Iterable[Column], labels: Sequence[str], rows: Sequence[Row]
) -> Iterator[Metric]:
    """Yield a metric family for each column."""
    for column in listed_columns:
        yield _family(prefix, column, labels, rows)


def _family(prefix: str, column: Column, labels: Sequence[str], rows: Sequence[Row]) -> Metric:
    """Return a column's metric family, with a sample for each row that has a value."""
    name = f"{prefix}_{column.metric}"
    family = (GaugeMetricFamily if column.is_level else CounterMetricFamily)(name, column.meaning, labels=labels)
    for values, row in rows:
        if column.name in row and (column.is_level or row[column.name] is not None):
            family.add_metric(values, _number(row[column.name]))
    return family


def _number(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


@contextmanager
def serve(controller: Controller, address: str) -> Generator[None]:
    """Serve scrapes at ``address`` (HOST:PORT) from a thread. Raises OSError, which names the address."""
    host, _, port = address.rpartition(":")
    registry = CollectorRegistry()
    registry.register(StatusCollector(controller, asyncio.get_running_loop()))
    try:
        server, thread = start_http_server(int(port), host.strip("[]"), registry)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), f"metrics {address}") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
