"""Stage `second_look`: of two servers drawn, a new connection goes to the one with less to do for its weight."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from harness import entries, plan
from harness.base import again, completed, first_answer, new, was_reset
from harness.collisions import crowd
from harness.flow import Flow
from harness.frames import octets
from harness.looking import GROUP, SERVED, Looking
from harness.pin_table import ANSWERS, REQUESTS
from harness.plan import S1, S2, S3, WEB, Server
from sluice.dataplane.table import REFUSING, STALE
from sluice.names import SERVERS, SERVICES, Meter, PinState, Register


class GoesToTheLighter(Looking):
    """The first draw has more open connections: the other one is taken, pinned and counted, all of it once."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        self.busy(S1, 1)
        flow = Flow(WEB, S2)
        self.client_sends(flow, flow.syn(), new(WEB, S2))
        self.assertPinned(flow, PinState.PENDING)
        self.assertLoads(s1=1, s2=1)
        self.server_sends(flow, flow.syn_ack(), first_answer(S2))
        self.client_sends(flow, flow.ack(), completed(S2))
        self.assertLoads(s1=1, s2=1)


class StaysWithTheFirst(Looking):
    """As much to do, or less: the first draw stands."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        self.opens(Flow(WEB, S1, client_port=40001))
        self.assertLoads(s1=1)
        self.busy(S2, 1)
        self.opens(Flow(WEB, S1, client_port=40002))
        self.assertLoads(s1=2, s2=1)


class ForItsWeight(Looking):
    """Three times the weight may have three times as much to do, the new connection included."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1}, weight=3)
        self.busy(S1, 2)
        self.opens(Flow(WEB, S1, client_port=40001))
        self.assertLoads(s1=3)
        flow = Flow(WEB, S2, client_port=40002)
        self.client_sends(flow, flow.syn(), new(WEB, S2))
        self.assertLoads(s1=3, s2=1)


class RoundingDecidesNothing(Looking):
    """Weights that differ by their rounding: as much to do is as much to do, and the first draw stands."""

    def runTest(self) -> None:
        self.look(S1, {S2: 86}, weight=85)
        self.opens(Flow(WEB, S1, client_port=40001))
        flow = Flow(WEB, S2, client_port=40002)
        self.client_sends(flow, flow.syn(), new(WEB, S2))
        self.opens(Flow(WEB, S1, client_port=40003))
        self.assertLoads(s1=2, s2=1)


