"""Tests of p4src/v1model/idle_servers.p4: the switch prefers idle servers, in the order in which they became idle.

A server without an open connection is idle. A server that becomes idle receives a ticket: the number of its entry in a
queue of idle servers.
"""

from __future__ import annotations

from dataclasses import replace

from harness import entries, plan
from harness.base import again, completed, first_answer, was_reset
from harness.flow import Flow
from harness.looking import GROUP, TICKETS, SecondLookTest
from harness.plan import S1, S2, S3, WEB, Server
from sluice.dataplane.idle import PLACES
from sluice.dataplane.table import STALE
from sluice.names import PinState, Register, Table


class Seeking(SecondLookTest):
    """Base class: S1 is drawn first and S2 as second candidate; S3 may be selected while it is idle."""

    NEEDS = (Table.IDLE_MEMBERS,)
    SOUGHT: tuple[Server, ...] = (S3,)
    BEFORE_ANY = False

    def setUp(self) -> None:
        super().setUp()
        self.look(S1, {S2: 1})
        self.insert(entries.idle_members(WEB, self.SOUGHT, before_any=self.BEFORE_ANY))

    def serves(self, server: Server, port: int) -> Flow:
        """Establish a connection to the server, whatever the weights are; return the connection."""
        self.switch.modify([entries.ratios(WEB, {server: 1})])
        flow = self.establishes(Flow(WEB, server, client_port=port))
        self.switch.modify([entries.ratios(WEB, {S1: 1}, {S1: GROUP})])
        return flow

    def ends(self, flow: Flow) -> None:
        """Complete a connection after its SYN, up to the server's FIN."""
        self.completes(flow)
        self.server_closes(flow)

    def become_idle(self, *servers: Server) -> None:
        """Establish one connection to each server, and then end these connections in the order of the servers."""
        flows = [self.serves(server, 41000 + server.id) for server in servers]
        for flow in flows:
            self.server_closes(flow)

    def goes_to(self, server: Server, port: int) -> Flow:
        """Open a new connection; assert that the server receives its SYN; return the connection."""
        return self.opens(Flow(WEB, server, client_port=port))

    def assertQueue(self, *servers: Server | None) -> None:
        """Assert the queue's servers from head to tail; None: an entry whose server now has another ticket or none."""
        ((ends),) = self.switch.registers.read([(Register.IDLE_ENDS, WEB.id)])
        head, tail = divmod(ends, 1 << 16)
        first = WEB.id * PLACES
        queue = self.switch.registers.read([(Register.IDLE_QUEUE, first + at % PLACES) for at in range(head, tail)])
        for register in TICKETS:
            tickets = self.switch.registers.read([(register, server) for server in queue])
            valid = [
                server if ticket == 1 << 16 | at else None
                for at, server, ticket in zip(range(head, tail), queue, tickets, strict=True)
            ]
            self.assertEqual(valid, [server and server.id for server in servers], register)


class GoesToAnIdleServer(Seeking):
    """If both drawn servers are busy, the idle server is selected once; it is then no longer idle."""

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


class IdleServersUnknown(Seeking):
    """A server has no ticket, and is not selected as idle, before its first connection has ended."""

    def runTest(self) -> None:
        self.busy(S1, 1)
        self.busy(S2, 1)
        self.goes_to(S1, 40001)


class IdleOnesThatAreDrawnComeFirst(Seeking):
    """If the less loaded of the two drawn servers is idle, it is selected, even if another server is idle too."""

    def runTest(self) -> None:
        self.become_idle(S3)
        self.busy(S1, 1)
        self.goes_to(S2, 40001)
        self.assertQueue(S3)


class OnlyMembersAreSought(Seeking):
    """An idle server that is not a member in table `idle_members` is not selected.

    Such a server drains, is full, has a small weight, or belongs to another service. A connection that finds the server
    at the head of the queue removes the entry, and is sent to one of the two drawn servers. The next connection uses
    the next entry.
    """

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
    """An idle server is selected before the switch considers a third candidate, whatever the candidate's weight."""

    SOUGHT = (S2,)

    def runTest(self) -> None:
        self.become_idle(S2)
        self.switch.modify([entries.fixed_draw(GROUP, (S1, S3), {S1: 1, S3: 9})])
        self.busy(S1, 1)
        self.goes_to(S2, 40001)
        self.goes_to(S3, 40002)


