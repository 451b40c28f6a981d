"""BMv2: a stock simple_switch_grpc from PATH, built with Thrift."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

from sluice.switch import bmv2thrift
from thriftpy2.thrift import TException

from topo.testbed.errors import SetupError
from topo.testbed.namespaces import socket_in

from . import embedded
from .kind import Endpoints, Kind

PROGRAM = "simple_switch_grpc"
EGRESS_QUEUE_PACKETS = 4096
"""BMv2 starts with 64 per port and drops silently above that; one page of the lab is 70 packets."""
THRIFT_TIMEOUT_S = 5.0


def find() -> Path:
    """The program. Raises SetupError where PATH has none, or the embedded switch under its name."""
    found = shutil.which(PROGRAM)
    if found is None:
        raise SetupError(
            f"{PROGRAM} is not on PATH: install p4lang-bmv2 (https://github.com/p4lang/behavioral-model), or leave"
            " SWITCH=bmv2 out"
        )
    if Path(found).resolve().name == embedded.BINARY.name:
        raise SetupError(f"{found} is the embedded switch: take its folder out of PATH, or put BMv2's in front")
    return Path(found)


def options(endpoints: Endpoints) -> list[str]:
    """Thrift, and a socket for notifications that no other BMv2 has."""
    notifications = f"ipc://{endpoints.folder}/notifications.ipc"
    return ["--thrift-port", str(endpoints.thrift_port), "--notifications-addr", notifications]


BMV2 = Kind("bmv2", PROGRAM, find, options, verbose=("--log-console", "-L", "debug", "--log-flush"), thrift=True)


def deepen_queues(namespace_pid: int, thrift_port: int) -> None:
    """Give every port of the BMv2 in the namespace a queue of EGRESS_QUEUE_PACKETS; raise SetupError if it refuses."""
    with socket_in(namespace_pid, socket.AF_INET, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(THRIFT_TIMEOUT_S)
            connection.connect(("127.0.0.1", thrift_port))
            bmv2thrift.client_over(connection, "SimpleSwitch").set_all_egress_queue_depths(EGRESS_QUEUE_PACKETS)
        except (OSError, TException) as error:
            raise SetupError(f"BMv2 does not take a queue depth over Thrift: {error}") from error