class GoesToTheThird(Looking):
    """The two servers drawn first have connections open, the third has fewer: it is taken, pinned and counted."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1, S3: 1}, looks=3)
        self.busy(S1, 9)
        self.busy(S2, 9)
        flow = Flow(WEB, S3)
        self.client_sends(flow, flow.syn(), new(WEB, S3))
        self.assertPinned(flow, PinState.PENDING)
        self.assertLoads(s1=9, s2=9, s3=1)


class GoesToTheFourth(Looking):
    """With four looks the last of three others counts as the first does, and the lightest of all is taken."""

    def runTest(self) -> None:
        self.look(S1, {S1: 1, S2: 1, S3: 1}, looks=4)
        for lightest in SERVED:
            for server in SERVED:
                self.busy(server, 2 if server is lightest else 7)
            flow = Flow(WEB, lightest, client_port=40000 + lightest.id)
            self.client_sends(flow, flow.syn(), new(WEB, lightest))


class ThirdForItsWeight(Looking):
    """The third is held against the lighter of the two, for the weights of both."""

    def runTest(self) -> None:
        self.look(S1, {S2: 3, S3: 3}, weight=1, looks=3)
        self.busy(S1, 1)
        for of_others, taken in (((8, 4), S3), ((4, 8), S2), ((7, 7), S1)):
            for server, connections in zip((S2, S3), of_others, strict=True):
                self.busy(server, connections)
            self.busy(S1, 1)
            flow = Flow(WEB, taken, client_port=40000 + of_others[0])
            self.client_sends(flow, flow.syn(), new(WEB, taken))


class IdleEndsTheLooking(Looking):
    """A third is looked at only while the lighter of the two has a connection open, however much more its weight is."""

    NEEDS = (Register.LOAD_THIRD,)

    def runTest(self) -> None:
        self.insert(entries.seen(GROUP, (S2, S3), {S2: 1, S3: 9}))
        self.switch.modify([entries.ratios(WEB, {S1: 1}, {S1: GROUP})])
        self.addCleanup(self.switch.modify, [entries.ratios(WEB, plan.RATIOS[WEB])])
        for port, loads, taken in ((40001, (0, 5), S1), (40002, (1, 0), S2), (40003, (1, 1), S3)):
            for server, connections in zip(SERVED, (*loads, 0), strict=True):
                self.busy(server, connections)
            flow = Flow(WEB, taken, client_port=port)
            self.client_sends(flow, flow.syn(), new(WEB, taken))


class StaleOfAThird(Looking):
    """What the controller knows to have ended does not count at the third server and the fourth either."""

    def runTest(self) -> None:
        self.look(S1, {S1: 1, S2: 1, S3: 1}, looks=4)
        for taken in (S2, S3):
            for server in SERVED:
                self.busy(server, 5)
                for register in self.switch.present(STALE):
                    self.switch.registers.write(register, server.id, 3 if server is taken else 0)
            flow = Flow(WEB, taken, client_port=40000 + taken.id)
            self.client_sends(flow, flow.syn(), new(WEB, taken))


class RefusingIsPreferredToNone(Looking):
    """A server that answers SYNs with RSTs has nothing to do, and gets no connection but its own draws; a SYN-ACK ends
    that."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        self.busy(S1, 9)
        refused = Flow(WEB, S2, client_port=40001)
        self.client_sends(refused, refused.syn(), new(WEB, S2))
        self.refuses(refused)
        self.opens(Flow(WEB, S1, client_port=40002))
        self.assertLoads(s1=10)

        self.insert(entries.others(GROUP + 1, {S1: 1}))
        self.switch.modify([entries.ratios(WEB, {S2: 1}, {S2: GROUP + 1})])
        flow = Flow(WEB, S2, client_port=40003)
        self.opens(flow)
        self.switch.modify([entries.ratios(WEB, {S1: 1}, {S1: GROUP})])
        self.opens(Flow(WEB, S1, client_port=40004))
        self.server_sends(flow, flow.syn_ack(), first_answer(S2))
        again_preferred = Flow(WEB, S2, client_port=40005)
        self.client_sends(again_preferred, again_preferred.syn(), new(WEB, S2))


class RefusingThird(Looking):
    """Nor does it get one as the third or the fourth server that is looked at."""

    def runTest(self) -> None:
        self.look(S1, {S1: 1, S2: 1, S3: 1}, looks=4)
        for number, refusing in enumerate((S2, S3)):
            taken = S3 if refusing is S2 else S2
            for server in SERVED:
                self.busy(server, {refusing: 0, taken: 3}.get(server, 9))
                for register in self.switch.present(REFUSING):
                    self.switch.registers.write(register, server.id, server is refusing)
            flow = Flow(WEB, taken, client_port=40001 + number)
            self.client_sends(flow, flow.syn(), new(WEB, taken))


class OtherResetsAreNoRefusal(Looking):
    """The RST of a connection that was answered, and the one for a segment that the server does not know (without
    ACK), say nothing of its port."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        self.busy(S1, 9)
        answered = Flow(WEB, S2, client_port=40001)
        self.client_sends(answered, answered.syn(), new(WEB, S2))
        self.server_sends(answered, answered.syn_ack(), first_answer(S2))
        self.server_sends(answered, answered.reply(flags="RA", seq=5001), was_reset(S2))
        unknown = Flow(WEB, S2, client_port=40002)
        self.client_sends(unknown, unknown.syn(), new(WEB, S2))
        self.server_sends(unknown, unknown.reply(flags="R", seq=7), was_reset(S2))
        flow = Flow(WEB, S2, client_port=40003)
        self.client_sends(flow, flow.syn(), new(WEB, S2))


class RepeatedSynStays(Looking):
    """A SYN sent again goes where its connection is, whoever has less to do by then, and counts once."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.busy(S1, 9)
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertLoads(s1=9)


