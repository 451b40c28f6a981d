"""The Prometheus endpoint. Every scrape reads the switch; a switch that is away shows as ``sluice_up 0``."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sluice.log import logger
from sluice.loops.controller import Controller
from sluice.views import status

_log = logger("metrics")

_PATIENCE_S = 5.0

_SERVER_COUNTERS = {
    "syn": "SYNs forwarded to the server",
    "synack": "First SYN-ACKs of the server",
    "synack_again": "Repeated SYN-ACKs of the server",
    "completed": "Handshakes completed",
    "reset": "Resets sent by the server",
}
_SERVICE_COUNTERS = {
    "offered": "SYNs to the service",
    "refused": "SYNs refused by admission",
    "pinned": "Connections pinned",
    "unpinned_new": "SYNs that found no free slot",
    "unpinned_mid": "Other packets without a pin",
    "moved": "Connections whose SYN, said again, went to another server than before",
    "disowned": "Resets of servers for connections that are not pinned to them",
    "weight_changes": "Writes of changed weights",
}


_DESTINATION_COUNTERS = {
    "offered": "SYNs towards the destination",
    "admitted": "connections that admission let pass",
    "refused": "SYNs that admission refused",
    "returning": "SYNs that passed because their client is remembered",
}


_PACKETS = {
    "drops": "Packets dropped, by reason",
    "punts": "Packets for the controller, by reason",
    "punts_limited": "Those that were too many for it",
}
_STATES = ("in", "full", "draining", "ejected", "absent")
"""Of a server; `absent` is an agent that does not answer."""


_SHARES = {
    "budget_bytes": "Bytes of buffers that the server has for all connections",
    "flight_bytes": "Bytes in flight at most in the last second, of the transfers that are measured",
    "need_bytes": "Bytes that they could use",
    "share_bytes": "Bytes that they are given",
    "transfers": "Transfers that are measured, above 64 KB and active",
    "capped": "Those that are given less than they need",
    "default_cap_bytes": "Bytes that each other connection can have",
}
_IDLE = {
    "limit": "Connections that the server can have (not known: NaN)",
    "open": "Connections that it has",
    "idle": "Those among them that could be closed",
}


_CLOSINGS = {
    "asked": "Probes of idle connections, since the controller started",
    "lapsed": "Those of them that the server did not answer",
    "closed": "Idle connections that the switch closed",
    "taken_back": "Probes that payload of either side ended: the connection stays",
    "raced": "Closed connections whose client asked for something before it knew, and got a reset",
}


class StatusCollector(Collector):
    """Turns a status into metrics."""

    def __init__(self, controller: Controller, loop: asyncio.AbstractEventLoop) -> None:
        self._controller = controller
        self._loop = loop

    def describe(self) -> Iterator[Metric]:
        """Nothing in advance: registering must not read the switch."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Called from the HTTP server's thread."""
        gathering = asyncio.run_coroutine_threadsafe(status.gather(self._controller), self._loop)
        try:
            shown = gathering.result(_PATIENCE_S)
        except Exception as error:
            gathering.cancel()
            _log.warning("scrape failed", extra={"error": repr(error)})
            shown = {}
        yield from families(shown)


def families(shown: dict[str, Any]) -> Iterator[Metric]:
    """Every metric of a status as ``status.gather`` returns it; of an empty one only ``sluice_up 0``."""
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
    for key, text in _PACKETS.items():
        family = CounterMetricFamily(f"sluice_{key}", text, labels=["reason"])
        for reason, count in packets[key].items():
            family.add_metric([reason], count)
        yield family
    if table := shown.get("table"):
        yield GaugeMetricFamily("sluice_slots", "Slots of the connection table", table["slots"])
        yield GaugeMetricFamily("sluice_slots_kept", "Those that a connection keeps, once a minute", table["kept"])


def _of_services(services: list[dict[str, Any]]) -> Iterator[Metric]:
    for key, text in _SERVICE_COUNTERS.items():
        family = CounterMetricFamily(f"sluice_service_{key}", text, labels=["service"])
        for service in services:
            if service[key] is not None:
                family.add_metric([service["name"]], service[key])
        yield family
    condition = GaugeMetricFamily(
        "sluice_service_condition", "1 for the present condition", labels=["service", "condition"]
    )
    for service in services:
        condition.add_metric([service["name"], service["condition"]], 1)
    yield condition
    refuses = GaugeMetricFamily(
        "sluice_service_refuses", "1 while all its servers are full, and new connections refused", labels=["service"]
    )
    for service in services:
        refuses.add_metric([service["name"]], float(service["refuses"]))
    yield refuses


