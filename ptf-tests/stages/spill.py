"""Tests of caps on open connections: the controller's own code reads the loads, and writes weights and the meter."""

from __future__ import annotations

from harness import entries, plan
from harness.base import StageTest, again, new
from harness.content import IMAGES, ContentTest
from harness.flow import Flow
from harness.plan import CLIENT, S1, S2, WEB
from sluice.balance import BalanceOptions, Balancer, Member, Mode
from sluice.dataplane.table import LOADS, STALE
from sluice.features.balance.service import ServiceView
from sluice.names import Counter, DropReason, Meter, PinState, Register
from sluice.switch.admission import NOTHING, entry

CAPS = {S1.id: 2, S2.id: 1}
SERVED = {server.id: server for server in (S1, S2)}


class Capped(StageTest):
    """Base class: connections are sent to s1 up to its cap, then to s2 up to its cap, and then refused."""

    def setUp(self) -> None:
        super().setUp()
        self.switch.registers.clear(*self.switch.available((*LOADS, *STALE)))
        self.view = ServiceView(Balancer(map(Member, CAPS), BalanceOptions(Mode.FIXED)))
        self.view.balancer.adopt({S1.id: 1.0})
        self.addCleanup(self.switch.modify, [entries.ratios(WEB, plan.RATIOS[WEB])])
        self.addCleanup(self.switch.modify, [entries.unmetered(Meter.ADMISSION, WEB.id)])
        self.look()

    def look(self) -> None:
        """Read the loads, and set the weights and the meter for them, as the controller does ten times a second."""
        loads = self.switch.registers.read([(Register.LOAD_FIRST, server) for server in CAPS])
        self.view.update_full(CAPS, dict(zip(CAPS, loads, strict=True)))
        weights = {SERVED[number]: weight for number, weight in self.view.weights.items()}
        bucket = NOTHING if self.view.refuses else None
        self.switch.modify([entries.ratios(WEB, weights), entry(Meter.ADMISSION, WEB.id, bucket)])

    def fill(self) -> list[Flow]:
        """Open as many connections as the caps of both servers allow."""
        flows = [Flow(WEB, server, client_port=40001 + n) for n, server in enumerate((S1, S1, S2))]
        for flow in flows:
            self.assertFalse(self.view.refuses)
            self.establishes(flow)
            self.look()
        return flows

    def refuses(self, port: int) -> None:
        """Send the SYN of a new connection; assert that the SYN is refused, and that the connection has no pin."""
        flow = Flow(WEB, S1, client_port=port)
        counted = ((Counter.OFFERED, WEB.id), (Counter.REFUSED, WEB.id))
        self.drops(CLIENT, flow.syn(), DropReason.ADMISSION_REFUSED, *counted)
        self.assertNotPinned(flow.key)


class SpillsThenSheds(Capped):
    """Above a cap, connections reach the next server; if both are full, new ones are refused and open ones continue."""

    def runTest(self) -> None:
        first, _, last = self.fill()
        self.assertEqual((self.view.full, self.view.refuses), (CAPS.keys(), True))
        for port in (40004, 40005):
            self.refuses(port)
        for flow in (first, last):
            self.client_sends(flow, flow.data())
            self.assertPinned(flow, PinState.ESTABLISHED)


class RoomReturns(Capped):
    """After a FIN of a full server, the controller's next reading makes room for one new connection to that server."""

    def runTest(self) -> None:
        _, second, _ = self.fill()
        self.refuses(40004)
        self.server_sends(second, second.reply(flags="FA", seq=5001))
        self.refuses(40004)
        self.look()
        self.establishes(Flow(WEB, S1, client_port=40004))
        self.look()
        self.refuses(40005)


class PendingStays(Capped):
    """A repeated SYN reaches its connection's server, although that server and then all servers are full."""

    def runTest(self) -> None:
        self.establishes(Flow(WEB, S1, client_port=40001))
        pending = self.opens(Flow(WEB, S1, client_port=40002))
        self.look()
        self.client_sends(pending, pending.syn(), again(WEB, S1))
        self.client_sends(other := Flow(WEB, S2, client_port=40003), other.syn(), new(WEB, S2))
        self.look()
        self.assertTrue(self.view.refuses)
        self.client_sends(pending, pending.syn(), again(WEB, S1))
        self.assertPinned(pending, PinState.PENDING)


class BeyondUntilTheLook(Capped):
    """Connections that begin before the controller's next reading can still reach a full server, above its cap."""

    def runTest(self) -> None:
        for port in (40001, 40002, 40003):
            self.opens(Flow(WEB, S1, client_port=port))
        self.look()
        self.opens(Flow(WEB, S2, client_port=40004))


class GroupRefusesItsAgents(ContentTest):
    """If all servers of a group are full, new SYNs of the group's agents are refused.

    The repeated SYN of a pinned connection is not refused, and clients still reach their agent.
    """

    def runTest(self) -> None:
        pinned = self.flow()
        self.agent_reaches_server(pinned, pinned.opening())
        self.addCleanup(self.switch.modify, [entries.unmetered(Meter.ADMISSION, IMAGES.id)])
        self.switch.modify([entry(Meter.ADMISSION, IMAGES.id, NOTHING)])
        late = self.flow(client_port=40100)
        self.drops(late.agent.host.port, late.opening(), DropReason.ADMISSION_REFUSED)
        self.assertNotPinned(late.key)
        self.agent_reaches_server(pinned, pinned.opening())
        self.reaches_agent(late, late.syn())
