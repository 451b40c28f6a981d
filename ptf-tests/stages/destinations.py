"""Stages `destinations`, `requests` and `refusal`: new connections counted and limited by the address they are for."""

from __future__ import annotations

import itertools
import time
import zlib
from typing import Any, cast

from harness import entries
from harness.base import (
    AWAIT_S,
    Changes,
    StageTest,
    admitted,
    again,
    completed,
    first_answer,
    new,
    refused,
    repeated,
    returned,
)
from harness.flow import Flow
from harness.frames import IP, TCP, Ether, Packet, changed, layers, octets, tagged
from harness.plan import (
    CLIENT,
    CLIENT_GATEWAY,
    CLIENT_HOST,
    POOL_B,
    S1,
    S1_HOST,
    S2,
    S2_HOST,
    S3,
    S3_HOST,
    UPLINK,
    UPLINK_HOST,
    WEB,
    Host,
)
from harness.probes import ether, routed
from scapy.layers.inet import IPOption_NOP
from sluice.addresses import from_text
from sluice.names import (
    ADMITTED_CLIENTS,
    RESET_TTL,
    Counter,
    DropReason,
    Meter,
    PinState,
    Register,
    TofinoRegister,
)
from sluice.switch.targets import TOFINO

OFFERED_WEB = (Counter.OFFERED, WEB.id)
REFUSED_WEB = (Counter.REFUSED, WEB.id)
HOT, OTHER = 1, 2
"""Numbers of the destinations."""

BYSTANDER = Host(POOL_B, "10.0.3.30", "02:00:00:00:03:30")
"""A protected host that is no server."""

MINUTE = 916
"""In ticks."""

OPTIONS = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (12345, 0)), ("NOP", None), ("WScale", 7)]


def segment(
    destination: str, port: int = 22, source: Host = CLIENT_HOST, client_port: int = 50000, **fields: object
) -> Packet:
    """A TCP segment that is for no service; a SYN unless told otherwise."""
    header: dict[str, object] = {"flags": "S", "seq": 1000, **fields}
    tcp = cast(Any, TCP)(sport=client_port, dport=port, **header)
    return layers(ether(source), IP(src=source.address, dst=destination), tcp)


class Crowd(StageTest):
    """Base of the tests in which a destination's bucket holds a few SYNs and is never refilled."""

    def limit(self, burst: int, known: int | None = None, destination: int = HOT) -> None:
        """Let ``burst`` SYNs of anybody pass, and then ``known`` of clients in memory."""
        self.meter(Meter.DESTINATION_LIMIT, destination, cir=0, cburst=burst, pir=0, pburst=burst)
        if known is not None:
            self.meter(Meter.RETURNING_LIMIT, destination, cir=0, cburst=known, pir=0, pburst=known)

    def passes(self, host: Host, frame: Packet, *changes: Changes, source: Host = CLIENT_HOST) -> None:
        """The frame is routed to the host."""
        self.forwards(source.port, frame, host.port, routed(frame, host), *changes)

    def opens_web(self, client_port: int, *changes: Changes) -> Flow:
        """A new connection to the service that is admitted and pinned."""
        flow = Flow(WEB, S1, client_port=client_port)
        self.client_sends(flow, flow.syn(), new(WEB, S1), *changes)
        return flow

    def refuses_web(self, flow: Flow, number: int = HOT) -> None:
        """A SYN to the service that is held back: no pin, nothing in the ledger."""
        self.drops(CLIENT, flow.syn(), DropReason.ADMISSION_REFUSED, OFFERED_WEB, REFUSED_WEB, refused(number))
        self.assertNotPinned(flow.key)

    def others(self) -> list[int]:
        """Offered, admitted and refused requests of all destinations without an entry."""
        registers = (Register.REQUESTS_OFFERED, Register.REQUESTS_ADMITTED, Register.REQUESTS_REFUSED)
        return self.switch.registers.read([(register, 0) for register in registers])


class Unlisted(Crowd):
    """Requests towards a destination without an entry are counted together, in cell 0, and never held back by it."""

    def runTest(self) -> None:
        self.limit(1, destination=0)
        self.spent()
        before = self.others()
        self.opens_web(40001)
        self.passes(S2_HOST, segment(S2_HOST.address))
        self.passes(S2_HOST, segment(S2_HOST.address, client_port=50001))
        self.assertEqual([b - a for a, b in zip(before, self.others(), strict=True)], [3, 3, 0])


