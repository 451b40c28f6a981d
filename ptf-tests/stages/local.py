"""Tests of stage `local`: ARP, echo requests, and other packets to the router itself."""

from __future__ import annotations

from harness.base import StageTest
from harness.flow import Flow
from harness.frames import ARP, BROADCAST, ICMP, IP, Ether, Packet, changed, layers, tagged
from harness.plan import (
    CLIENT,
    CLIENT_HOST,
    D1,
    DNS,
    EMPTY,
    PORTS,
    S1,
    S1_HOST,
    UPLINK_HOST,
    WEB,
    Host,
    Port,
)
from harness.probes import arp_answer, arp_reply, arp_request, ether, plain
from sluice.names import ECHO_TTL, DropReason, PuntReason

VIRTUAL = "00:00:5e:00:01:07"
"""A MAC address of VRRP, which differs from the MAC address of the host that sends the frame."""


class ArpForInterface(StageTest):
    """An ARP request for the router's address on the port is answered."""

    def runTest(self) -> None:
        for host in (CLIENT_HOST, S1_HOST, UPLINK_HOST):
            request, reply = arp_request(host, host.port.address), arp_answer(host, host.port.address)
            self.reports_sender(host.port, request, PuntReason.SENDER, answer=reply)


class ArpForService(StageTest):
    """An ARP request for a service's address is answered with the MAC address of the port."""

    def runTest(self) -> None:
        request, reply = arp_request(CLIENT_HOST, WEB.address), arp_answer(CLIENT_HOST, WEB.address)
        self.reports_sender(CLIENT, request, PuntReason.SENDER, answer=reply)


class ArpUnicast(StageTest):
    """A unicast ARP request, with which a neighbour refreshes its cache, is answered."""

    def runTest(self) -> None:
        request = arp_request(CLIENT_HOST, CLIENT.address, to=CLIENT.mac)
        self.reports_sender(CLIENT, request, PuntReason.SENDER, answer=arp_answer(CLIENT_HOST, CLIENT.address))


class ArpTagged(StageTest):
    """The reply to a tagged ARP request has the tag of the request."""

    def runTest(self) -> None:
        request = tagged(arp_request(CLIENT_HOST, CLIENT.address), 42, 3)
        answer = tagged(arp_answer(CLIENT_HOST, CLIENT.address), 42, 3)
        self.reports_sender(CLIENT, request, PuntReason.SENDER, answer=answer)


class ArpProbe(StageTest):
    """A host that probes whether the router's address is free (RFC 5227: sender 0.0.0.0) receives a reply."""

    def runTest(self) -> None:
        request = changed(arp_request(CLIENT_HOST, CLIENT.address), ARP_psrc="0.0.0.0")
        answer = changed(arp_answer(CLIENT_HOST, CLIENT.address), ARP_pdst="0.0.0.0")
        self.reports_sender(CLIENT, request, PuntReason.SENDER, answer=answer)


class ArpByProxy(StageTest):
    """If the sender in an ARP message is not the frame's source, the sender is reported, and the source is answered."""

    def runTest(self) -> None:
        request = changed(arp_request(CLIENT_HOST, CLIENT.address), ARP_hwsrc=VIRTUAL)
        answer = changed(arp_answer(CLIENT_HOST, CLIENT.address), ARP_hwdst=VIRTUAL)
        self.reports_sender(CLIENT, request, PuntReason.SENDER, answer=answer)


class ArpForOther(StageTest):
    """An ARP request for another host's address is not answered, but its sender is reported."""

    def runTest(self) -> None:
        for to in (BROADCAST, CLIENT.mac):
            request = arp_request(CLIENT_HOST, "10.0.1.77", to=to)
            self.reports_sender(CLIENT, request, PuntReason.SENDER, drop=DropReason.ARP_IGNORED)


class ArpGratuitous(StageTest):
    """A gratuitous ARP request or reply, broadcast or to the router, reports its sender (RFC 5227, section 3)."""

    def runTest(self) -> None:
        for to in (BROADCAST, S1_HOST.port.mac):
            for operation in (1, 2):
                frame = changed(arp_request(S1_HOST, S1_HOST.address, to=to), ARP_op=operation, ARP_hwsrc=VIRTUAL)
                self.reports_sender(S1_HOST.port, frame, PuntReason.SENDER, drop=DropReason.ARP_IGNORED)


