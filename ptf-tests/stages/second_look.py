"""Tests of stage `second_look`: of the drawn candidate servers, the one with the least load for its weight is used.

A server's load is its number of open connections.
"""

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
from harness.looking import GROUP, SERVED, SecondLookTest
from harness.pin_table import ANSWERS, REQUESTS
from harness.plan import S1, S2, S3, WEB, Server
from sluice.dataplane.table import REFUSING, STALE
from sluice.names import SERVERS, SERVICES, Meter, PinState, Register


class GoesToTheLighter(SecondLookTest):
    """If the first candidate has more open connections, the second one is selected; its load increases by one."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        self.busy(S1, 1)
        flow = self.opens(Flow(WEB, S2))
        self.assertPinned(flow, PinState.PENDING)
        self.assertLoads(s1=1, s2=1)
        self.completes(flow)
        self.assertLoads(s1=1, s2=1)


class StaysWithTheFirst(SecondLookTest):
    """With equal loads, or if the first candidate has the smaller load, the first candidate is selected."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        self.opens(Flow(WEB, S1, client_port=40001))
        self.assertLoads(s1=1)
        self.busy(S2, 1)
        self.opens(Flow(WEB, S1, client_port=40002))
        self.assertLoads(s1=2, s2=1)


class ForItsWeight(SecondLookTest):
    """A server with three times the weight may have three times the load, including the new connection."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1}, weight=3)
        self.busy(S1, 2)
        self.opens(Flow(WEB, S1, client_port=40001))
        self.assertLoads(s1=3)
        self.opens(Flow(WEB, S2, client_port=40002))
        self.assertLoads(s1=3, s2=1)


class RoundingDecidesNothing(SecondLookTest):
    """Servers with equal loads count as equal if their weights differ only by rounding: the first one is selected."""

    def runTest(self) -> None:
        self.look(S1, {S2: 86}, weight=85)
        self.opens(Flow(WEB, S1, client_port=40001))
        self.opens(Flow(WEB, S2, client_port=40002))
        self.opens(Flow(WEB, S1, client_port=40003))
        self.assertLoads(s1=2, s2=1)


class GoesToTheThird(SecondLookTest):
    """If the first two candidates have open connections, and the third has fewer, the third candidate is selected."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1, S3: 1}, looks=3)
        self.busy(S1, 9)
        self.busy(S2, 9)
        flow = self.opens(Flow(WEB, S3))
        self.assertPinned(flow, PinState.PENDING)
        self.assertLoads(s1=9, s2=9, s3=1)


class GoesToTheFourth(SecondLookTest):
    """With four candidates the least loaded is selected, even if it is the last one."""

    def runTest(self) -> None:
        self.look(S1, {S1: 1, S2: 1, S3: 1}, looks=4)
        for lightest in SERVED:
            for server in SERVED:
                self.busy(server, 2 if server is lightest else 7)
            self.opens(Flow(WEB, lightest, client_port=40000 + lightest.id))


class ThirdForItsWeight(SecondLookTest):
    """The third candidate is compared with the less loaded of the first two, each relative to its weight."""

    def runTest(self) -> None:
        self.look(S1, {S2: 3, S3: 3}, weight=1, looks=3)
        self.busy(S1, 1)
        for of_others, taken in (((8, 4), S3), ((4, 8), S2), ((7, 7), S1)):
            for server, connections in zip((S2, S3), of_others, strict=True):
                self.busy(server, connections)
            self.busy(S1, 1)
            self.opens(Flow(WEB, taken, client_port=40000 + of_others[0]))


class IdleEndsTheLooking(SecondLookTest):
    """A third candidate is considered only if the first two have connections, whatever the third candidate's weight."""

    NEEDS = (Register.LOAD_THIRD,)

    def runTest(self) -> None:
        self.insert(entries.fixed_draw(GROUP, (S2, S3), {S2: 1, S3: 9}))
        self.replace(entries.ratios(WEB, {S1: 1}, {S1: GROUP}), entries.ratios(WEB, plan.RATIOS[WEB]))
        for port, loads, taken in ((40001, (0, 5), S1), (40002, (1, 0), S2), (40003, (1, 1), S3)):
            for server, connections in zip(SERVED, (*loads, 0), strict=True):
                self.busy(server, connections)
            self.opens(Flow(WEB, taken, client_port=port))


