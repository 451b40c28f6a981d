"""Tests of stages `destinations` and `requests`: new connections are counted and limited by destination address."""

from __future__ import annotations

import itertools
import time

from harness import entries
from harness.base import AWAIT_S, admitted, again, completed, first_answer, new, refused, repeated
from harness.crowds import HOT, OFFERED_WEB, OTHER, REFUSED_WEB, Crowd, segment
from harness.flow import Flow
from harness.frames import octets
from harness.plan import CLIENT, POOL_B, S1, S1_HOST, S2, S2_HOST, S3_HOST, UPLINK, UPLINK_HOST, WEB, Host
from sluice.names import Counter, DropReason, Meter, PinState, Register

BYSTANDER = Host(POOL_B, "10.0.3.30", "02:00:00:00:03:30")
"""A protected host that is no server."""


class Unlisted(Crowd):
    """Requests to destinations without an entry are counted together in cell 0, and are not limited."""

    def runTest(self) -> None:
        self.limit(1, destination=0)
        self.spent()
        before = self.others()
        self.opens_web(40001)
        self.passes(S2_HOST, segment(S2_HOST.address))
        self.passes(S2_HOST, segment(S2_HOST.address, client_port=50001))
        self.assertEqual([b - a for a, b in zip(before, self.others(), strict=True)], [3, 3, 0])


class UnlistedRefused(Crowd):
    """Requests to a destination without an entry, refused by the service's own bucket, count as refused in cell 0."""

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
    """Requests to a service's address above the limit are refused; a refused SYN counts again when it is repeated."""

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
    """If a bucket has a committed and a larger peak burst, yellow requests are admitted."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT)
        self.meter(Meter.DESTINATION_LIMIT, HOT, cir=0, cburst=1, pir=0, pburst=3)
        for port in (50001, 50002, 50003):
            self.passes(S1_HOST, segment(S1_HOST.address, client_port=port), admitted(HOT))
        self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))


class PinnedPasses(Crowd):
    """The retransmitted SYN of an admitted connection is forwarded, even above the limit."""

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
    """A SYN that is repeated during its handshake counts as offered again, but not as admitted again.

    A SYN with the ports of an established connection requests a new connection.
    """

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
    """Packets of existing connections are forwarded whatever the limit: requests, responses and FINs."""

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
    """A server's own address can be a destination; its limit applies neither to other servers nor to the service."""

    def runTest(self) -> None:
        self.exhausts(S1_HOST)
        for _ in range(2):
            self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))
        self.passes(S2_HOST, segment(S2_HOST.address))
        self.opens_web(40001)


class HostOfNoService(Crowd):
    """A host without a service can be a destination, on any port; segments other than SYNs are forwarded."""

    def runTest(self) -> None:
        self.insert(self.switch.neighbour(BYSTANDER), entries.host_route(BYSTANDER.address))
        self.watch(BYSTANDER.address, HOT)
        self.limit(2)
        self.passes(BYSTANDER, segment(BYSTANDER.address, port=80), admitted(HOT))
        self.passes(BYSTANDER, segment(BYSTANDER.address, port=443), admitted(HOT))
        self.spent()
        self.drops(CLIENT, segment(BYSTANDER.address, port=22), DropReason.ADMISSION_REFUSED, refused(HOT))
        for flags in ("SA", "A", "PA", "FA", "R"):
            self.passes(BYSTANDER, segment(BYSTANDER.address, port=80, flags=flags))


class EachItsOwn(Crowd):
    """Each of two destinations has its own bucket and counts."""

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
    """A connection from an inside port to a host without a service is neither counted nor limited."""

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
    """Each port that is not marked as inside is outside, so requests that arrive there are limited."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT)
        self.limit(1)
        frame = segment(S1_HOST.address, source=UPLINK_HOST)
        self.passes(S1_HOST, frame, admitted(HOT), source=UPLINK_HOST)
        self.spent()
        self.drops(UPLINK, frame, DropReason.ADMISSION_REFUSED, refused(HOT))


class ServiceFirst(Crowd):
    """A SYN that the service's own bucket refuses takes no token of the destination's bucket."""

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
    """Limits that are raised, reduced or removed while requests arrive apply at once."""

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
    """A bucket with a rate is refilled: after SYNs have been refused, a later SYN is admitted again."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT)
        self.meter(Meter.DESTINATION_LIMIT, HOT, cir=10, cburst=32, pir=10, pburst=32)
        frames = [octets(segment(S1_HOST.address))] * 100
        changes = self.burst(CLIENT, frames).changes
        self.assertGreater(changes[Register.REQUESTS_REFUSED, HOT], 0)
        deadline = time.monotonic() + AWAIT_S  # the clock of Tofino's model may be slow
        while (Register.REQUESTS_ADMITTED, HOT) not in self.exchange(CLIENT, frames[0]).changes:
            self.assertLess(time.monotonic(), deadline, "no token comes back")
            time.sleep(0.2)


class Entered(Crowd):
    """While requests arrive, an address can become a destination, or receive another destination's number."""

    def runTest(self) -> None:
        self.passes(S1_HOST, segment(S1_HOST.address))
        entry = entries.destination(S1_HOST.address, HOT)
        self.insert(entry)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.switch.modify([entries.destination(S1_HOST.address, OTHER)])
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(OTHER))


class SecondPass(Crowd):
    """A SYN that passes the pipeline twice is counted once, and takes one token."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT)
        self.limit(3)
        flow = self.opens_web(40000, admitted(HOT))
        self.drains()
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), again(WEB, S2), (Counter.MOVED, WEB.id), repeated(HOT))
        third = Flow(WEB, S2, client_port=40001)
        self.client_sends(third, third.syn(), new(WEB, S2), admitted(HOT))
        self.refuses_web(Flow(WEB, S2, client_port=40002))


class RefusedOfDraining(Crowd):
    """A refused SYN reaches neither the draining server to which its connection is pinned nor another server."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT)
        self.limit(1)
        flow = self.opens_web(40000, admitted(HOT))
        self.spent()
        self.drains()
        self.drops(CLIENT, flow.syn(), DropReason.ADMISSION_REFUSED, (Counter.OFFERED, WEB.id), repeated(HOT))
        self.assertPinned(flow, PinState.PENDING)
