"""Stage `second_look`: of two servers drawn, a new connection goes to the one with less to do for its weight."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from harness import entries, plan
from harness.base import StageTest, again, completed, first_answer, new, was_reset
from harness.collisions import crowd
from harness.flow import Flow
from harness.frames import octets
from harness.pin_table import ANSWERS, REQUESTS
from harness.plan import S1, S2, S3, WEB, Server
from sluice.dataplane.idle import PLACES
from sluice.dataplane.table import LOADS, STALE
from sluice.names import SERVERS, SERVICES, Meter, PinState, Register

SERVED = (S1, S2, S3)
TICKETS = (Register.IDLE_TICKET_FIRST, Register.IDLE_TICKET_HEAD)
IDLE = (Register.IDLE_ENDS, Register.IDLE_QUEUE, *TICKETS, Register.STALE_IDLE)
GROUP = 77
"""A group of the others, by no server's number."""


class Looking(StageTest):
    """Base: nobody has anything to do, and nobody looks yet."""

    def setUp(self) -> None:
        super().setUp()
        for register in (*LOADS, *STALE, *IDLE, Register.LOAD_EVICTED, Register.PIN_SERVER_1, Register.PIN_SERVER_2):
            self.switch.registers.clear(register)

    def look(self, first: Server, others: Mapping[Server, int], weight: int = 1, looks: int = 2) -> None:
        """Draw always `first`, and beside it one of the others; or as many as there are looks less one."""
        self.insert(entries.others(GROUP, others, looks))
        self.switch.modify([entries.ratios(WEB, {first: weight}, {first: GROUP})])
        self.addCleanup(self.switch.modify, [entries.ratios(WEB, plan.RATIOS[WEB])])

    def busy(self, server: Server, connections: int) -> None:
        """Give a server something to do."""
        for register in LOADS:
            self.switch.registers.write(register, server.id, connections)

    def assertLoads(self, **loads: int) -> None:
        """Open connections of s1, s2, s3 in both copies; of all servers that are not named, none."""
        wanted = {f"s{number}": loads.get(f"s{number}", 0) for number in (1, 2, 3)}
        for register in LOADS:
            cells = self.switch.registers.read([(register, number) for number in range(SERVERS)])
            self.assertEqual({f"s{n}": cells[n] for n in (1, 2, 3)}, wanted, register)
            self.assertEqual(sum(cells), sum(wanted.values()), register)

    def assertEvicted(self, connections: int) -> None:
        """Connections of s1 whose slot was taken before they had ended."""
        self.assertEqual(self.switch.registers.read([(Register.LOAD_EVICTED, S1.id)]), [connections])

    def resets(self, flow: Flow) -> None:
        """A RST of the client's."""
        self.client_sends(flow, flow.request(flags="R", seq=1001))

    def server_closes(self, flow: Flow) -> None:
        """A FIN of the server's."""
        self.server_sends(flow, flow.reply(flags="FA", seq=5001))


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

    def runTest(self) -> None:
        self.insert(entries.seen(GROUP, (S2, S3), {S2: 1, S3: 9}))
        self.switch.modify([entries.ratios(WEB, {S1: 1}, {S1: GROUP})])
        self.addCleanup(self.switch.modify, [entries.ratios(WEB, plan.RATIOS[WEB])])
        for port, loads, taken in ((40001, (0, 5), S1), (40002, (1, 0), S2), (40003, (1, 1), S3)):
            for server, connections in zip(SERVED, (*loads, 0), strict=True):
                self.busy(server, connections)
            flow = Flow(WEB, taken, client_port=port)
            self.client_sends(flow, flow.syn(), new(WEB, taken))