class StaleOfAThird(SecondLookTest):
    """Connections that the controller has marked as ended do not count for the third and the fourth candidate."""

    def runTest(self) -> None:
        self.look(S1, {S1: 1, S2: 1, S3: 1}, looks=4)
        for taken in (S2, S3):
            for server in SERVED:
                self.busy(server, 5)
                for register in self.switch.available(STALE):
                    self.switch.registers.write(register, server.id, 3 if server is taken else 0)
            self.opens(Flow(WEB, taken, client_port=40000 + taken.id))


class RefusingIsPreferredToNone(SecondLookTest):
    """Until its next SYN-ACK, a server that refuses SYNs receives only connections whose first candidate it is."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        self.busy(S1, 9)
        refused = self.opens(Flow(WEB, S2, client_port=40001))
        self.refuses(refused)
        self.opens(Flow(WEB, S1, client_port=40002))
        self.assertLoads(s1=10)

        self.insert(entries.others(GROUP + 1, {S1: 1}))
        self.switch.modify([entries.ratios(WEB, {S2: 1}, {S2: GROUP + 1})])
        flow = self.opens(Flow(WEB, S2, client_port=40003))
        self.switch.modify([entries.ratios(WEB, {S1: 1}, {S1: GROUP})])
        self.opens(Flow(WEB, S1, client_port=40004))
        self.server_sends(flow, flow.syn_ack(), first_answer(S2))
        self.opens(Flow(WEB, S2, client_port=40005))


class RefusingThird(SecondLookTest):
    """A server that refuses SYNs is not selected as the third or fourth candidate."""

    def runTest(self) -> None:
        self.look(S1, {S1: 1, S2: 1, S3: 1}, looks=4)
        for number, refusing in enumerate((S2, S3)):
            taken = S3 if refusing is S2 else S2
            for server in SERVED:
                self.busy(server, {refusing: 0, taken: 3}.get(server, 9))
                for register in self.switch.available(REFUSING):
                    self.switch.registers.write(register, server.id, server is refusing)
            self.opens(Flow(WEB, taken, client_port=40001 + number))


class OtherResetsAreNoRefusal(SecondLookTest):
    """The RST of an answered connection, and an RST without ACK, do not mark the server as refusing."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        self.busy(S1, 9)
        answered = self.half_opens(Flow(WEB, S2, client_port=40001))
        self.server_sends(answered, answered.reply(flags="RA", seq=5001), was_reset(S2))
        unknown = self.opens(Flow(WEB, S2, client_port=40002))
        self.server_sends(unknown, unknown.reply(flags="R", seq=7), was_reset(S2))
        self.opens(Flow(WEB, S2, client_port=40003))


class RepeatedSynStays(SecondLookTest):
    """A repeated SYN reaches its connection's server, however the loads have changed, and counts once."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        flow = self.opens(Flow(WEB, S1))
        self.busy(S1, 9)
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertLoads(s1=9)


class EndsOnce(SecondLookTest):
    """The server's FIN reduces the load once, and the client's does not, with one candidate or several."""

    def runTest(self) -> None:
        for port, with_look in ((40001, False), (40002, True)):
            if with_look:
                self.look(S1, {S2: 1})
            flow = self.establishes(Flow(WEB, S1, client_port=port))
            self.client_sends(flow, flow.fin())
            self.assertLoads(s1=1)
            self.server_closes(flow)
            self.assertLoads()
            self.server_closes(flow)
            self.client_sends(flow, flow.fin())
            self.resets(flow)
            self.assertLoads()


class ResetByServer(SecondLookTest):
    """An RST of the server reduces the server's load by one connection."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.server_sends(flow, flow.reply(flags="RA", seq=5001), was_reset(S1))
        self.assertLoads()


class ResetInTheClientsName(SecondLookTest):
    """A client's RST reduces the load until the server's next packet shows that the connection continues."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.resets(flow)
        self.resets(flow)
        self.assertLoads()
        self.server_sends(flow, flow.reply(b"more", flags="PA", seq=5001))
        self.assertLoads(s1=1)


class PortsUsedAgain(SecondLookTest):
    """A SYN that reuses the ports of an ended connection counts for the server to which it is pinned."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.server_sends(flow, flow.reply(flags="RA", seq=5001), was_reset(S1))
        self.weigh(WEB, {S2: 1})
        self.opens(flow.to(S2))
        self.assertLoads(s2=1)
        self.assertEvicted(0)


