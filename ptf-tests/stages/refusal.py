"""Tests of stage `refusal`: a refused SYN is answered by an RST, or dropped silently."""

from __future__ import annotations

from typing import Any, cast

from harness import entries
from harness.base import Changes, admitted, again, refused, repeated
from harness.crowds import HOT, OFFERED_WEB, OTHER, REFUSED_WEB, Crowd, segment
from harness.flow import Flow
from harness.frames import IP, TCP, Ether, Packet, changed, layers, octets, tagged
from harness.plan import CLIENT, S1, S1_HOST, S3, S3_HOST, WEB
from scapy.layers.inet import IPOption_NOP
from sluice.names import RESET_TTL, DropReason, Meter

OPTIONS = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (12345, 0)), ("NOP", None), ("WScale", 7)]


class Reset(Crowd):
    """Base class of the tests in which the switch answers a refused SYN."""

    def resets(self, frame: Packet, *changes: Changes, payload: int = 0, vlan: int | None = None) -> None:
        """Send a SYN; assert that the switch sends an RST to the SYN's sender, and no other frame.

        `payload`: number of bytes of the SYN's payload. `vlan`: the tag of the RST; None: no tag.
        """
        sent: Any = frame
        ip, tcp = sent[IP], sent[TCP]
        network: dict[str, Any] = {"src": ip.dst, "dst": ip.src, "ttl": RESET_TTL, "id": ip.id}
        reset = layers(
            Ether(dst=sent.src, src=CLIENT.mac),
            cast(Any, IP)(**network),
            TCP(sport=tcp.dport, dport=tcp.sport, flags="RA", seq=0, ack=(tcp.seq + payload + 1) % (1 << 32), window=0),
        )
        ethernet = 14
        if vlan is not None:
            reset = tagged(reset, vlan)
            ethernet += 4
        # Bytes after the SYN's headers stay in the frame, as a trailer that hosts ignore.
        data = octets(frame)
        trailer = data[ethernet + 4 * (data[ethernet] & 15) + 20 :]
        self.answers(CLIENT, frame, octets(reset) + trailer, DropReason.ADMISSION_RESET, *changes)


class ResetOfService(Reset):
    """A refused SYN to a service is answered by an RST, whether the bucket of destination or service refuses it."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT, answer_reset=True)
        self.limit(1)
        flow = self.opens_web(40001, admitted(HOT))
        self.spent()
        counts = (OFFERED_WEB, REFUSED_WEB, refused(HOT))
        late = Flow(WEB, S1, client_port=40002)
        self.resets(late.syn(), *counts)
        self.assertNotPinned(late.key)
        self.client_sends(flow, flow.syn(), again(WEB, S1), repeated(HOT))
        self.switch.modify([entries.unmetered(Meter.DESTINATION_LIMIT, HOT)])
        self.meter(Meter.ADMISSION, WEB.id, cir=0, cburst=1, pir=0, pburst=1)
        self.opens_web(40003, admitted(HOT))
        self.spent()
        self.resets(late.syn(), *counts)


class ResetOfHost(Reset):
    """A SYN above a host's limit is answered by an RST; the host receives nothing."""

    def runTest(self) -> None:
        self.exhausts(S3_HOST, answer_reset=True)
        self.resets(segment(S3_HOST.address), refused(HOT))
        self.resets(segment(S3_HOST.address, options=OPTIONS, flags="SEC", window=1024, urgptr=7), refused(HOT))


class ResetNumbers(Reset):
    """The RST acknowledges the SYN and the SYN's payload, also if sequence numbers wrap."""

    def runTest(self) -> None:
        self.exhausts(S3_HOST, answer_reset=True)
        self.resets(layers(segment(S3_HOST.address), b"early data"), refused(HOT), payload=10)
        self.resets(segment(S3_HOST.address, seq=(1 << 32) - 1), refused(HOT))


class ResetOddHeaders(Reset):
    """The RST has no IPv4 options, but the SYN's tag; a first fragment, of unknown length, is dropped silently."""

    def runTest(self) -> None:
        self.exhausts(S3_HOST, answer_reset=True)
        options = [IPOption_NOP()] * 4
        self.resets(changed(segment(S3_HOST.address), IP_options=options), refused(HOT))
        self.resets(tagged(segment(S3_HOST.address), 7), refused(HOT), vlan=7)
        fragment = changed(segment(S3_HOST.address), IP_flags="MF")
        self.drops(CLIENT, fragment, DropReason.ADMISSION_REFUSED, refused(HOT))


class SilentBesideReset(Reset):
    """Of two destinations, one answers refused SYNs by RSTs, and the other drops them."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT)
        self.watch(S3_HOST.address, OTHER, answer_reset=True)
        self.limit(1)
        self.limit(1, destination=OTHER)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.passes(S3_HOST, segment(S3_HOST.address), admitted(OTHER))
        self.spent()
        self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))
        self.resets(segment(S3_HOST.address), refused(OTHER))
        unlimited = Flow(WEB, S3, client_port=40009)
        self.weigh(WEB, {S3: 1})
        self.opens(unlimited)