class UnlistedRefused(Crowd):
    """What a service's own bucket holds back is counted there too, as refused."""

    def runTest(self) -> None:
        self.meter(Meter.ADMISSION, WEB.id, cir=0, cburst=1, pir=0, pburst=1)
        before = self.others()
        self.opens_web(40001)
        self.spent()
        self.drops(
            CLIENT, Flow(WEB, S1, client_port=40002).syn(), DropReason.ADMISSION_REFUSED, OFFERED_WEB, REFUSED_WEB
        )
        self.assertEqual([b - a for a, b in zip(before, self.others(), strict=True)], [2, 1, 1])


class ServiceLimited(Crowd):
    """A service's address: what is above the limit is refused, and a retry is as good as a new request."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT)
        self.opens_web(40001, admitted(HOT))
        self.limit(2)
        self.opens_web(40002, admitted(HOT))
        self.opens_web(40003, admitted(HOT))
        self.spent()
        late = Flow(WEB, S1, client_port=40004)
        self.refuses_web(late)
        self.refuses_web(late)


class YellowIsAdmitted(Crowd):
    """A bucket of two colours: yellow passes as well."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT)
        self.meter(Meter.DESTINATION_LIMIT, HOT, cir=0, cburst=1, pir=0, pburst=3)
        for port in (50001, 50002, 50003):
            self.passes(S1_HOST, segment(S1_HOST.address, client_port=port), admitted(HOT))
        self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))


class PinnedPasses(Crowd):
    """The retransmitted SYN of a connection that was admitted passes, above the limit too."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT)
        self.limit(1)
        flow = self.opens_web(40001, admitted(HOT))
        self.spent()
        self.client_sends(flow, flow.syn(), again(WEB, S1), repeated(HOT))
        self.client_sends(flow, flow.syn(), again(WEB, S1), repeated(HOT))
        self.assertPinned(flow, PinState.PENDING)
        self.refuses_web(Flow(WEB, S1, client_port=40002))


class AdmittedAreConnections(Crowd):
    """A SYN that repeats its connection's is offered again and admitted no further time, be it answered or not. One
    that uses the ports of an established connection again asks for a connection of its own."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT)
        flow = self.opens_web(40001, admitted(HOT))
        self.client_sends(flow, flow.syn(), again(WEB, S1), repeated(HOT))
        self.server_sends(flow, flow.syn_ack(), first_answer(S1))
        self.client_sends(flow, flow.syn(), again(WEB, S1), repeated(HOT))
        self.client_sends(flow, flow.ack(), completed(S1))
        self.client_sends(flow, flow.syn(), again(WEB, S1), admitted(HOT))
        self.client_sends(flow, flow.syn(), again(WEB, S1), repeated(HOT))


class EstablishedUntouched(Crowd):
    """Connections that exist go on, whatever the limit: requests, answers, their end."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT)
        flow = Flow(WEB, S1)
        self.opens_web(flow.key.client_port, admitted(HOT))
        self.server_sends(flow, flow.syn_ack(), first_answer(S1))
        self.limit(1)
        self.opens_web(40009, admitted(HOT))
        self.spent()
        self.refuses_web(Flow(WEB, S1, client_port=40010))
        self.client_sends(flow, flow.ack(), completed(S1))
        self.client_sends(flow, flow.data())
        self.server_sends(flow, flow.reply(b"page", flags="PA", seq=5001, ack=1019))
        self.client_sends(flow, flow.fin())


class OneServerAddress(Crowd):
    """One server's own address, past any service; its neighbour is a bystander."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT)
        self.limit(1)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.spent()
        for _ in range(2):
            self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))
        self.passes(S2_HOST, segment(S2_HOST.address))
        self.opens_web(40001)


class HostOfNoService(Crowd):
    """A host that is no service at all, whatever its port; what is not a request passes."""

    def runTest(self) -> None:
        self.insert(self.switch.neighbour(BYSTANDER))
        self.watch(BYSTANDER.address, HOT)
        self.limit(2)
        self.passes(BYSTANDER, segment(BYSTANDER.address, port=80), admitted(HOT))
        self.passes(BYSTANDER, segment(BYSTANDER.address, port=443), admitted(HOT))
        self.spent()
        self.drops(CLIENT, segment(BYSTANDER.address, port=22), DropReason.ADMISSION_REFUSED, refused(HOT))
        for flags in ("SA", "A", "PA", "FA", "R"):
            self.passes(BYSTANDER, segment(BYSTANDER.address, port=80, flags=flags))