class EndsOnce(Looking):
    """The server's FIN takes the connection off, the client's does not, nor what follows. Looking or not."""

    def runTest(self) -> None:
        for port, look in ((40001, False), (40002, True)):
            if look:
                self.look(S1, {S2: 1})
            flow = Flow(WEB, S1, client_port=port)
            self.establishes(flow)
            self.client_sends(flow, flow.fin())
            self.assertLoads(s1=1)
            self.server_closes(flow)
            self.assertLoads()
            self.server_closes(flow)
            self.client_sends(flow, flow.fin())
            self.resets(flow)
            self.assertLoads()


class ResetByServer(Looking):
    """So does the server's RST."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.server_sends(flow, flow.reply(flags="RA", seq=5001), was_reset(S1))
        self.assertLoads()


class ResetInTheClientsName(Looking):
    """A RST of the client's takes the connection off until the server says that it is still there."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.resets(flow)
        self.resets(flow)
        self.assertLoads()
        self.server_sends(flow, flow.reply(b"more", flags="PA", seq=5001))
        self.assertLoads(s1=1)


class PortsUsedAgain(Looking):
    """A SYN behind the end of its old connection is a new one, and counts for the server that it is given."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.server_sends(flow, flow.reply(flags="RA", seq=5001), was_reset(S1))
        self.weigh(WEB, {S2: 1})
        self.opens(flow.to(S2))
        self.assertLoads(s2=1)
        self.assertEvicted(0)


class EndedUnseen(Looking):
    """What the controller knows to have ended does not count; more of it than there is counts as nothing to do."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        self.busy(S1, 5)
        self.busy(S2, 3)
        for stale, taken in ((2, S1), (1, S2), (9, S1)):
            for register in self.switch.present(STALE):
                self.switch.registers.write(register, S1.id, stale)
            flow = Flow(WEB, taken, client_port=40000 + stale)
            self.client_sends(flow, flow.syn(), new(WEB, taken))
            self.resets(flow)
        self.assertLoads(s1=5, s2=3)


class Evicted(Looking):
    """A connection whose slot is taken before it has ended is noted for its server; one that has ended is not."""

    def runTest(self) -> None:
        self.set_timers(linger=1)
        met = crowd()
        self.put_pin(met.first, PinState.PENDING, age=self.switch.times["pending_time"] + 1)
        self.opens(met.second)
        self.assertEvicted(1)
        self.server_sends(met.second, met.second.reply(flags="RA", seq=0), was_reset(S1))
        self.pass_ticks(2)
        self.opens(met.first)
        self.assertEvicted(1)


class CandidateMoves(Looking):
    """A connection that moves off a draining server is taken off it, and counts for its new one, when it moves."""

    NEEDS = (Register.CANDIDATE_KEY,)

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.drain(S1)
        self.weigh(WEB, {S2: 1})
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), again(WEB, S2))
        self.server_sends(moved, moved.syn_ack(), first_answer(S2))
        self.assertLoads(s1=1)
        self.client_sends(moved, moved.ack(), completed(S2))
        self.assertLoads(s2=1)
        self.assertEvicted(0)


class InTheSecondWay(Looking):
    """Where way 1 is taken by another connection, the second pass finds its slot in way 2."""

    def runTest(self) -> None:
        met = crowd()
        self.establishes(met.first)
        self.look(S1, {S2: 1})
        self.busy(S1, 1)
        flow = met.second.to(S2)
        self.client_sends(flow, flow.syn(), new(WEB, S2))
        self.assertPinned(flow, PinState.PENDING, way=2)
        self.assertPinned(met.first, PinState.ESTABLISHED, way=1)
        self.assertLoads(s1=1, s2=1)