class Seeking(Looking):
    """Base: S1 is drawn first, S2 beside it, and S3 may be sought out while it is idle."""

    SOUGHT: tuple[Server, ...] = (S3,)
    BEFORE_ANY = False

    def setUp(self) -> None:
        super().setUp()
        self.look(S1, {S2: 1})
        self.insert(entries.idle_members(WEB, self.SOUGHT, before_any=self.BEFORE_ANY))

    def serves(self, server: Server, port: int) -> Flow:
        """A connection of the server's, by whatever the weights are."""
        self.switch.modify([entries.ratios(WEB, {server: 1})])
        flow = Flow(WEB, server, client_port=port)
        self.establishes(flow)
        self.switch.modify([entries.ratios(WEB, {S1: 1}, {S1: GROUP})])
        return flow

    def ends(self, flow: Flow) -> None:
        """What follows its SYN, up to the server's FIN."""
        self.server_sends(flow, flow.syn_ack(), first_answer(flow.server))
        self.client_sends(flow, flow.ack(), completed(flow.server))
        self.server_closes(flow)

    def become_idle(self, *servers: Server) -> None:
        """The only connection of each begins, and ends in this order."""
        flows = [self.serves(server, 41000 + server.id) for server in servers]
        for flow in flows:
            self.server_closes(flow)

    def goes_to(self, server: Server, port: int) -> Flow:
        """A new connection's SYN."""
        flow = Flow(WEB, server, client_port=port)
        self.client_sends(flow, flow.syn(), new(WEB, server))
        return flow

    def assertQueue(self, *servers: Server | None) -> None:
        """The servers between head and tail; None: one whose ticket is another, or none."""
        ((ends),) = self.switch.registers.read([(Register.IDLE_ENDS, WEB.id)])
        head, tail = divmod(ends, 1 << 16)
        first = WEB.id * PLACES
        queue = self.switch.registers.read([(Register.IDLE_QUEUE, first + at % PLACES) for at in range(head, tail)])
        for register in TICKETS:
            tickets = self.switch.registers.read([(register, server) for server in queue])
            found = [
                server if ticket == 1 << 16 | at else None
                for at, server, ticket in zip(range(head, tail), queue, tickets, strict=True)
            ]
            self.assertEqual(found, [server and server.id for server in servers], register)


class GoesToAnIdleServer(Seeking):
    """Both that were drawn are busy: the idle one is taken, which it is no longer then, and not again."""

    def runTest(self) -> None:
        self.become_idle(S3)
        self.assertQueue(S3)
        self.busy(S1, 2)
        self.busy(S2, 1)
        flow = self.goes_to(S3, 40001)
        self.assertPinned(flow, PinState.PENDING)
        self.assertLoads(s1=2, s2=1, s3=1)
        self.assertQueue()
        self.goes_to(S2, 40002)


class NobodyIsKnownToBeIdle(Seeking):
    """Until its first connection has ended a server is not sought out, for the switch knows nothing of it."""

    def runTest(self) -> None:
        self.busy(S1, 1)
        self.busy(S2, 1)
        self.goes_to(S1, 40001)


class IdleOnesThatAreDrawnComeFirst(Seeking):
    """The lighter of the two has nothing to do: it keeps the connection, whoever else is idle."""

    def runTest(self) -> None:
        self.become_idle(S3)
        self.busy(S1, 1)
        self.goes_to(S2, 40001)
        self.assertQueue(S3)


class OnlyMembersAreSought(Seeking):
    """Whoever is not named is left alone, idle or not: it drains, is full, small, or another service's. A connection
    that finds it at the head drops it, and goes by the two draws; the next one finds who follows."""

    SOUGHT = (S1, S2)

    def runTest(self) -> None:
        self.become_idle(S3, S2)
        self.switch.modify([entries.others(GROUP, {S3: 1})])
        self.busy(S1, 1)
        self.busy(S3, 1)
        self.goes_to(S1, 40001)
        self.assertQueue(S2)
        self.goes_to(S2, 40002)
        self.assertQueue()


class IdleComesBeforeAThird(Seeking):
    """A third server is not even looked at, however much more its weight is."""

    SOUGHT = (S2,)

    def runTest(self) -> None:
        self.become_idle(S2)
        self.switch.modify([entries.seen(GROUP, (S1, S3), {S1: 1, S3: 9})])
        self.busy(S1, 1)
        self.goes_to(S2, 40001)
        self.goes_to(S3, 40002)