class EachItsOwn(Crowd):
    """Two destinations have a bucket and counts each."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT)
        self.watch(S2_HOST.address, OTHER)
        self.limit(1)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.spent()
        self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))
        for port in (50001, 50002, 50003):
            self.passes(S2_HOST, segment(S2_HOST.address, client_port=port), admitted(OTHER))


class FromInside(Crowd):
    """A connection that a host inside opens is no request: neither counted nor limited."""

    def runTest(self) -> None:
        self.watch(UPLINK_HOST.address, HOT)
        self.watch(S3_HOST.address, OTHER)
        self.limit(1)
        self.limit(1, destination=OTHER)
        self.spent()
        before = self.others()
        for port in (50001, 50002, 50003):
            self.passes(UPLINK_HOST, segment(UPLINK_HOST.address, source=S1_HOST, client_port=port), source=S1_HOST)
            self.passes(S3_HOST, segment(S3_HOST.address, source=S1_HOST, client_port=port), source=S1_HOST)
        self.assertEqual(self.others(), before)


class FromUplink(Crowd):
    """Every port that is not inside is outside."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT)
        self.limit(1)
        frame = segment(S1_HOST.address, source=UPLINK_HOST)
        self.passes(S1_HOST, frame, admitted(HOT), source=UPLINK_HOST)
        self.spent()
        self.drops(UPLINK, frame, DropReason.ADMISSION_REFUSED, refused(HOT))


class ServiceFirst(Crowd):
    """What the service's own bucket refuses takes no token of the destination's."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT)
        self.limit(2)
        self.meter(Meter.ADMISSION, WEB.id, cir=0, cburst=1, pir=0, pburst=1)
        self.opens_web(40001, admitted(HOT))
        for port in (40002, 40003, 40004):
            self.refuses_web(Flow(WEB, S1, client_port=port))
        self.switch.modify([entries.unmetered(Meter.ADMISSION, WEB.id)])
        self.opens_web(40005, admitted(HOT))
        self.refuses_web(Flow(WEB, S1, client_port=40006))


class Driven(Crowd):
    """As a controller drives it: limits written while requests come in hold at once, up, down and off."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT)
        ports = itertools.count(40000)
        for burst in (2, 5, 1, 3):
            self.limit(burst)
            for _ in range(burst):
                self.opens_web(next(ports), admitted(HOT))
            self.spent()
            self.refuses_web(Flow(WEB, S1, client_port=next(ports)))
        self.switch.modify([entries.unmetered(Meter.DESTINATION_LIMIT, HOT)])
        for _ in range(6):
            self.opens_web(next(ports), admitted(HOT))


class Refilled(Crowd):
    """Tokens come back at the rate that was written: ten a second, and no more than the bucket holds."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT)
        self.meter(Meter.DESTINATION_LIMIT, HOT, cir=10, cburst=32, pir=10, pburst=32)
        frames = [octets(segment(S1_HOST.address))] * 100
        changes = self.burst(CLIENT, frames).changes
        self.assertGreater(changes[Register.REQUESTS_REFUSED, HOT], 0)
        deadline = time.monotonic() + AWAIT_S  # a model's clock may be slow
        while (Register.REQUESTS_ADMITTED, HOT) not in self.exchange(CLIENT, frames[0]).changes:
            self.assertLess(time.monotonic(), deadline, "no token comes back")
            time.sleep(0.2)


class Entered(Crowd):
    """An address that becomes a destination, or another one's number, while requests come in."""

    def runTest(self) -> None:
        self.passes(S1_HOST, segment(S1_HOST.address))
        entry = entries.destination(S1_HOST.address, HOT)
        self.insert(entry)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.switch.modify([entries.destination(S1_HOST.address, OTHER)])
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(OTHER))


class SecondPass(Crowd):
    """A SYN that passes twice is counted once and takes one token."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT)
        self.limit(3)
        flow = self.opens_web(40000, admitted(HOT))
        self.drain(S1)
        self.weigh(WEB, {S2: 1})
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), again(WEB, S2), (Counter.MOVED, WEB.id), repeated(HOT))
        third = Flow(WEB, S2, client_port=40001)
        self.client_sends(third, third.syn(), new(WEB, S2), admitted(HOT))
        self.refuses_web(Flow(WEB, S2, client_port=40002))


class RefusedOfDraining(Crowd):
    """A refused SYN does not go to a draining server, whatever pin it has, nor to another one."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT)
        self.limit(1)
        flow = self.opens_web(40000, admitted(HOT))
        self.spent()
        self.drain(S1)
        self.weigh(WEB, {S2: 1})
        self.drops(CLIENT, flow.syn(), DropReason.ADMISSION_REFUSED, (Counter.OFFERED, WEB.id), repeated(HOT))
        self.assertPinned(flow, PinState.PENDING)