class EndedUnseen(SecondLookTest):
    """A server's load is its counted connections minus those that the controller has marked as ended.

    A negative result counts as no load.
    """

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        self.busy(S1, 5)
        self.busy(S2, 3)
        for stale, taken in ((2, S1), (1, S2), (9, S1)):
            for register in self.switch.available(STALE):
                self.switch.registers.write(register, S1.id, stale)
            flow = self.opens(Flow(WEB, taken, client_port=40000 + stale))
            self.resets(flow)
        self.assertLoads(s1=5, s2=3)


class Evicted(SecondLookTest):
    """A connection that loses its slot before it ends is counted as evicted; an ended connection is not."""

    def runTest(self) -> None:
        self.set_timers(linger=1)
        flows = crowd()
        self.put_pin(flows.first, PinState.PENDING, age=self.switch.times["pending_time"] + 1)
        self.opens(flows.second)
        self.assertEvicted(1)
        self.server_sends(flows.second, flows.second.reply(flags="RA", seq=0), was_reset(S1))
        self.pass_ticks(2)
        self.opens(flows.first)
        self.assertEvicted(1)


class CandidateMoves(SecondLookTest):
    """If a connection moves from a draining server, that server's load decreases by one.

    The load of the new server increases by one.
    """

    NEEDS = (Register.CANDIDATE_KEY,)

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.drains()
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), again(WEB, S2))
        self.server_sends(moved, moved.syn_ack(), first_answer(S2))
        self.assertLoads(s1=1)
        self.client_sends(moved, moved.ack(), completed(S2))
        self.assertLoads(s2=1)
        self.assertEvicted(0)


class InTheSecondWay(SecondLookTest):
    """If another connection occupies the slot in way 1, a SYN's second pass claims the slot in way 2 (second hash)."""

    def runTest(self) -> None:
        flows = crowd()
        self.establishes(flows.first)
        self.look(S1, {S2: 1})
        self.busy(S1, 1)
        flow = flows.second.to(S2)
        self.client_sends(flow, flow.syn(), new(WEB, S2))
        self.assertPinned(flow, PinState.PENDING, way=2)
        self.assertPinned(flows.first, PinState.ESTABLISHED, way=1)
        self.assertLoads(s1=1, s2=1)


class MeteredOnce(SecondLookTest):
    """A SYN's second pass takes no second token, and a refused SYN does not read loads."""

    def runTest(self) -> None:
        self.look(S1, {S2: 1})
        self.meter(Meter.ADMISSION, WEB.id, cir=0, cburst=2, pir=0, pburst=2)
        self.opens(Flow(WEB, S1, client_port=40001))
        self.opens(Flow(WEB, S2, client_port=40002))
        self.assertLoads(s1=1, s2=1)
        red: Any = Flow(WEB, S1, client_port=40003)
        self.exchange(plan.CLIENT, red.syn())
        self.assertNotPinned(red.key)
        self.assertLoads(s1=1, s2=1)


class DrawsDiffer(SecondLookTest):
    """The draw of the second candidate is independent of the first: it is by weight among the remaining servers."""

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


class Even(SecondLookTest):
    """Base class: WEB draws servers by an evenly spaced sequence from its start, so that no draw is random."""

    WEIGHTS: Mapping[Server, int] = {S1: 128, S2: 85, S3: 43}
    DRAWS = 120
    NEEDS = (Register.DRAW_POINT,)

    def setUp(self) -> None:
        super().setUp()
        self.switch.registers.clear(Register.DRAW_POINT)
        self.replace(entries.service(WEB, shares=sum(self.WEIGHTS.values())), entries.service(WEB))

    def destinations(self, idle: Iterable[Server] = ()) -> list[str]:
        """Return the addresses that DRAWS new connections reach.

        After each connection, the loads of the servers in `idle` are set to 0.
        """
        taken: list[str] = []
        for port in range(40000, 40000 + self.DRAWS):
            ((_, frame),) = self.exchange(plan.CLIENT, Flow(WEB, S1, client_port=port).syn()).frames
            taken.append(".".join(str(byte) for byte in frame[30:34]))
            for server in idle:
                self.busy(server, 0)
        return taken

    def others(self, group: int, weights: Mapping[Server, int]) -> list[str]:
        """Return the addresses that new connections reach if S1 is drawn first, and the second candidate from `group`.

        S1 has the highest load, so each connection reaches the second candidate. `weights` are those of the group.
        """
        self.insert(entries.others(group, weights))
        self.replace(entries.ratios(WEB, {S1: 128}, {S1: group}), entries.ratios(WEB, plan.RATIOS[WEB]))
        self.busy(S1, 1_000_000)
        return self.destinations(weights)

    def assertEven(self, taken: list[str], weights: Mapping[Server, int]) -> None:
        """Assert that after every connection each server has received its share to within 2.5 connections.

        Only one in fifty series of random draws would be that close.
        """
        total = sum(weights.values())
        for count in range(1, len(taken) + 1):
            for server, weight in weights.items():
                taken_by_server = taken[:count].count(server.host.address)
                self.assertLessEqual(
                    abs(taken_by_server - count * weight / total), 2.5, (count, server.host.address, taken_by_server)
                )


