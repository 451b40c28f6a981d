"""Thrift calls to BMv2 for what its P4Runtime server lacks: access to registers, and the depth of queues."""

from __future__ import annotations

import io
import socket
from functools import cache
from typing import Any, Literal

import thriftpy2
from thriftpy2.protocol import TBinaryProtocolFactory, TMultiplexedProtocolFactory
from thriftpy2.thrift import TClient
from thriftpy2.transport import TBufferedTransportFactory, TSocket

IDL = """
enum RegisterOperationErrorCode { INVALID_REGISTER_NAME = 1, INVALID_INDEX = 2, ERROR = 3 }
exception InvalidRegisterOperation { 1: RegisterOperationErrorCode code }
service Standard {
  i64 bm_register_read(1: i32 cxt_id, 2: string name, 3: i32 index) throws (1: InvalidRegisterOperation ouch)
  list<i64> bm_register_read_all(1: i32 cxt_id, 2: string name) throws (1: InvalidRegisterOperation ouch)
  void bm_register_write(1: i32 cxt_id, 2: string name, 3: i32 index, 4: i64 value)
    throws (1: InvalidRegisterOperation ouch)
  void bm_register_write_range(1: i32 cxt_id, 2: string name, 3: i32 from_index, 4: i32 to_index, 5: i64 value)
    throws (1: InvalidRegisterOperation ouch)
}
service SimpleSwitch {
  i32 set_all_egress_queue_depths(1: i32 depth_pkts)
}
"""
"""Excerpt of BMv2's `standard.thrift` and `simple_switch.thrift`. It omits `bm_register_reset`, because that call races
with the processing of packets."""

Service = Literal["Standard", "SimpleSwitch"]
_CHANNELS: dict[Service, str] = {"Standard": "standard", "SimpleSwitch": "simple_switch"}


@cache
def interface() -> Any:
    """Return the services and exceptions that thriftpy2 generates from the IDL."""
    return thriftpy2.load_fp(io.StringIO(IDL), "sluice_bmv2_thrift")


def connect(address: str, service: Service, timeout_s: float) -> Any:
    """Return a client of the service at HOST:PORT. Raises OSError or TException if nothing answers there."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client_over(connection, service)


def client_over(connection: socket.socket, service: Service) -> Any:
    """Return a client of the service over an open connection. Closing the client closes the connection."""
    carrier = TSocket()
    carrier.set_handle(connection)
    transport: Any = TBufferedTransportFactory().get_transport(carrier)
    protocol: Any = TMultiplexedProtocolFactory(TBinaryProtocolFactory(), _CHANNELS[service])
    return TClient(getattr(interface(), service), protocol.get_protocol(transport))
