"""Base class of the tests in which the switch compares the open connections of several candidate servers."""

from __future__ import annotations

from collections.abc import Mapping

from sluice.dataplane.table import LOADS, REFUSING, STALE
from sluice.names import SERVERS, Register

from . import entries, plan
from .base import StageTest, was_reset
from .flow import FIRST, Flow
from .plan import S1, S2, S3, WEB, Server

SERVED = (S1, S2, S3)
TICKETS = (Register.IDLE_TICKET_FIRST, Register.IDLE_TICKET_HEAD)
IDLE = (Register.IDLE_ENDS, Register.IDLE_QUEUE, *TICKETS, Register.STALE_IDLE)
GROUP = 77
"""Number of the selector group with the other candidates; no server has this number."""


class SecondLookTest(StageTest):
    """Base class: a test starts without open connections; a SYN draws a single candidate until `look` is called."""

    def setUp(self) -> None:
        super().setUp()
        self.loads = self.switch.available(LOADS)
        """Registers with every server's number of open connections; each candidate of a SYN has its own copy."""
        others = (Register.LOAD_EVICTED, Register.PIN_SERVER_1, Register.PIN_SERVER_2)
        self.switch.registers.clear(*self.switch.available((*LOADS, *STALE, *REFUSING, *IDLE, *others)))

    def look(self, first: Server, others: Mapping[Server, int], weight: int = 1, looks: int = 2) -> None:
        """Let every SYN draw `first`, with `weight`, and `looks` - 1 servers of `others`, which contains weights."""
        self.needs(LOADS[looks - 1])
        self.insert(entries.others(GROUP, others, looks))
        self.replace(entries.ratios(WEB, {first: weight}, {first: GROUP}), entries.ratios(WEB, plan.RATIOS[WEB]))

    def busy(self, server: Server, connections: int) -> None:
        """Set a server's number of open connections."""
        for register in self.loads:
            self.switch.registers.write(register, server.id, connections)

    def assertLoads(self, **loads: int) -> None:
        """Assert the open connections of s1, s2 and s3 in all registers; servers without an argument have none."""
        expected = {f"s{number}": loads.get(f"s{number}", 0) for number in (1, 2, 3)}
        for register in self.loads:
            cells = self.switch.registers.read([(register, number) for number in range(SERVERS)])
            self.assertEqual({f"s{n}": cells[n] for n in (1, 2, 3)}, expected, register)
            self.assertEqual(sum(cells), sum(expected.values()), register)

    def assertEvicted(self, connections: int) -> None:
        """Assert how many connections of s1 lost their slot before they had ended."""
        self.assertEqual(self.switch.registers.read([(Register.LOAD_EVICTED, S1.id)]), [connections])

    def resets(self, flow: Flow) -> None:
        """Send an RST of the client."""
        self.client_sends(flow, flow.request(flags="R", seq=1001))

    def refuses(self, flow: Flow) -> None:
        """Send the RST with which the server's host answers a SYN to a closed port (RFC 9293, section 3.10.7.1)."""
        self.server_sends(flow, flow.reply(flags="RA", seq=0, ack=FIRST + 1), was_reset(flow.server))

    def server_closes(self, flow: Flow) -> None:
        """Send a FIN of the server."""
        self.server_sends(flow, flow.reply(flags="FA", seq=5001))
