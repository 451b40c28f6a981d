"""What BMv2 needs beyond P4Runtime: deeper egress queues, over its Thrift server."""

from __future__ import annotations

import io
import socket
from typing import Any

import thriftpy2
from thriftpy2.protocol import TBinaryProtocolFactory, TMultiplexedProtocolFactory
from thriftpy2.thrift import TClient, TException
from thriftpy2.transport import TBufferedTransportFactory, TSocket

from topo.errors import LabError
from topo.netns import socket_in

IDL = "service SimpleSwitch { i32 set_all_egress_queue_depths(1: i32 depth_pkts) }"
"""The part of BMv2's interface that is used here (targets/simple_switch/thrift/simple_switch.thrift)."""

EGRESS_QUEUE_PACKETS = 4096
"""BMv2 starts with 64 per port and drops silently above that; one page of the lab is 70 packets."""

TIMEOUT_S = 5.0


def deepen_queues(namespace_pid: int, thrift_port: int) -> None:
    """Give every port of the BMv2 in the namespace a queue of EGRESS_QUEUE_PACKETS; raise LabError if it refuses."""
    interface: Any = thriftpy2.load_fp(io.StringIO(IDL), "simple_switch_thrift")
    protocol: Any = TMultiplexedProtocolFactory(TBinaryProtocolFactory(), "simple_switch")
    with socket_in(namespace_pid, socket.AF_INET, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(TIMEOUT_S)
            connection.connect(("127.0.0.1", thrift_port))
            transport_socket = TSocket()
            transport_socket.set_handle(connection)
            transport: Any = TBufferedTransportFactory().get_transport(transport_socket)
            client = TClient(interface.SimpleSwitch, protocol.get_protocol(transport))
            client.set_all_egress_queue_depths(EGRESS_QUEUE_PACKETS)
        except (OSError, TException) as error:
            raise LabError(f"BMv2 does not take a queue depth over Thrift: {error}") from error