class IdleForLongestFirst(Seeking):
    """Idle servers are taken in the order in which they became idle, those that no entry stands for before them."""

    SOUGHT = (S1, S2, S3)
    BEFORE_ANY = True

    def runTest(self) -> None:
        self.ends(self.goes_to(S1, 40001))
        self.assertQueue(S1)
        self.switch.modify([entries.ratios(WEB, {S3: 1}, {S3: GROUP})])
        for flow in [self.goes_to(S3, 40002), self.goes_to(S1, 40003)]:  # S3 has never had one
            self.ends(flow)
        self.switch.modify([entries.ratios(WEB, {S1: 1}, {S1: GROUP})])
        for server, port in ((S3, 40004), (S1, 40005), (S2, 40006)):
            self.goes_to(server, port)  # at last the queue is empty: S1 and S2 are drawn
            self.assertQueue(*((S1,) if port == 40004 else ()))


class BusyOnesLeaveTheQueue(Seeking):
    """A server in the middle that got a connection by a draw has lost its ticket; its next end gives it another one."""

    SOUGHT = (S1, S2, S3)

    def runTest(self) -> None:
        self.become_idle(S2, S1, S3)
        self.assertQueue(S2, S1, S3)
        flow = self.goes_to(S1, 40001)
        self.assertQueue(S2, None, S3)
        self.ends(flow)
        self.assertQueue(S2, None, S3, S1)
        self.goes_to(S1, 40002)
        self.goes_to(S2, 40003)
        self.assertQueue(None, S3, None)
        self.busy(S2, 9)
        self.goes_to(S1, 40004)  # drops the head, S2 has more to do
        self.assertQueue(S3, None)
        self.goes_to(S3, 40005)


class QueueIsBounded(Seeking):
    """With more entries than places the oldest goes. Tickets wrap."""

    SOUGHT = (S1, S2, S3)

    def runTest(self) -> None:
        self.switch.registers.write(Register.IDLE_ENDS, WEB.id, (1 << 16) - 30 << 16 | (1 << 16) - 30)
        self.become_idle(S2)
        for port in range(40001, 40001 + PLACES - 2):
            self.ends(self.goes_to(S1, port))
        ((ends),) = self.switch.registers.read([(Register.IDLE_ENDS, WEB.id)])
        self.assertEqual(divmod(ends, 1 << 16), ((1 << 16) - 30, PLACES - 31))
        self.become_idle(S3)
        self.ends(self.goes_to(S1, 40100))
        ((ends),) = self.switch.registers.read([(Register.IDLE_ENDS, WEB.id)])
        self.assertEqual(divmod(ends, 1 << 16), ((1 << 16) - 29, PLACES - 29))


class IdleWhenAllIsKnownToHaveEnded(Seeking):
    """What the controller knows to have ended is not open: the last of the others that ends makes its server idle."""

    def runTest(self) -> None:
        flows = [self.serves(S3, port) for port in (41000, 41001, 41002)]
        for register in (*STALE, Register.STALE_IDLE):
            self.switch.registers.write(register, S3.id, 1)
        self.server_closes(flows[0])
        self.assertQueue()
        self.server_closes(flows[1])
        self.assertQueue(S3)
        self.server_closes(flows[2])
        self.assertQueue(S3)
        self.serves(S3, 41003)
        self.assertQueue(S3)
        self.serves(S3, 41004)
        self.assertQueue()


class SmallIdleOnesAreNot(Seeking):
    """Of unlike servers an idle small one is not taken, were it drawn first and never busy before."""

    def runTest(self) -> None:
        self.switch.modify([entries.others(GROUP, {S2: 9})])
        self.become_idle(S3)
        self.busy(S2, 1)
        self.goes_to(S3, 40001)


class ResetsMakeNobodySought(Seeking):
    """Who resets, or whose client does, is not sought out: dead servers send resets, and forgers."""

    BEFORE_ANY = True

    def runTest(self) -> None:
        flow = self.serves(S3, 41001)
        self.server_sends(flow, flow.reply(flags="RA", seq=5001), was_reset(S3))
        self.resets(self.serves(S3, 41002))
        self.assertLoads()
        self.assertQueue()
        self.goes_to(S1, 40001)


