"""Tests of parser and intake: truncated or unsupported frames, and frames with a wrong IPv4 header, reach no stage."""

from __future__ import annotations

from finsy.proto import p4r
from harness.base import AWAIT_S, StageTest, unpinned_mid
from harness.flow import Flow
from harness.frames import BROADCAST, ICMP, IP, TCP, Packet, changed, layers, octets, tagged
from harness.plan import CLIENT, CLIENT_HOST, S1, UPLINK_HOST, WEB
from harness.probes import arp_request, between, ether, plain
from scapy.layers.inet import IPOption_NOP
from scapy.layers.inet6 import IPv6
from sluice.names import DropReason


def error_about(inner: bytes) -> Packet:
    """Return a client's ICMP error to a service, which quotes the packet `inner`."""
    return layers(ether(CLIENT_HOST), IP(src=CLIENT_HOST.address, dst=WEB.address), ICMP(type=3, code=1), inner)


class TruncatedIpv4(StageTest):
    """A frame that ends inside the IPv4 header is dropped as truncated."""

    def runTest(self) -> None:
        self.drops(CLIENT, octets(Flow(WEB, S1).syn())[: 14 + 19], DropReason.TRUNCATED)


class TruncatedOptions(StageTest):
    """A frame that ends inside the IPv4 options, before the end that the header length states, is dropped."""

    def runTest(self) -> None:
        frame = Flow(WEB, S1).request(ip={"options": [IPOption_NOP()] * 8}, flags="S")
        self.drops(CLIENT, octets(frame)[: 14 + 20 + 4], DropReason.TRUNCATED)


class BehindOptions(StageTest):
    """Base class of the tests of frames that end after their IPv4 header."""

    def lengths(self) -> list[int]:
        """Return lengths of IPv4 options, in bytes: the maximum, and 0 unless the target pads such short frames."""
        return [0, 40] if self.switch.least_frame == 0 else [40]


class TruncatedTcp(BehindOptions):
    """A frame that ends inside the TCP header is dropped; bytes beyond the frame's end are never used as ports."""

    def runTest(self) -> None:
        for options in self.lengths():
            syn = octets(Flow(WEB, S1).request(ip={"options": [IPOption_NOP()] * options}, flags="S"))
            for length in (0, 4, 19 - self.switch.counted_checksum):
                self.drops(CLIENT, syn[: 14 + 20 + options + length], DropReason.TRUNCATED)


class TruncatedUdp(BehindOptions):
    """A frame that ends inside the UDP header is dropped as truncated."""

    def runTest(self) -> None:
        for options in self.lengths():
            frame = octets(plain(CLIENT_HOST, UPLINK_HOST.address, options=[IPOption_NOP()] * options))
            end = 14 + 20 + options + 7 - self.switch.counted_checksum
            self.drops(CLIENT, frame[:end], DropReason.TRUNCATED)


class TruncatedArp(StageTest):
    """A frame that ends inside an ARP packet is dropped as truncated."""

    def runTest(self) -> None:
        frame = arp_request(CLIENT_HOST, CLIENT.address, to=CLIENT.mac)
        self.drops(CLIENT, octets(frame)[: 14 + 27], DropReason.TRUNCATED)


class TruncatedBehindTag(StageTest):
    """A frame that ends shortly after its 802.1Q tag is dropped (one that ends inside the tag does not pass Linux)."""

    def runTest(self) -> None:
        self.drops(CLIENT, octets(tagged(Flow(WEB, S1).syn(), 7))[: 18 + 10], DropReason.TRUNCATED)


class TruncatedInside(StageTest):
    """An ICMP error that quotes less than eight bytes of the transport header, against RFC 792, is dropped."""

    def runTest(self) -> None:
        inner = octets(Flow(WEB, S1).request(flags="A"))[14 : 14 + 20 + 7]
        frame = error_about(inner)
        self.drops(CLIENT, frame, DropReason.TRUNCATED)


class UnsupportedEthertype(StageTest):
    """IPv6 to the router's own MAC address is unsupported."""

    def runTest(self) -> None:
        frame = layers(ether(CLIENT_HOST), IPv6(src="fd00::1", dst="fd00::2"), b"x" * 40)
        self.drops(CLIENT, frame, DropReason.UNSUPPORTED)


class DoubleTag(StageTest):
    """A frame with a second 802.1Q tag is unsupported."""

    def runTest(self) -> None:
        self.drops(CLIENT, tagged(tagged(Flow(WEB, S1).syn(), 7), 8), DropReason.UNSUPPORTED)


class OtherArp(StageTest):
    """An ARP packet with one field that does not belong to Ethernet and IPv4 is unsupported."""

    def runTest(self) -> None:
        good = arp_request(CLIENT_HOST, CLIENT.address, to=CLIENT.mac)
        for field, value in {"hwtype": 6, "ptype": 0x86DD, "hwlen": 8, "plen": 16}.items():
            data = bytearray(octets(good))
            start, size = {"hwtype": (14, 2), "ptype": (16, 2), "hwlen": (18, 1), "plen": (19, 1)}[field]
            data[start : start + size] = value.to_bytes(size, "big")
            self.drops(CLIENT, bytes(data), DropReason.UNSUPPORTED)


