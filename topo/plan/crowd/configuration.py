"""The controller's configuration for Figure 17's network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sluice.switch.bucket import Bucket

from topo.plan.crowd.further import Further
from topo.plan.crowd.network import (
    BYSTANDER,
    BYSTANDER_ADDRESS,
    OTHER,
    PORT,
    ROUTES,
    SWITCH_HOSTS,
    TARGET,
    TARGET_ADDRESS,
)
from topo.plan.crowd.scenarios import BUCKET_S
from topo.plan.crowd.settings import Settings
from topo.plan.network import HostPlan, switch_config


def controller_config(
    server: HostPlan,
    *,
    control_socket: Path,
    thrift: bool,
    settings: Settings,
    static_per_s: float | None = None,
    news: Mapping[str, object] | None = None,
    further: Sequence[Further] = (),
) -> dict[str, object]:
    """Return the content of sluice.yaml: the target is `server`, limited statically, by flash-crowd control or not.

    The static limit is before compression.  Its bucket holds what flash-crowd control's own would at that limit.
    """
    target = _service(TARGET, str(TARGET_ADDRESS), server)
    if static_per_s is not None:
        rate = static_per_s * settings.k
        bucket = Bucket.rounded(rate, rate * BUCKET_S / settings.k)
        target["admission"] = {"rate_per_s": bucket.rate, "burst": bucket.burst}
    content: dict[str, object] = {
        **switch_config(SWITCH_HOSTS, thrift=thrift),
        "routes": ROUTES,
        "services": [
            target,
            _service(BYSTANDER, str(BYSTANDER_ADDRESS), OTHER),
            *(_service(one.name, str(one.address), one.server, one.port) for one in further),
        ],
        "neighbours": {"refresh_s": 3600},
        "control": str(control_socket),
    }
    if news is not None:
        content["news"] = dict(news)
    return content


def _service(name: str, address: str, server: HostPlan, port: int = PORT) -> dict[str, object]:
    return {
        "name": name,
        "address": address,
        "port": PORT,
        "balance": {"mode": "fixed"},
        "servers": [{"name": server.name, "address": str(server.address), "port": port}],
    }