class DrawsEvenly(Even):
    """If a service has `shares`, a server is drawn for about every n-th connection; its weight determines n."""

    def runTest(self) -> None:
        self.weigh(WEB, self.WEIGHTS)
        self.assertEven(self.destinations(), self.WEIGHTS)


class DrawsEvenlyOfFewer(Even):
    """A server is drawn for about every n-th connection even if the weights sum to only half of `shares`.

    The weights sum to less than `shares` if some of the service's servers are not in the selector group.
    """

    WEIGHTS: Mapping[Server, int] = {S1: 100, S2: 28}

    def setUp(self) -> None:
        super().setUp()
        self.switch.modify([entries.service(WEB, shares=256)])

    def runTest(self) -> None:
        self.weigh(WEB, self.WEIGHTS)
        self.assertEven(self.destinations(), self.WEIGHTS)


class OthersEvenly(Even):
    """A server is the second candidate of about every n-th connection. Its weight among the second candidates
    determines n."""

    def runTest(self) -> None:
        others = {S2: 85, S3: 43}
        self.assertEven(self.others(S1.id, others), others)


class LargePoolsEvenly(Even):
    """In a large pool, too, a server is the second candidate of about every n-th connection.

    In a large pool, the second candidates for all first candidates are drawn from a single group.
    """

    def runTest(self) -> None:
        others = {S2: 170, S3: 86}
        self.assertEven(self.others(SERVERS + WEB.id, others), others)


class SequenceOfItsOwn(Even):
    """A connection advances the sequence of its service by two points, for the first and for the further candidates.

    The sequences of other services stay.
    """

    DRAWS = 1

    def runTest(self) -> None:
        self.weigh(WEB, self.WEIGHTS)
        self.assertEqual(self.destinations(), [S2.host.address])
        cells = self.switch.registers.read([(Register.DRAW_POINT, number) for number in range(SERVICES)])
        moved = {number: cell for number, cell in enumerate(cells) if cell}
        self.assertEqual(moved, {WEB.id: 2 * 0x9E3779B9 % (1 << 32)})


class OpensAgainFromTheSecondWay(SecondLookTest):
    """If a connection that was closed in way 2 begins again in way 1, whose slot is free, it counts as open once."""

    def runTest(self) -> None:
        flows = self.fills_both_ways(crowd())
        self.assertLoads(s1=2)
        self.set_timers(linger=-1)
        for flow in (flows.first, flows.second):
            self.server_sends(flow, flow.reply(flags="RA", seq=5001), was_reset(S1))
        self.assertLoads()
        self.opens(flows.second)
        self.assertPinned(flows.second, PinState.PENDING, way=1)
        self.assertLoads(s1=1)


class ServersOwnSynIsNoConnection(SecondLookTest):
    """A SYN that a server sends from its service's port opens no connection, whatever the SYN's slot contains."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        own = flow.reply(flags="S", seq=5001)
        self.server_sends(flow, own)
        self.assertLoads()
        self.establishes(flow)
        self.server_closes(flow)
        self.server_sends(flow, own)
        self.assertLoads()


class LoadsAreTheOpenPins(SecondLookTest):
    """After random packets of few connections, the load of a server is the number of open connections pinned to it.

    Connections that lost their slot before they ended are added. Servers drain and return during the test.
    """

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
        # On a slow switch, pins expire before the comparison, and other connections claim their slots. A load includes
        # such evicted connections, because no controller subtracts them in this test.
        evicted = self.switch.registers.read([(Register.LOAD_EVICTED, server.id) for server in SERVED])
        loads = {f"s{server.id}": open_pins[server.id] + count for server, count in zip(SERVED, evicted, strict=True)}
        self.assertLoads(**loads)
