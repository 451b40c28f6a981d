"""Tests of stage `classify`: a packet is to a service, from a server, or neither."""

from __future__ import annotations

from harness.base import StageTest, new, unpinned_mid
from harness.flow import Flow
from harness.frames import changed
from harness.plan import CLIENT, CLIENT_HOST, D1, DNS, POOL_A, POOL_B, S1, S2, S3, S3_HOST, WEB
from harness.probes import between, plain
from sluice.names import DropReason


class ToService(StageTest):
    """Destination address, protocol and port together identify a service."""

    def runTest(self) -> None:
        self.opens(Flow(WEB, S1))


class SamePortOtherProtocol(StageTest):
    """TCP to the port of a UDP service belongs to no service, and neither does UDP to the port of a TCP service."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).syn(), TCP_dport=DNS.port), DropReason.NO_SERVICE)
        self.drops(CLIENT, changed(Flow(DNS, D1).request(b"?"), UDP_dport=WEB.port), DropReason.NO_SERVICE)


class DirectToServer(StageTest):
    """A packet to a server's own endpoint is dropped, because the answers would have the service's source address."""

    def runTest(self) -> None:
        for server in (S1, S2, S3):
            frame = changed(Flow(WEB, server).syn(), IP_dst=server.host.address, TCP_dport=server.port)
            self.drops(CLIENT, frame, DropReason.DIRECT_TO_SERVER)


class OtherPortOfServer(StageTest):
    """A server's other ports are reachable like those of any host."""

    def runTest(self) -> None:
        self.forwards(CLIENT, *between(CLIENT_HOST, S3_HOST))
        self.forwards(POOL_B, *between(S3_HOST, CLIENT_HOST))


class SameAddressTwoServices(StageTest):
    """One address may have several services, each with its own servers."""

    def runTest(self) -> None:
        web, dns = Flow(WEB, S1), Flow(DNS, D1)
        self.weigh_capacity(DNS, {D1: 1})
        self.client_sends(web, web.syn(), new(WEB, S1))
        self.client_sends(dns, dns.request(b"?"), unpinned_mid(DNS))


class AnswerWithoutPin(StageTest):
    """Answers are translated by a static table, so they are translated even if their connections have no pin."""

    def runTest(self) -> None:
        for server in (S1, S2, S3):
            flow = Flow(WEB, server)
            self.server_sends(flow, flow.reply(b"late data", flags="PA", seq=5001, ack=1001))
            self.assertNotPinned(flow.key)


class AnswerOfOtherPort(StageTest):
    """A packet of a server is not translated if its source port belongs to no service."""

    def runTest(self) -> None:
        frame = plain(S1.host, CLIENT_HOST.address)
        expected = changed(frame, Ether_src=CLIENT.mac, Ether_dst=CLIENT_HOST.mac, IP_ttl=63)
        self.forwards(POOL_A, frame, CLIENT, expected)
