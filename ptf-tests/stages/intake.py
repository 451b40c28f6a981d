"""Parser and intake: truncated or unsupported frames, and those with a wrong IPv4 header, reach no stage."""

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
    """Return a client's ICMP error about a packet with a service."""
    return layers(ether(CLIENT_HOST), IP(src=CLIENT_HOST.address, dst=WEB.address), ICMP(type=3, code=1), inner)


class TruncatedIpv4(StageTest):
    """The frame ends inside the IPv4 header."""

    def runTest(self) -> None:
        self.drops(CLIENT, octets(Flow(WEB, S1).syn())[: 14 + 19], DropReason.TRUNCATED)


class TruncatedOptions(StageTest):
    """The frame ends inside the IPv4 options, before the end that the header length gives."""

    def runTest(self) -> None:
        frame = Flow(WEB, S1).request(ip={"options": [IPOption_NOP()] * 8}, flags="S")
        self.drops(CLIENT, octets(frame)[: 14 + 20 + 4], DropReason.TRUNCATED)


class BehindOptions(StageTest):
    """Base of the tests of a frame that ends after its IPv4 header."""

    def lengths(self) -> list[int]:
        """Return numbers of bytes of IPv4 options: the most, and none if the target has frames that short."""
        return [0, 40] if self.switch.least_frame == 0 else [40]


class TruncatedTcp(BehindOptions):
    """The frame ends inside the TCP header; bytes beyond its end are never used as ports."""

    def runTest(self) -> None:
        for options in self.lengths():
            syn = octets(Flow(WEB, S1).request(ip={"options": [IPOption_NOP()] * options}, flags="S"))
            for length in (0, 4, 19 - self.switch.counted_checksum):
                self.drops(CLIENT, syn[: 14 + 20 + options + length], DropReason.TRUNCATED)


class TruncatedUdp(BehindOptions):
    """The frame ends inside the UDP header."""

    def runTest(self) -> None:
        for options in self.lengths():
            frame = octets(plain(CLIENT_HOST, UPLINK_HOST.address, options=[IPOption_NOP()] * options))
            end = 14 + 20 + options + 7 - self.switch.counted_checksum
            self.drops(CLIENT, frame[:end], DropReason.TRUNCATED)


class TruncatedArp(StageTest):
    """The frame ends inside an ARP packet."""

    def runTest(self) -> None:
        frame = arp_request(CLIENT_HOST, CLIENT.address, to=CLIENT.mac)
        self.drops(CLIENT, octets(frame)[: 14 + 27], DropReason.TRUNCATED)


class TruncatedBehindTag(StageTest):
    """The frame ends shortly after its 802.1Q tag. (A frame that ends inside the tag does not pass Linux.)"""

    def runTest(self) -> None:
        self.drops(CLIENT, octets(tagged(Flow(WEB, S1).syn(), 7))[: 18 + 10], DropReason.TRUNCATED)


class TruncatedInside(StageTest):
    """An ICMP error carries less than the eight bytes of the transport header that RFC 792 requires."""

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
    """An ARP packet that is not for Ethernet and IPv4, with one wrong field at a time, is unsupported."""

    def runTest(self) -> None:
        good = arp_request(CLIENT_HOST, CLIENT.address, to=CLIENT.mac)
        for field, value in {"hwtype": 6, "ptype": 0x86DD, "hwlen": 8, "plen": 16}.items():
            data = bytearray(octets(good))
            start, size = {"hwtype": (14, 2), "ptype": (16, 2), "hwlen": (18, 1), "plen": (19, 1)}[field]
            data[start : start + size] = value.to_bytes(size, "big")
            self.drops(CLIENT, bytes(data), DropReason.UNSUPPORTED)


class SourceOfNoStation(StageTest):
    """A frame from a group's MAC address is not answered, and its sender is not reported, whatever it carries."""

    def runTest(self) -> None:
        request = arp_request(CLIENT_HOST, CLIENT.address, to=CLIENT.mac)
        echo = layers(ether(CLIENT_HOST), IP(src=CLIENT_HOST.address, dst=CLIENT.address), ICMP(type=8), b"echo")
        syn, through = Flow(WEB, S1).syn(), plain(CLIENT_HOST, UPLINK_HOST.address, ttl=1)
        for source in (BROADCAST, "01:00:5e:00:00:01", "03:00:00:00:00:00"):
            for frame in (request, echo, syn, through, tagged(syn, 7)):
                self.drops(CLIENT, changed(frame, Ether_src=source), DropReason.SOURCE_MAC)


class WrongVersion(StageTest):
    """The header's IP version does not agree with the Ethertype."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).syn(), IP_version=6), DropReason.IPV4_HEADER)


class ShortHeaderLength(StageTest):
    """The header length is below 20 bytes."""

    def runTest(self) -> None:
        for words in (0, 4):
            self.drops(CLIENT, changed(Flow(WEB, S1).syn(), IP_ihl=words), DropReason.IPV4_HEADER)


class WrongHeaderInside(StageTest):
    """An ICMP error quotes bytes that are no IPv4 packet."""

    def runTest(self) -> None:
        for first in (0x65, 0x44):
            inner = bytes([first]) + octets(Flow(WEB, S1).request(flags="A"))[15:]
            frame = error_about(inner)
            self.drops(CLIENT, frame, DropReason.IPV4_HEADER)


class WrongChecksum(StageTest):
    """An IPv4 header has one inverted bit."""

    def runTest(self) -> None:
        data = bytearray(octets(Flow(WEB, S1).syn()))
        data[14 + 4] ^= 1
        self.drops(CLIENT, bytes(data), DropReason.IPV4_CHECKSUM)


class WrongChecksumWithOptions(StageTest):
    """The checksum covers the options too."""

    def runTest(self) -> None:
        frame = Flow(WEB, S1).request(ip={"options": [IPOption_NOP()] * 8}, flags="S")
        data = bytearray(octets(frame))
        data[14 + 20 + 2] ^= 1
        self.drops(CLIENT, bytes(data), DropReason.IPV4_CHECKSUM)


class LargestHeaders(StageTest):
    """The largest headers, sixty bytes of IPv4 and sixty of TCP, pass unchanged."""

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
    """One 802.1Q tag is parsed, and kept."""

    def runTest(self) -> None:
        frame, out, expected = between(CLIENT_HOST, UPLINK_HOST)
        self.forwards(CLIENT, tagged(frame, 42, 5, 1), out, tagged(expected, 42, 5, 1))


class NoCpuHeader(StageTest):
    """A packet-out without its header is not forwarded as a packet from the wire.

    P4Runtime offers no way to send one that is too short for the parser: the target refuses it, or adds what is
    missing. So none leaves by a port in use, and one that reaches the pipeline counts as `cpu_header` or as sent.

    A fence waits for frames, not for packet-outs, which reach the switch by another way. So a packet-out with a header
    follows: when it has left, those before it are counted, here and not in the next test.
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
