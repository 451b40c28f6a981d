"""The controller's configuration for Figure 17's network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from topo.news.network import ROUTES
from topo.news.plan import (
    BYSTANDER,
    BYSTANDER_ADDRESS,
    OTHER,
    PORT,
    SWITCH_HOSTS,
    TARGET,
    TARGET_ADDRESS,
)
from topo.plan import GRPC_PORT, THRIFT_PORT, HostPlan


def controller_config(
    server: HostPlan,
    *,
    control_socket: Path,
    thrift: bool,
    static_rate_per_s: float | None = None,
    news: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return the content of sluice.yaml: the target is `server`, limited statically, by flash-crowd control or not."""
    switch: dict[str, object] = {"address": f"127.0.0.1:{GRPC_PORT}", "device_id": 1}
    if thrift:
        switch["thrift"] = f"127.0.0.1:{THRIFT_PORT}"
    target = _service(TARGET, str(TARGET_ADDRESS), server)
    if static_rate_per_s is not None:
        rate = max(1, round(static_rate_per_s))
        target["admission"] = {"rate_per_s": rate, "burst": max(1, rate // 4)}
    content: dict[str, object] = {
        "switch": switch,
        "interfaces": [
            {"port": host.port, "mac": host.gateway_mac, "address": str(host.gateway), "vlan": "keep"}
            for host in SWITCH_HOSTS
        ],
        "routes": ROUTES,
        "services": [target, _service(BYSTANDER, str(BYSTANDER_ADDRESS), OTHER)],
        "neighbours": {"refresh_s": 3600},
        "control": str(control_socket),
    }
    if news is not None:
        content["news"] = dict(news)
    return content


def _service(name: str, address: str, server: HostPlan) -> dict[str, object]:
    return {
        "name": name,
        "address": address,
        "port": PORT,
        "balance": {"mode": "fixed"},
        "servers": [{"name": server.name, "address": str(server.address), "port": PORT}],
    }
