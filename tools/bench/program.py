"""Programs a switch for the bench and exits; run as a process in the switch's namespace.

Usage: `python -m tools.bench.program FILE`. The file is JSON with the keys `config` (the content of sluice.yaml),
`neighbours` (address: [port, MAC]) and `fresh` (whether the program is loaded anew).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from sluice.config.model import Config
from sluice.switch.errors import SwitchError
from sluice.switch.programmer import Programmer

from tools.bench.addresses import (
    CLIENT_MAC,
    CLIENTS,
    CLIENTS_HOP,
    INTERFACES,
    PORT,
    ROUTER_MACS,
    SERVER_MAC,
    VIP,
    extra_routes,
    server_addresses,
)
from topo.plan.network import GRPC_PORT, THRIFT_PORT


def order(*, servers: int, entries: int, thrift: bool, pipeline: Path | None, fresh: bool) -> dict[str, Any]:
    """Return the content of the JSON file with the configuration for the switch."""
    switch: dict[str, Any] = {"address": f"127.0.0.1:{GRPC_PORT}", "device_id": 1}
    if thrift:
        switch["thrift"] = f"127.0.0.1:{THRIFT_PORT}"
    if pipeline is not None:
        switch["pipeline"] = str(pipeline)
    addresses = server_addresses(servers)
    config = {
        "switch": switch,
        "interfaces": [
            {"port": number, "mac": mac, "address": address}
            for number, (mac, address) in enumerate(zip(ROUTER_MACS, INTERFACES, strict=True), start=1)
        ],
        "routes": [
            {"to": CLIENTS, "via": CLIENTS_HOP},
            *({"to": prefix, "via": addresses[0]} for prefix in extra_routes(entries)),
        ],
        "services": [
            {
                "name": "web",
                "address": VIP,
                "port": PORT,
                "balance": {"mode": "fixed", "period_s": 10, "window_s": 200},
                "servers": [
                    {"name": f"s{number}", "address": address, "port": PORT} for number, address in enumerate(addresses)
                ],
            }
        ],
        # Entries of completed connections last for the whole run; pending entries of a SYN flood expire after 2 s.
        "connections": {"idle_s": 3600, "idle_least_s": 3600, "pending_s": 2, "answered_s": 2},
    }
    neighbours = {CLIENTS_HOP: (1, CLIENT_MAC)} | dict.fromkeys(addresses, (2, SERVER_MAC))
    return {"config": config, "neighbours": neighbours, "fresh": fresh}


def main() -> int:
    """Program the switch; return the exit status."""
    content = json.loads(Path(sys.argv[1]).read_text())
    neighbours = {address: (port, mac) for address, (port, mac) in content["neighbours"].items()}
    try:
        with Programmer(Config.model_validate(content["config"]), neighbours, fresh=content["fresh"]):
            pass
    except SwitchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
