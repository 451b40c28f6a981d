"""What BMv2 needs beyond P4Runtime: deeper egress queues, over its Thrift server."""

from __future__ import annotations

import socket

from sluice.switch import bmv2thrift
from thriftpy2.thrift import TException

from testbed.namespaces import socket_in
from topo.errors import LabError

EGRESS_QUEUE_PACKETS = 4096
"""BMv2 starts with 64 per port and drops silently above that; one page of the lab is 70 packets."""

TIMEOUT_S = 5.0


def deepen_queues(namespace_pid: int, thrift_port: int) -> None:
    """Give every port of the BMv2 in the namespace a queue of EGRESS_QUEUE_PACKETS; raise LabError if it refuses."""
    with socket_in(namespace_pid, socket.AF_INET, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(TIMEOUT_S)
            connection.connect(("127.0.0.1", thrift_port))
            bmv2thrift.client_over(connection, "SimpleSwitch").set_all_egress_queue_depths(EGRESS_QUEUE_PACKETS)
        except (OSError, TException) as error:
            raise LabError(f"BMv2 does not take a queue depth over Thrift: {error}") from error
