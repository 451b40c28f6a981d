"""Tests of stage `validate`: packets with impossible lengths and addresses."""

from __future__ import annotations

from harness.base import StageTest, completed, unpinned_mid
from harness.flow import Flow
from harness.frames import ICMP, IP, changed, layers, octets
from harness.plan import CLIENT, CLIENT_HOST, D1, D3, DNS, S1, UPLINK_HOST, WEB
from harness.probes import between, ether, plain, routed
from sluice.names import RATE_FLOWS, DropReason, Register


class LengthBelowHeader(StageTest):
    """A packet whose total length is below its header length is dropped."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).syn(), IP_len=19), DropReason.IPV4_LENGTH)


class LengthBeyondFrame(StageTest):
    """A packet whose total length exceeds the frame is dropped."""

    def runTest(self) -> None:
        frame = Flow(WEB, S1).data()
        self.drops(CLIENT, changed(frame, IP_len=len(octets(frame)) - 14 + 1), DropReason.IPV4_LENGTH)


class PaddedFrame(StageTest):
    """Ethernet padding after a packet is neither a wrong length nor payload, so a bare ACK still counts as bare."""

    def runTest(self) -> None:
        flow = self.half_opens(Flow(WEB, S1))
        padding = bytes(6)
        sent = octets(flow.ack()) + padding
        expected = octets(flow.at_server(flow.ack())) + padding
        self.forwards(CLIENT, sent, S1.host.port, expected, completed(S1))
        self.measure_rates(1 << 7)
        answer = flow.reply(flags="A", seq=5001, ack=1001)
        self.forwards(S1.host.port, octets(answer) + padding, CLIENT, octets(flow.at_client(answer)) + padding)
        cells = self.switch.registers.read((Register.RATE_BYTES, slot) for slot in range(RATE_FLOWS))
        self.assertFalse(any(cells), "padding must not count as a response")


class LaterFragment(StageTest):
    """A fragment to a service, other than the first, is dropped: payload is in the place of its TCP ports."""

    def runTest(self) -> None:
        for more in ("", "MF"):
            frame = Flow(WEB, S1).request(b"the middle of something", ip={"frag": 185, "flags": more}, flags="S")
            self.drops(CLIENT, frame, DropReason.FRAGMENT)


class FirstFragmentTcp(StageTest):
    """The first fragment of a TCP segment has ports and is forwarded."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.client_sends(flow, flow.request(b"first part", ip={"flags": "MF"}, flags="A"))


class FirstFragmentUdp(StageTest):
    """The first fragment of a UDP datagram is forwarded, although the UDP length is that of the complete datagram."""

    def runTest(self) -> None:
        flow = Flow(DNS, D3)
        frame = flow.request(b"first part..", ip={"flags": "MF"}, len=3000, chksum=0)
        self.client_sends(flow, frame, unpinned_mid(DNS))


class MartianSource(StageTest):
    """Packets with sources that no host has are dropped: loopback, 0.0.0.0/8, multicast, reserved, broadcast."""

    def runTest(self) -> None:
        for source in ("127.0.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"):
            self.drops(CLIENT, changed(Flow(WEB, S1).syn(), IP_src=source), DropReason.MARTIAN)


class MartianDestination(StageTest):
    """Packets to loopback, multicast and broadcast addresses, and to 0.0.0.0, are dropped."""

    def runTest(self) -> None:
        for destination in ("127.0.0.1", "0.0.0.0", "224.0.0.251", "255.255.255.255"):
            self.drops(CLIENT, plain(CLIENT_HOST, destination), DropReason.MARTIAN)


class Land(StageTest):
    """Packets with equal source and destination address are dropped: the receiver would send its answer to itself."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).syn(), IP_src=WEB.address), DropReason.MARTIAN)


class TcpOffsetTooSmall(StageTest):
    """A TCP segment whose data offset is below 20 bytes is dropped."""

    def runTest(self) -> None:
        for words in (0, 4):
            self.drops(CLIENT, changed(Flow(WEB, S1).data(), TCP_dataofs=words), DropReason.L4_LENGTH)


class TcpOffsetBeyondPacket(StageTest):
    """A TCP segment whose data offset exceeds the packet is dropped."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).ack(), TCP_dataofs=6), DropReason.L4_LENGTH)


class TcpHeaderInPadding(StageTest):
    """A packet that ends inside the TCP header is dropped, although padding follows in the frame."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).ack(), IP_len=20 + 19), DropReason.L4_LENGTH)


class UdpLength(StageTest):
    """A UDP datagram whose length is below its header's, or exceeds the packet, is dropped."""

    def runTest(self) -> None:
        frame = Flow(DNS, D1).request(b"12345678")
        for length in (0, 7, 17):
            self.drops(CLIENT, changed(frame, UDP_len=length), DropReason.L4_LENGTH)


class UdpShorterThanPacket(StageTest):
    """A UDP length below the packet's is unusual, but allowed: the packet is forwarded."""

    def runTest(self) -> None:
        frame = changed(plain(CLIENT_HOST, UPLINK_HOST.address), UDP_len=12, UDP_chksum=0)
        self.forwards(CLIENT, frame, UPLINK_HOST.port, routed(frame, UPLINK_HOST))


class IcmpTooShort(StageTest):
    """An ICMP message with less than eight bytes is dropped."""

    def runTest(self) -> None:
        frame = layers(
            ether(CLIENT_HOST),
            IP(src=CLIENT_HOST.address, dst=CLIENT.address, len=27),
            ICMP(type=8),
        )
        self.drops(CLIENT, frame, DropReason.L4_LENGTH)


class Valid(StageTest):
    """The valid frames from which the other tests derive their frames are forwarded."""

    def runTest(self) -> None:
        self.opens(Flow(WEB, S1))
        self.forwards(CLIENT, *between(CLIENT_HOST, UPLINK_HOST))