class ArpOtherOperation(StageTest):
    """An ARP message that is neither request nor reply (RARP) reports no sender, even if it is for the router."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(arp_request(CLIENT_HOST, CLIENT.address), ARP_op=3), DropReason.ARP_IGNORED)


class ArpReply(StageTest):
    """An ARP reply to the router reports its sender, which the controller learns as a neighbour."""

    def runTest(self) -> None:
        for to in (CLIENT.mac, BROADCAST):
            self.reports_sender(CLIENT, arp_reply(to), PuntReason.ARP)


class ArpReplyToOther(StageTest):
    """An ARP reply to another host reports its sender, like a reply to the router."""

    def runTest(self) -> None:
        reply = layers(
            Ether(dst=BROADCAST, src=CLIENT_HOST.mac),
            ARP(op=2, hwsrc=CLIENT_HOST.mac, psrc=CLIENT_HOST.address, hwdst=BROADCAST, pdst="10.0.1.77"),
        )
        self.reports_sender(CLIENT, reply, PuntReason.SENDER, drop=DropReason.ARP_IGNORED)


def echo(host: Host, address: str, payload: bytes = b"sixteen bytes...", sequence: int = 1) -> Packet:
    """Return an echo request of a host to an address."""
    return layers(
        ether(host),
        IP(src=host.address, dst=address, ttl=17, id=0x1234, tos=0x10),
        ICMP(type=8, id=7, seq=sequence),
        payload,
    )


def echoed(port: Port, request: Packet) -> Packet:
    """Return the router's reply to an echo request."""
    mac = request["Ether"].src
    network = {"IP_src": request["IP"].dst, "IP_dst": request["IP"].src, "IP_ttl": ECHO_TTL}
    return changed(request, Ether_dst=mac, Ether_src=port.mac, ICMP_type=0, **network)


class EchoInterface(StageTest):
    """A client's echo request is answered, whichever of the router's interfaces has the requested address."""

    def runTest(self) -> None:
        for port in PORTS:
            request = echo(CLIENT_HOST, port.address)
            self.forwards(CLIENT, request, CLIENT, echoed(CLIENT, request))


class EchoService(StageTest):
    """An echo request to the address of a service is answered."""

    def runTest(self) -> None:
        request = echo(CLIENT_HOST, WEB.address)
        self.forwards(CLIENT, request, CLIENT, echoed(CLIENT, request))


class EchoLastHop(StageTest):
    """An echo request to the router with TTL 1 is answered, because the packet is not routed."""

    def runTest(self) -> None:
        request = changed(echo(CLIENT_HOST, CLIENT.address), IP_ttl=1)
        self.forwards(CLIENT, request, CLIENT, echoed(CLIENT, request))


class EchoSizes(StageTest):
    """Echo requests with no, odd and large payloads are answered, also if the checksum has a carry."""

    def runTest(self) -> None:
        for payload in (b"", b"x", bytes(range(256)) * 5):
            request = echo(CLIENT_HOST, CLIENT.address, payload)
            self.forwards(CLIENT, request, CLIENT, echoed(CLIENT, request))
        for word in (0xF7F8, 0xF7F7, 0xF7F9, 0xFFFF):
            request = echo(CLIENT_HOST, CLIENT.address, word.to_bytes(2, "big"), 0)
            self.forwards(CLIENT, request, CLIENT, echoed(CLIENT, request))


class EchoTagged(StageTest):
    """The reply to a tagged echo request has the tag of the request."""

    def runTest(self) -> None:
        request = echo(CLIENT_HOST, CLIENT.address)
        self.forwards(CLIENT, tagged(request, 42, 3), CLIENT, tagged(echoed(CLIENT, request), 42, 3))


class EchoThrough(StageTest):
    """An echo request to another host is routed like any packet, and so is the reply."""

    def runTest(self) -> None:
        request = echo(CLIENT_HOST, UPLINK_HOST.address)
        expected = changed(request, Ether_src=UPLINK_HOST.port.mac, Ether_dst=UPLINK_HOST.mac, IP_ttl=16)
        self.forwards(CLIENT, request, UPLINK_HOST.port, expected)


class FromServer(StageTest):
    """A server's packet to an address of the router is not an answer to a client, and is dropped untranslated."""

    def runTest(self) -> None:
        for address in (S1_HOST.port.address, CLIENT.address, EMPTY.address, WEB.address):
            answer = changed(Flow(WEB, S1).syn_ack(), IP_dst=address)
            self.drops(S1_HOST.port, answer, DropReason.NO_SERVICE)
            answer = changed(Flow(DNS, D1).reply(b"!"), IP_dst=address)
            self.drops(S1_HOST.port, answer, DropReason.NO_SERVICE)


class NoService(StageTest):
    """Packets to an address of the router or of a service, but to no service, are dropped, except echo requests."""

    def runTest(self) -> None:
        self.drops(CLIENT, plain(CLIENT_HOST, CLIENT.address), DropReason.NO_SERVICE)
        self.drops(CLIENT, plain(CLIENT_HOST, EMPTY.address), DropReason.NO_SERVICE)
        self.drops(CLIENT, changed(Flow(WEB, S1).syn(), TCP_dport=81), DropReason.NO_SERVICE)
        self.drops(CLIENT, changed(echo(CLIENT_HOST, CLIENT.address), ICMP_type=0), DropReason.NO_SERVICE)
        network = IP(src=CLIENT_HOST.address, dst=WEB.address, proto=47)
        self.drops(CLIENT, layers(ether(CLIENT_HOST), network, b"gre"), DropReason.NO_SERVICE)
