"""Idle servers (p4src/v1model/idle_servers.p4): a new connection goes to whoever has been idle for longest."""

from __future__ import annotations

from dataclasses import replace

from harness import entries, plan
from harness.base import again, completed, first_answer, new, was_reset
from harness.flow import Flow
from harness.looking import GROUP, TICKETS, Looking
from harness.plan import S1, S2, S3, WEB, Server
from sluice.dataplane.idle import PLACES
from sluice.dataplane.table import STALE
from sluice.names import PinState, Register, Table


class Seeking(Looking):
    """Base: S1 is drawn first, S2 beside it, and S3 may be sought out while it is idle."""

    NEEDS = (Table.IDLE_MEMBERS,)
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