class IdleForLongestFirst(Seeking):
    """Servers are selected in the order in which they became idle, after an idle first candidate without a ticket."""

    SOUGHT = (S1, S2, S3)
    BEFORE_ANY = True

    def runTest(self) -> None:
        self.ends(self.goes_to(S1, 40001))
        self.assertQueue(S1)
        self.switch.modify([entries.ratios(WEB, {S3: 1}, {S3: GROUP})])
        for flow in [self.goes_to(S3, 40002), self.goes_to(S1, 40003)]:  # S3 has not had a connection yet
            self.ends(flow)
        self.switch.modify([entries.ratios(WEB, {S1: 1}, {S1: GROUP})])
        for server, port in ((S3, 40004), (S1, 40005), (S2, 40006)):
            self.goes_to(server, port)  # the last connection finds an empty queue
            self.assertQueue(*((S1,) if port == 40004 else ()))


class BusyOnesLeaveTheQueue(Seeking):
    """A drawn server in the middle of the queue loses its ticket, and receives a new one when it is idle again."""

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
        self.goes_to(S1, 40004)  # removes the head, because S2 has more connections
        self.assertQueue(S3, None)
        self.goes_to(S3, 40005)


class QueueIsBounded(Seeking):
    """If the queue has more entries than places, the oldest entry is removed; ticket numbers wrap."""

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
    """Connections that the controller has marked as ended do not count as open when a server becomes idle."""

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
    """If weights are unequal, the head of the queue is preferred to the idle S1, although S1 is drawn first.

    S1 has a small weight.
    """

    def runTest(self) -> None:
        self.switch.modify([entries.others(GROUP, {S2: 9})])
        self.become_idle(S3)
        self.busy(S2, 1)
        self.goes_to(S3, 40001)


class ResetsGiveNoTicket(Seeking):
    """An RST of server or client gives no ticket, because failed servers send RSTs and any host can forge them."""

    BEFORE_ANY = True

    def runTest(self) -> None:
        flow = self.serves(S3, 41001)
        self.server_sends(flow, flow.reply(flags="RA", seq=5001), was_reset(S3))
        self.resets(self.serves(S3, 41002))
        self.assertLoads()
        self.assertQueue()
        self.goes_to(S1, 40001)


class ReopeningTakesTheTicket(Seeking):
    """A connection that continues after a forged RST of its client is open, so its server loses the ticket."""

    def runTest(self) -> None:
        first, second = self.serves(S3, 41001), self.serves(S3, 41002)
        self.resets(first)
        self.server_closes(second)
        self.assertQueue(S3)
        self.server_sends(first, first.reply(b"more", flags="PA", seq=5001))
        self.assertLoads(s3=1)
        self.assertQueue()


class FoundInAnotherWord(Seeking):
    """A server with a number above 31 is a member by a further entry of the table: an entry has bits for 32 servers."""

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
        """Write a ticket for the server and the queue's only entry, as if the server's only connection had ended."""
        self.switch.registers.write(Register.IDLE_QUEUE, WEB.id * PLACES, server.id)
        for register in TICKETS:
            self.switch.registers.write(register, server.id, 1 << 16)
        self.switch.registers.write(Register.IDLE_ENDS, WEB.id, 1)
        self.assertQueue(server)


class TicketGoesWhenAConnectionMovesIn(Seeking):
    """A server to which a connection moves is no longer idle; the server that the connection leaves gets no ticket."""

    def runTest(self) -> None:
        self.become_idle(S2)
        flow = self.serves(S1, 40001)
        self.drains()
        moved = flow.to(S2)
        self.client_sends(moved, moved.syn(), again(WEB, S2))
        self.server_sends(moved, moved.syn_ack(), first_answer(S2))
        self.assertQueue(S2)
        self.client_sends(moved, moved.ack(), completed(S2))
        self.assertLoads(s2=1)
        self.assertQueue()