class ReopeningTakesTheTicket(Seeking):
    """A connection that was reset in its client's name, and goes on, is open: its server is not idle any more."""

    def runTest(self) -> None:
        first, second = self.serves(S3, 41001), self.serves(S3, 41002)
        self.resets(first)
        self.server_closes(second)
        self.assertQueue(S3)
        self.server_sends(first, first.reply(b"more", flags="PA", seq=5001))
        self.assertLoads(s3=1)
        self.assertQueue()


class FoundInAnotherWord(Seeking):
    """A server beyond the first 32 numbers is found by its own word of members."""

    FAR = replace(S3, id=70)

    def runTest(self) -> None:
        self.insert(entries.server(self.FAR))
        self.busy(S1, 1)
        self.busy(S2, 1)
        self.queue(self.FAR)
        self.goes_to(S1, 40001)
        self.assertQueue()
        self.queue(self.FAR)
        self.insert(entries.idle_members(WEB, (self.FAR,)))
        flow = Flow(WEB, self.FAR, client_port=40002)
        self.exchange(plan.CLIENT, flow.syn())
        self.assertPinned(flow, PinState.PENDING)

    def queue(self, server: Server) -> None:
        """Its only connection has ended."""
        self.switch.registers.write(Register.IDLE_QUEUE, WEB.id * PLACES, server.id)
        for register in TICKETS:
            self.switch.registers.write(register, server.id, 1 << 16)
        self.switch.registers.write(Register.IDLE_ENDS, WEB.id, 1)
        self.assertQueue(server)


class TicketGoesWhenAConnectionMovesIn(Seeking):
    """The server that a connection moves to is idle no more. The one it leaves gets no ticket, as after a RST."""

    def runTest(self) -> None:
        self.become_idle(S2)
        flow = self.serves(S1, 40001)
        self.drain(S1)
        self.weigh(WEB, {S2: 1})
        moved = flow.to(S2)
        self.client_sends(moved, moved.syn(), again(WEB, S2))
        self.server_sends(moved, moved.syn_ack(), first_answer(S2))
        self.assertQueue(S2)
        self.client_sends(moved, moved.ack(), completed(S2))
        self.assertLoads(s2=1)
        self.assertQueue()


class StaleOfAThird(Looking):
    """What the controller knows to have ended does not count at the third server and the fourth either."""

    def runTest(self) -> None:
        self.look(S1, {S1: 1, S2: 1, S3: 1}, looks=4)
        for taken in (S2, S3):
            for server in SERVED:
                self.busy(server, 5)
                for register in STALE:
                    self.switch.registers.write(register, server.id, 3 if server is taken else 0)
            flow = Flow(WEB, taken, client_port=40000 + taken.id)
            self.client_sends(flow, flow.syn(), new(WEB, taken))


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
            for register in STALE:
                self.switch.registers.write(register, S1.id, stale)
            flow = Flow(WEB, taken, client_port=40000 + stale)
            self.client_sends(flow, flow.syn(), new(WEB, taken))
            self.resets(flow)
        self.assertLoads(s1=5, s2=3)


class Evicted(Looking):
    """A connection whose slot is taken before it has ended is noted for its server; one that has ended is not."""

    def runTest(self) -> None:
        self.set_timers(pending=1, linger=1)
        met = crowd()
        self.opens(met.first)
        self.pass_ticks(2)
        self.opens(met.second)
        self.assertEvicted(1)
        self.server_sends(met.second, met.second.reply(flags="RA", seq=0), was_reset(S1))
        self.pass_ticks(2)
        self.opens(met.first)
        self.assertEvicted(1)


class CandidateMoves(Looking):
    """A connection that moves off a draining server is taken off it, and counts for its new one, when it moves."""

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
        for flow in (met.first, met.second):
            self.server_sends(flow, flow.reply(flags="RA", seq=5001), was_reset(S1))
        self.assertLoads()
        self.set_timers(linger=-1)
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
    """Random packets of few connections, while servers drain and come back: a load is the number of open pins."""

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
        self.assertLoads(**{f"s{server.id}": open_pins[server.id] for server in SERVED})
