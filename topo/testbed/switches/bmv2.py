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
"""Length of a port's egress queue in packets. BMv2's default is 64, and a packet that finds the queue full is dropped
and not counted; a page of the lab has 70 packets."""
THRIFT_TIMEOUT_S = 5.0


def find() -> Path:
    """Return the program's path. Raises SetupError if PATH has no such program, or if the found program is the embedded
    switch under BMv2's name."""
    path = shutil.which(PROGRAM)
    if path is None:
        raise SetupError(
            f"{PROGRAM} is not on PATH: install p4lang-bmv2 (https://github.com/p4lang/behavioral-model), or leave"
            " SWITCH=bmv2 out"
        )
    if Path(path).resolve().name == embedded.BINARY.name:
        raise SetupError(f"{path} is the embedded switch: take its folder out of PATH, or put BMv2's in front")
    return Path(path)


def options(endpoints: Endpoints) -> list[str]:
    """Return BMv2's options: the port of Thrift, and a socket for notifications that no other BMv2 process uses."""
    notifications = f"ipc://{endpoints.folder}/notifications.ipc"
    return ["--thrift-port", str(endpoints.thrift_port), "--notifications-addr", notifications]


BMV2 = Kind("bmv2", PROGRAM, find, options, verbose=("--log-console", "-L", "debug", "--log-flush"), thrift=True)


def deepen_queues(namespace_pid: int, thrift_port: int) -> None:
    """Set the egress queues of all ports of a BMv2 in the namespace to EGRESS_QUEUE_PACKETS; raise SetupError if BMv2
    refuses."""
    with socket_in(namespace_pid, socket.AF_INET, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(THRIFT_TIMEOUT_S)
            connection.connect(("127.0.0.1", thrift_port))
            bmv2thrift.client_over(connection, "SimpleSwitch").set_all_egress_queue_depths(EGRESS_QUEUE_PACKETS)
        except (OSError, TException) as error:
            raise SetupError(f"BMv2 does not take a queue depth over Thrift: {error}") from error