# -- clients that were admitted before


def memory(client: str, destination: str) -> tuple[int, int]:
    """Cell and fingerprint of a client: AdmittedClients of p4src/v1model/externs/clients.p4."""
    hashed = zlib.crc32(from_text(client).packed + from_text(destination).packed)
    return hashed % ADMITTED_CLIENTS, hashed // ADMITTED_CLIENTS


class Remembered(Crowd):
    """Base of the tests of the memory, which they begin with an empty one."""

    def setUp(self) -> None:
        super().setUp()
        self.switch.registers.clear(Register.ADMITTED_CLIENTS)

    def stamp(self, client: str, destination: str) -> int | None:
        """When the client was last admitted, in ticks; None when it is not in the memory."""
        cell, fingerprint = memory(client, destination)
        (value,) = self.switch.registers.read([(Register.ADMITTED_CLIENTS, cell)])
        if self.switch.pipeline.target is TOFINO:
            (stamp,) = self.switch.registers.read([(TofinoRegister.ADMITTED_STAMPS, cell)])
            value = value << 32 | stamp
        return value & 0xFFFFFFFF if value and value >> 32 == fingerprint else None


def stranger(number: int) -> Host:
    """A client that nobody has seen before."""
    return Host(CLIENT, f"20.1.0.{number}", CLIENT_GATEWAY.mac)


class ReturningService(Remembered):
    """An admitted client's next connection to a service passes above the limit; a stranger's does not."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT, remember=MINUTE)
        self.limit(1, known=2)
        self.opens_web(40001, admitted(HOT))
        self.spent(Meter.DESTINATION_LIMIT)
        unknown = Flow(WEB, S1, "20.1.0.1", 40001)
        self.refuses_web(unknown)
        self.opens_web(40002, returned(HOT))
        self.refuses_web(unknown)
        self.opens_web(40003, returned(HOT))
        self.spent()
        self.refuses_web(Flow(WEB, S1, client_port=40004))


class ReturningHost(Remembered):
    """So does its retransmitted SYN to a host that is no service, where no connection table knows it."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT, remember=MINUTE)
        self.limit(1, known=5)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.spent(Meter.DESTINATION_LIMIT)
        self.passes(S1_HOST, segment(S1_HOST.address), returned(HOT))
        self.drops(CLIENT, segment(S1_HOST.address, source=stranger(1)), DropReason.ADMISSION_REFUSED, refused(HOT))
        self.passes(S1_HOST, segment(S1_HOST.address, client_port=50001), returned(HOT))


class StrangersTakeNothing(Remembered):
    """However often strangers try, they take nothing of what is for returning clients."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT, remember=MINUTE)
        self.limit(1, known=1)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        for number in range(20):
            frame = segment(S1_HOST.address, source=stranger(number))
            self.drops(CLIENT, frame, DropReason.ADMISSION_REFUSED, refused(HOT))
        self.passes(S1_HOST, segment(S1_HOST.address), returned(HOT))
        self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))


class KnownFromBefore(Remembered):
    """Who came before there was a limit is known when there is one."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT, remember=MINUTE)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.limit(1)
        self.passes(S1_HOST, segment(S1_HOST.address, source=stranger(1)), admitted(HOT))
        self.spent()
        self.passes(S1_HOST, segment(S1_HOST.address), returned(HOT))


class Forgotten(Remembered):
    """After the time, a client is a stranger; each SYN that passes renews it."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT, remember=2)
        self.limit(1)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.spent()
        first = self.stamp(CLIENT_HOST.address, S1_HOST.address)
        assert first is not None
        self.pass_ticks(3)
        self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))
        self.assertEqual(self.stamp(CLIENT_HOST.address, S1_HOST.address), first)
        self.switch.modify([entries.destination(S1_HOST.address, HOT, remember=MINUTE)])
        self.passes(S1_HOST, segment(S1_HOST.address), returned(HOT))
        renewed = self.stamp(CLIENT_HOST.address, S1_HOST.address)
        assert renewed is not None
        self.assertGreater(renewed, first)


class PerDestination(Remembered):
    """To be known to one destination is nothing to another."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT, remember=MINUTE)
        self.watch(S2_HOST.address, OTHER, remember=MINUTE)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.limit(1, destination=OTHER)
        self.passes(S2_HOST, segment(S2_HOST.address, source=stranger(1)), admitted(OTHER))
        self.spent()
        self.drops(CLIENT, segment(S2_HOST.address), DropReason.ADMISSION_REFUSED, refused(OTHER))