class MeteredOnce(Looking):
    """The second pass takes no second token; a refused SYN does not look."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        self.meter(Meter.ADMISSION, WEB.id, cir=0, cburst=2, pir=0, pburst=2)
        self.opens(Flow(WEB, S1, client_port=40001))
        flow = Flow(WEB, S2, client_port=40002)
        self.client_sends(flow, flow.syn(), new(WEB, S2))
        self.assertLoads(s1=1, s2=1)
        red: Any = Flow(WEB, S1, client_port=40003)
        self.exchange(plan.CLIENT, red.syn())
        self.assertNotPinned(red.key)
        self.assertLoads(s1=1, s2=1)


class DrawsDiffer(Looking):
    """The two draws are independent: whom the first one leaves, the other one spreads by weight."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1, S3: 3})
        self.busy(S1, 1_000_000)
        taken = {S2.host.address: 0, S3.host.address: 0}
        for port in range(40000, 40400):
            flow = Flow(WEB, S1, client_port=port)
            outcome = self.exchange(plan.CLIENT, flow.syn())
            ((_, frame),) = outcome.frames
            address = ".".join(str(byte) for byte in frame[30:34])
            taken[address] += 1
            self.busy(S2, 0)
            self.busy(S3, 0)
        self.assertTrue(70 <= taken[S2.host.address] <= 130, taken)


class Even(Looking):
    """Base: WEB draws evenly, from the beginning of its sequence, and no draw is like another's by chance."""

    WEIGHTS: Mapping[Server, int] = {S1: 128, S2: 85, S3: 43}
    DRAWS = 120
    NEEDS = (Register.DRAW_POINT,)

    def setUp(self) -> None:
        super().setUp()
        self.switch.registers.clear(Register.DRAW_POINT)
        self.switch.modify([entries.service(WEB, shares=sum(self.WEIGHTS.values()))])
        self.addCleanup(self.switch.modify, [entries.service(WEB)])

    def destinations(self, idle: Iterable[Server] = ()) -> list[str]:
        """Where so many new connections go, one after the other; some servers have nothing to do before each."""
        taken: list[str] = []
        for port in range(40000, 40000 + self.DRAWS):
            ((_, frame),) = self.exchange(plan.CLIENT, Flow(WEB, S1, client_port=port).syn()).frames
            taken.append(".".join(str(byte) for byte in frame[30:34]))
            for server in idle:
                self.busy(server, 0)
        return taken

    def others(self, group: int, weights: Mapping[Server, int]) -> list[str]:
        """Where they go if S1 is always drawn first, has more to do than anybody, and names that group."""
        self.insert(entries.others(group, weights))
        self.switch.modify([entries.ratios(WEB, {S1: 128}, {S1: group})])
        self.addCleanup(self.switch.modify, [entries.ratios(WEB, plan.RATIOS[WEB])])
        self.busy(S1, 1_000_000)
        return self.destinations(weights)

    def assertEven(self, taken: list[str], weights: Mapping[Server, int]) -> None:
        """Whenever counted, each server has had its share to within 2.5 connections: of random draws one series in
        fifty is that near all the way."""
        whole = sum(weights.values())
        for count in range(1, len(taken) + 1):
            for server, weight in weights.items():
                had = taken[:count].count(server.host.address)
                self.assertLessEqual(abs(had - count * weight / whole), 2.5, (count, server.host.address, had))


class DrawsEvenly(Even):
    """A service with shares gives each server its turns about as far apart as its weight says."""

    def runTest(self) -> None:
        self.weigh(WEB, self.WEIGHTS)
        self.assertEven(self.destinations(), self.WEIGHTS)


class DrawsEvenlyOfFewer(Even):
    """Where servers are left out and the weights sum to half of the shares, the draws are as even."""

    WEIGHTS: Mapping[Server, int] = {S1: 100, S2: 28}

    def setUp(self) -> None:
        super().setUp()
        self.switch.modify([entries.service(WEB, shares=256)])

    def runTest(self) -> None:
        self.weigh(WEB, self.WEIGHTS)
        self.assertEven(self.destinations(), self.WEIGHTS)


