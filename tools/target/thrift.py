"""What BMv2 offers over Thrift only: registers, and the depth of its queues."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import thriftpy2
from thriftpy2.protocol import TBinaryProtocolFactory, TMultiplexedProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.transport import TBufferedTransportFactory

IDL = """
service Standard {
  list<i64> bm_register_read_all(1: i32 cxt_id, 2: string name)
}
service SimpleSwitch {
  i32 set_all_egress_queue_depths(1: i32 depth_pkts)
}
"""
TIMEOUT_MS = 60_000


@cache
def _interface() -> Any:
    return thriftpy2.load_fp(io.StringIO(IDL), "sluice_tools_bmv2_thrift")


def _client(address: str, service: str, multiplexed: str) -> Any:
    host, _, port = address.rpartition(":")
    protocol: Any = TMultiplexedProtocolFactory(TBinaryProtocolFactory(), multiplexed)
    return make_client(
        getattr(_interface(), service),
        host,
        int(port),
        proto_factory=protocol,
        trans_factory=TBufferedTransportFactory(),
        timeout=TIMEOUT_MS,
    )


def read_register(address: str, name: str) -> list[int]:
    """Every cell of a register of at most 63 bits."""
    client = _client(address, "Standard", "standard")
    try:
        return client.bm_register_read_all(0, name)
    finally:
        client.close()


def deepen_queues(address: str, packets: int) -> None:
    """Let the queues hold so many packets; BMv2 drops what is beyond 64 without a word."""
    client = _client(address, "SimpleSwitch", "simple_switch")
    try:
        client.set_all_egress_queue_depths(packets)
    finally:
        client.close()