class NoMemory(Remembered):
    """With a time of 0, as in Chen & Heidemann, nobody is remembered, and nobody is looked for."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT)
        self.limit(1, known=5)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.spent(Meter.DESTINATION_LIMIT)
        self.assertIsNone(self.stamp(CLIENT_HOST.address, S1_HOST.address))
        self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))


class Displaced(Remembered):
    """Two clients with one cell: the newest is remembered, and neither is taken for the other."""

    def runTest(self) -> None:
        cell, fingerprint = memory(CLIENT_HOST.address, S1_HOST.address)
        address = next(
            address
            for address in (f"20.{a}.{b}.{c}" for a in range(256) for b in range(256) for c in range(1, 255))
            if memory(address, S1_HOST.address)[0] == cell
        )
        other = Host(CLIENT, address, CLIENT_GATEWAY.mac)
        self.assertNotEqual(memory(address, S1_HOST.address)[1], fingerprint)
        self.watch(S1_HOST.address, HOT, remember=MINUTE)
        self.limit(2)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.passes(S1_HOST, segment(S1_HOST.address, source=other), admitted(HOT))
        self.spent()
        self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))
        self.passes(S1_HOST, segment(S1_HOST.address, source=other), returned(HOT))


class RefusedIsUnknown(Remembered):
    """A client whose every SYN was refused is not remembered."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT, remember=MINUTE)
        self.limit(1)
        self.opens_web(40001, admitted(HOT))
        self.spent()
        for _ in range(3):
            self.refuses_web(Flow(WEB, S1, "20.1.0.1", 40001))
        self.assertIsNone(self.stamp("20.1.0.1", WEB.address))


# -- refused by a reset


class Reset(Crowd):
    """Base of the tests in which a refused SYN is answered."""

    def resets(self, frame: Packet, *changes: Changes, payload: int = 0, vlan: int | None = None) -> None:
        """The frame's sender gets a reset, and nobody anything else."""
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
        # What was behind the SYN's headers stays in the frame, where no host looks.
        data = octets(frame)
        trailer = data[ethernet + 4 * (data[ethernet] & 15) + 20 :]
        self.answers(CLIENT, frame, octets(reset) + trailer, DropReason.ADMISSION_RESET, *changes)


class ResetOfService(Reset):
    """Above a service's limit, by the destination's bucket or by the service's own."""

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
    """Of a host that is no service; the host hears nothing."""

    def runTest(self) -> None:
        self.watch(S3_HOST.address, HOT, answer_reset=True)
        self.limit(1)
        self.passes(S3_HOST, segment(S3_HOST.address), admitted(HOT))
        self.spent()
        self.resets(segment(S3_HOST.address), refused(HOT))
        self.resets(segment(S3_HOST.address, options=OPTIONS, flags="SEC", window=1024, urgptr=7), refused(HOT))


class ResetNumbers(Reset):
    """It acknowledges the SYN and what came with it, across the end of the sequence space too."""

    def runTest(self) -> None:
        self.watch(S3_HOST.address, HOT, answer_reset=True)
        self.limit(1)
        self.passes(S3_HOST, segment(S3_HOST.address), admitted(HOT))
        self.spent()
        self.resets(layers(segment(S3_HOST.address), b"early data"), refused(HOT), payload=10)
        self.resets(segment(S3_HOST.address, seq=(1 << 32) - 1), refused(HOT))


class ResetOddHeaders(Reset):
    """IPv4 options are not echoed; a tag is kept; of a first fragment nothing is known, so it is dropped silently."""

    def runTest(self) -> None:
        self.watch(S3_HOST.address, HOT, answer_reset=True)
        self.limit(1)
        self.passes(S3_HOST, segment(S3_HOST.address), admitted(HOT))
        self.spent()
        options = [IPOption_NOP()] * 4
        self.resets(changed(segment(S3_HOST.address), IP_options=options), refused(HOT))
        self.resets(tagged(segment(S3_HOST.address), 7), refused(HOT), vlan=7)
        fragment = changed(segment(S3_HOST.address), IP_flags="MF")
        self.drops(CLIENT, fragment, DropReason.ADMISSION_REFUSED, refused(HOT))


class SilentBesideReset(Reset):
    """Each destination has its own way of refusing."""

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