def _of_servers(services: list[dict[str, Any]]) -> Iterator[Metric]:
    labels = ["service", "server"]
    rows = [(service["name"], server) for service in services for server in service["servers"]]
    for key, text in _SERVER_COUNTERS.items():
        counters = CounterMetricFamily(f"sluice_server_{key}", text, labels=labels)
        for service, server in rows:
            counters.add_metric([service, server["name"]], server[key])
        yield counters
    for key, text in (
        ("ratio", "Share of new connections"),
        ("r", "R over the window (no evidence: NaN)"),
        ("open", "Open connections"),
        ("max_connections", "The most that it is to have (no cap: NaN)"),
    ):
        gauge = GaugeMetricFamily(f"sluice_server_{key}", text, labels=labels)
        for service, server in rows:
            gauge.add_metric([service, server["name"]], _number(server[key]))
        yield gauge
    gauge = GaugeMetricFamily("sluice_server_state", "1 for the present state", labels=[*labels, "state"])
    for service, server in rows:
        for state in _STATES:
            gauge.add_metric([service, server["name"], state], float(server["state"] == state))
    yield gauge


def _of_content(services: list[dict[str, Any]]) -> Iterator[Metric]:
    for key, label, text in (
        ("counts", "event", "What agents count of connections"),
        ("rules", "rule", "Requests that a rule took"),
        ("refused", "reason", "Requests refused"),
    ):
        family = CounterMetricFamily(f"sluice_content_{key}", text, labels=["service", label])
        for service in services:
            for name, count in service["content"][key].items():
                family.add_metric([service["name"], name], count)
        yield family
    for key, text in (("opened", "Connections opened to a group"), ("failed", "Connections that no server took")):
        family = CounterMetricFamily(f"sluice_content_{key}", text, labels=["service", "group"])
        for service in services:
            for name, group in service["content"]["groups"].items():
                family.add_metric([service["name"], name], group[key])
        yield family
    without = GaugeMetricFamily(
        "sluice_content_without_agents",
        "1 while no agent is left; what new connections get: refuse, or a group",
        labels=["service", "does"],
    )
    for service in services:
        if (does := service["content"]["without_agents"]) is not None:
            without.add_metric([service["name"], does], 1)
    yield without
    for key, text in (
        ("answers", "1 while the agent answers"),
        ("connections", "Connections in the agent's hands"),
        ("waiting", "Requests that are not complete"),
        ("memory_bytes", "Bytes that they take"),
    ):
        gauge = GaugeMetricFamily(f"sluice_agent_{key}", text, labels=["service", "agent"])
        for service in services:
            for agent in service["content"]["agents"]:
                gauge.add_metric([service["name"], agent["name"]], float(agent[key.removesuffix("_bytes")]))
        yield gauge


def _of_resources(shown: dict[str, Any]) -> Iterator[Metric]:
    rows = [
        (service["name"], server["name"], server["resources"])
        for service in shown["services"]
        for server in service["servers"]
        if server.get("resources")
    ]
    labels = ["service", "server"]
    sides = [(*row[:2], side, row[2][side]) for row in rows for side in ("send", "receive") if side in row[2]]
    for key, text in _SHARES.items() if sides else ():
        gauge = GaugeMetricFamily(f"sluice_buffers_{key}", text, labels=[*labels, "direction"])
        for *labelled, one in sides:
            name = key.removesuffix("_bytes")
            if name in one:  # of what is received, needs are not known
                gauge.add_metric(labelled, one[name])
        yield gauge
    idle = [(*row[:2], row[2]["idle"]) for row in rows if "idle" in row[2]]
    for key, text in _IDLE.items() if idle else ():
        gauge = GaugeMetricFamily(f"sluice_connections_{key}", text, labels=labels)
        for *labelled, one in idle:
            gauge.add_metric(labelled, _number(one[key]))
        yield gauge
    for key, text in _CLOSINGS.items() if idle else ():
        counters = CounterMetricFamily(f"sluice_connections_{key}", text, labels=labels)
        for *labelled, one in idle:
            counters.add_metric(labelled, one[key])
        yield counters


def _of_news(news: dict[str, Any]) -> Iterator[Metric]:
    yield GaugeMetricFamily("sluice_news_alarm", "1 while responses are slow under more requests", news["alarm"])
    rate, average = _number(news["ar_bps"]) / 8, _number(news["ar_average_bps"]) / 8
    yield GaugeMetricFamily("sluice_news_ar_bytes_per_second", "Rate of the fastest responses", rate)
    yield GaugeMetricFamily("sluice_news_ar_average_bytes_per_second", "Its long-term average", average)
    yield GaugeMetricFamily("sluice_news_flows", "Responses it was measured on", news["flows"])
    yield GaugeMetricFamily("sluice_news_flow_share", "Part of the responses that is measured", news["flow_share"])
    cause = GaugeMetricFamily("sluice_news_cause", "1 for what is going on", labels=["cause"])
    cause.add_metric([news["cause"]], 1)
    yield cause
    limit = GaugeMetricFamily("sluice_news_limit_per_second", "Limit on new connections", labels=["destination"])
    for row in news["limits"]:
        limit.add_metric([row["destination"]], row["limit_per_s"])
    yield limit
    for key, text in _DESTINATION_COUNTERS.items():
        counters = CounterMetricFamily(f"sluice_destination_{key}", text, labels=["destination"])
        for row in news["destinations"]:
            counters.add_metric([row["name"]], row[key])
        yield counters


def _number(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


@contextmanager
def serve(controller: Controller, address: str) -> Generator[None]:
    """Answer scrapes at ``address`` (HOST:PORT) from a thread. Raises OSError, which names it."""
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
