"""Tests of stage `translate`, and of checksums: addresses and ports are translated; scapy computes the checksums."""

from __future__ import annotations

from typing import Any, cast

from harness import entries
from harness.base import StageTest, completed, first_answer, new, unpinned_mid
from harness.flow import Flow
from harness.frames import IP, UDP, octets
from harness.plan import CLIENT, D1, DNS, S1, S2, S3, WEB
from scapy.layers.inet import IPOption_NOP, IPOption_RR
from sluice.names import Counter, DropReason

SYN_OPTIONS = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (123456, 0)), ("NOP", None), ("WScale", 7)]
DATA_OPTIONS = [("NOP", None), ("NOP", None), ("Timestamp", (123456, 654321))]
SACK_OPTIONS = [("NOP", None), ("NOP", None), ("SAck", (5001, 6461, 7921, 9381))]


class BothWays(StageTest):
    """In a complete exchange the server receives packets to its own endpoint.

    The client receives packets from the service's endpoint.
    """

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.client_sends(flow, flow.data())
        self.server_sends(flow, flow.reply(b"HTTP/1.0 200 OK\r\n\r\n", flags="PA", seq=5001, ack=1019))
        self.server_sends(flow, flow.reply(flags="FA", seq=5020, ack=1019))
        self.client_sends(flow, flow.fin())


class SamePort(StageTest):
    """For a server on the service's own port, only the address changes."""

    def runTest(self) -> None:
        self.weigh(WEB, {S3: 1})
        self.establishes(Flow(WEB, S3))


class OptionsVerbatim(StageTest):
    """TCP options are forwarded unchanged, and the checksum that covers them stays valid."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.client_sends(flow, flow.request(flags="S", seq=1000, options=SYN_OPTIONS), new(WEB, S1))
        self.server_sends(flow, flow.reply(flags="SA", seq=5000, ack=1001, options=SYN_OPTIONS), first_answer(S1))
        self.client_sends(flow, flow.request(flags="A", seq=1001, ack=5001, options=DATA_OPTIONS), completed(S1))
        data = flow.request(b"x" * 1000, flags="PA", seq=1001, ack=5001, options=DATA_OPTIONS)
        self.client_sends(flow, data)
        self.client_sends(flow, flow.request(flags="A", seq=2001, ack=5001, options=SACK_OPTIONS))
        self.server_sends(flow, flow.reply(b"y" * 1400, flags="A", seq=5001, ack=2001, options=DATA_OPTIONS))


class FlagsVerbatim(StageTest):
    """ECN, urgent pointer, reserved bits and window are forwarded unchanged."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.client_sends(flow, flow.request(flags="SEC", seq=1000, window=29200), new(WEB, S1))
        self.server_sends(flow, flow.reply(flags="SAE", seq=5000, ack=1001), first_answer(S1))
        urgent = flow.request(b"!!", flags="PAU", seq=1001, ack=5001, urgptr=2, reserved=5, window=1)
        self.client_sends(flow, urgent, completed(S1))
        self.client_sends(flow, flow.request(b"ce", ip={"tos": 0x03}, flags="A", seq=1003, ack=5001))


class Ipv4Options(StageTest):
    """IPv4 options are forwarded in both directions."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        route: dict[str, object] = {
            "options": [IPOption_RR(length=11, routers=["1.2.3.4", "0.0.0.0"], pointer=8), IPOption_NOP()]
        }
        self.client_sends(flow, flow.request(ip=route, flags="S", seq=1000), new(WEB, S1))
        self.server_sends(flow, flow.reply(ip=route, flags="SA", seq=5000, ack=1001), first_answer(S1))
        self.client_sends(flow, flow.request(b"data", ip=route, flags="A", seq=1001, ack=5001), completed(S1))


class Sizes(StageTest):
    """Packets with empty, odd, even and large payloads are translated."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        for size in (0, 1, 2, 1459, 1460, 8000):
            payload = bytes(range(256)) * 32
            self.client_sends(flow, flow.data(payload[:size]))
            self.server_sends(flow, flow.reply(payload[:size], flags="A", seq=5001, ack=1001))


class ChecksumCarries(StageTest):
    """Incremental checksums are valid, also if the result is 0, 0xffff, or a value next to these."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        for checksum in (0x0000, 0x0001, 0x7FFF, 0xFFFE, 0xFFFF):
            base = octets(flow.at_server(flow.data(b"\0\0")))
            zero = int.from_bytes(base[14 + 20 + 16 : 14 + 20 + 18], "big")
            word = (zero - checksum) % 0xFFFF
            self.client_sends(flow, flow.data(word.to_bytes(2, "big")))


class Udp(StageTest):
    """Packets of a UDP service are translated in both directions."""

    def setUp(self) -> None:
        super().setUp()
        self.weigh_capacity(DNS, {D1: 1})

    def runTest(self) -> None:
        flow = Flow(DNS, D1)
        self.client_sends(flow, flow.request(b"question"), unpinned_mid(DNS))
        self.server_sends(flow, flow.reply(b"the answer, odd"))


class UdpWithoutChecksum(Udp):
    """A UDP checksum of 0, which means no checksum, is unchanged."""

    def runTest(self) -> None:
        flow = Flow(DNS, D1)
        request, reply = flow.request(b"question", chksum=0), flow.reply(b"answer", chksum=0)
        self.client_sends(flow, request, unpinned_mid(DNS))
        self.server_sends(flow, reply)
        self.assertEqual(cast(Any, flow.at_server(request))[UDP].chksum, 0)


class UdpChecksumOfZero(Udp):
    """A UDP checksum that would become 0 is sent as 0xffff (RFC 768)."""

    def runTest(self) -> None:
        flow = Flow(DNS, D1)
        base = octets(flow.at_server(flow.request(b"\0\0")))
        payload = base[14 + 20 + 6 : 14 + 20 + 8]
        expected = octets(flow.at_server(flow.request(payload)))
        self.assertEqual(expected[14 + 20 + 6 : 14 + 20 + 8], b"\xff\xff")
        self.client_sends(flow, flow.request(payload), unpinned_mid(DNS))


class ServerMoves(StageTest):
    """A changed address of a server applies to its connections from the next packet on."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.replace(entries.server(type(S1)(S1.id, S2.host, 9090)), entries.server(S1))
        moved = flow.to(type(S1)(S1.id, S2.host, 9090))
        self.client_sends(moved, flow.data())


class ServerUnknown(StageTest):
    """If the server that is drawn for a packet is not configured, the packet is dropped with a drop reason of its own.

    It is not counted for a server.
    """

    def runTest(self) -> None:
        self.delete(entries.server(S1))
        counts = [(Counter.OFFERED, WEB.id), (Counter.CLAIMED, WEB.id)]
        flow = Flow(WEB, S1)
        self.drops(CLIENT, flow.syn(), DropReason.SERVER_UNKNOWN, counts)
        self.drops(CLIENT, flow.data(), DropReason.SERVER_UNKNOWN)
        self.assertEqual(cast(Any, flow.syn())[IP].dst, WEB.address)