class SourceOfNoStation(StageTest):
    """A frame whose source is a group MAC address is dropped: not forwarded, not answered, its sender not reported."""

    def runTest(self) -> None:
        request = arp_request(CLIENT_HOST, CLIENT.address, to=CLIENT.mac)
        echo = layers(ether(CLIENT_HOST), IP(src=CLIENT_HOST.address, dst=CLIENT.address), ICMP(type=8), b"echo")
        syn, through = Flow(WEB, S1).syn(), plain(CLIENT_HOST, UPLINK_HOST.address, ttl=1)
        for source in (BROADCAST, "01:00:5e:00:00:01", "03:00:00:00:00:00"):
            for frame in (request, echo, syn, through, tagged(syn, 7)):
                self.drops(CLIENT, changed(frame, Ether_src=source), DropReason.SOURCE_MAC)


class WrongVersion(StageTest):
    """A packet whose IP version differs from that of the Ethertype is dropped."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).syn(), IP_version=6), DropReason.IPV4_HEADER)


class ShortHeaderLength(StageTest):
    """A packet whose IPv4 header length is below 20 bytes is dropped."""

    def runTest(self) -> None:
        for words in (0, 4):
            self.drops(CLIENT, changed(Flow(WEB, S1).syn(), IP_ihl=words), DropReason.IPV4_HEADER)


class WrongHeaderInside(StageTest):
    """An ICMP error that quotes bytes which are no IPv4 packet is dropped."""

    def runTest(self) -> None:
        for first in (0x65, 0x44):
            inner = bytes([first]) + octets(Flow(WEB, S1).request(flags="A"))[15:]
            frame = error_about(inner)
            self.drops(CLIENT, frame, DropReason.IPV4_HEADER)


class WrongChecksum(StageTest):
    """A packet is dropped if one bit of its IPv4 header is inverted, because the checksum is then wrong."""

    def runTest(self) -> None:
        data = bytearray(octets(Flow(WEB, S1).syn()))
        data[14 + 4] ^= 1
        self.drops(CLIENT, bytes(data), DropReason.IPV4_CHECKSUM)


class WrongChecksumWithOptions(StageTest):
    """The checksum of an IPv4 header also covers the IPv4 options."""

    def runTest(self) -> None:
        frame = Flow(WEB, S1).request(ip={"options": [IPOption_NOP()] * 8}, flags="S")
        data = bytearray(octets(frame))
        data[14 + 20 + 2] ^= 1
        self.drops(CLIENT, bytes(data), DropReason.IPV4_CHECKSUM)


class LargestHeaders(StageTest):
    """A packet with the largest headers, sixty bytes of IPv4 and sixty of TCP, is forwarded unchanged."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        frame = flow.request(
            b"payload",
            ip={"options": [IPOption_NOP()] * 40},
            flags="A",
            options=[("NOP", None)] * 40,
        )
        self.assertEqual(len(octets(frame)), 14 + 60 + 60 + 7)
        self.weigh_capacity(WEB, {S1: 1})
        self.client_sends(flow, frame, unpinned_mid(WEB))


class TaggedFrame(StageTest):
    """One 802.1Q tag is parsed, and stays in the frame."""

    def runTest(self) -> None:
        frame, out, expected = between(CLIENT_HOST, UPLINK_HOST)
        self.forwards(CLIENT, tagged(frame, 42, 5, 1), out, tagged(expected, 42, 5, 1))


class NoCpuHeader(StageTest):
    """A packet-out without its header is not forwarded like a packet from the wire.

    P4Runtime cannot send a packet-out that is too short for the parser: the target refuses it, or adds the missing
    bytes. So no frame leaves by a port in use, and a packet-out that reaches the pipeline counts as `cpu_header` or as
    sent.

    A fence waits for frames, but not for packet-outs, which reach the switch in another way. Therefore the test sends a
    packet-out with a header afterwards. When that packet-out has left, all earlier ones are counted, in this test and
    not in the next one.
    """

    reason = DropReason.CPU_HEADER

    def runTest(self) -> None:
        self.switch.client.packet_out(p4r.PacketOut(payload=b""))
        self.switch.client.packet_out(p4r.PacketOut(payload=octets(Flow(WEB, S1).syn())))
        last = octets(plain(CLIENT_HOST, UPLINK_HOST.address, ttl=1))
        self.switch.client.send(last, self.switch.number(CLIENT))
        left = self.dataplane.poll(device_number=0, port_number=self.switch.number(CLIENT), timeout=AWAIT_S)
        self.assertEqual(self.padded(bytes(left.packet)), self.padded(last))
        outcome = self.settle(CLIENT)
        self.assertEqual(outcome.frames, [])
        self.assertLessEqual({index for _, index in outcome.changes}, {DropReason.NONE, DropReason.CPU_HEADER})
        self.switch.client.stream_errors()


class TcpHeaderBare(StageTest):
    """A complete TCP header without payload is not truncated."""

    def runTest(self) -> None:
        frame = layers(
            ether(CLIENT_HOST),
            IP(src=CLIENT_HOST.address, dst=UPLINK_HOST.address, ttl=64),
            TCP(sport=1, dport=2, flags="A"),
        )
        self.assertEqual(len(octets(frame)), 54)
        expected = changed(frame, Ether_src=UPLINK_HOST.port.mac, Ether_dst=UPLINK_HOST.mac, IP_ttl=63)
        self.forwards(CLIENT, frame, UPLINK_HOST.port, expected)