class OthersEvenly(Even):
    """The other draw is as even, among those whom the first one's group leaves."""

    def runTest(self) -> None:
        others = {S2: 85, S3: 43}
        self.assertEven(self.others(S1.id, others), others)


class LargePoolsEvenly(Even):
    """In a large pool the other is drawn from all, evenly, too."""

    def runTest(self) -> None:
        others = {S2: 170, S3: 86}
        self.assertEven(self.others(SERVERS + WEB.id, others), others)


class SequenceOfItsOwn(Even):
    """A connection moves its service's sequence on by two points, and no other's."""

    DRAWS = 1

    def runTest(self) -> None:
        self.weigh(WEB, self.WEIGHTS)
        self.assertEqual(self.destinations(), [S2.host.address])
        cells = self.switch.registers.read([(Register.DRAW_POINT, number) for number in range(SERVICES)])
        moved = {number: cell for number, cell in enumerate(cells) if cell}
        self.assertEqual(moved, {WEB.id: 2 * 0x9E3779B9 % (1 << 32)})


class OpensAgainFromTheSecondWay(Looking):
    """A connection that had closed in way 2 begins anew in way 1, which has become free: it is open again, once."""

    def runTest(self) -> None:
        met = crowd()
        self.establishes(met.first)
        self.establishes(met.second)
        self.assertLoads(s1=2)
        self.set_timers(linger=-1)
        for flow in (met.first, met.second):
            self.server_sends(flow, flow.reply(flags="RA", seq=5001), was_reset(S1))
        self.assertLoads()
        self.opens(met.second)
        self.assertPinned(met.second, PinState.PENDING, way=1)
        self.assertLoads(s1=1)


class ServersOwnSynIsNoConnection(Looking):
    """A SYN that a server sends from its service's port opens nothing, whatever it finds."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        own = flow.reply(flags="S", seq=5001)
        self.server_sends(flow, own)
        self.assertLoads()
        self.establishes(flow)
        self.server_closes(flow)
        self.server_sends(flow, own)
        self.assertLoads()


class LoadsAreTheOpenPins(Looking):
    """Random packets of few connections, while servers drain and come back: a load is the number of open pins, and of
    those that lost their slot before their end."""

    def runTest(self) -> None:
        rng = random.Random(1)
        self.look(S1, {S2: 1, S3: 1})
        self.addCleanup(self.switch.modify, [entries.server(server) for server in SERVED])
        ports = range(40001, 40031)
        for _ in range(20):
            draining = rng.sample(SERVED, rng.randrange(len(SERVED)))
            self.switch.modify([entries.server(server, draining=server in draining) for server in SERVED])
            by_port: dict[plan.Port, list[bytes]] = {}
            for _ in range(120):
                flow = Flow(WEB, rng.choice(SERVED), client_port=rng.choice(ports))
                kind = rng.choice((*REQUESTS, *ANSWERS))
                sender = plan.CLIENT if kind.by_client else flow.server.host.port
                by_port.setdefault(sender, []).append(octets(kind.frame(flow)))
            for port, frames in by_port.items():
                self.flood(port, frames)
        open_pins = Counter(
            pin.server
            for port in ports
            for pin in self.pins(Flow(WEB, S1, client_port=port).key)
            if pin.state < PinState.SERVER_CLOSING
        )
        self.assertGreater(open_pins.total(), len(ports) // 4)
        # On a slow switch pins expire meanwhile. A load keeps those that lose their slot, until a controller's sweep.
        evicted = self.switch.registers.read([(Register.LOAD_EVICTED, server.id) for server in SERVED])
        loads = {f"s{server.id}": open_pins[server.id] + count for server, count in zip(SERVED, evicted, strict=True)}
        self.assertLoads(**loads)
