"""Tests of the second look: who is drawn, and what each has to do."""

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
"""A group of the others, by no server's number."""


class Looking(StageTest):
    """Base: nobody has anything to do, and nobody looks yet."""

    def setUp(self) -> None:
        super().setUp()
        self.loads = self.switch.present(LOADS)
        """As many as servers that are looked at."""
        pins = (Register.PIN_SERVER_1, Register.PIN_SERVER_2)
        for register in self.switch.present((*LOADS, *STALE, *REFUSING, *IDLE, Register.LOAD_EVICTED, *pins)):
            self.switch.registers.clear(register)

    def look(self, first: Server, others: Mapping[Server, int], weight: int = 1, looks: int = 2) -> None:
        """Draw always `first`, and beside it one of the others; or as many as there are looks less one."""
        self.needs(LOADS[looks - 1])
        self.insert(entries.others(GROUP, others, looks))
        self.switch.modify([entries.ratios(WEB, {first: weight}, {first: GROUP})])
        self.addCleanup(self.switch.modify, [entries.ratios(WEB, plan.RATIOS[WEB])])

    def busy(self, server: Server, connections: int) -> None:
        """Give a server something to do."""
        for register in self.loads:
            self.switch.registers.write(register, server.id, connections)

    def assertLoads(self, **loads: int) -> None:
        """Open connections of s1, s2, s3 in both copies; of all servers that are not named, none."""
        wanted = {f"s{number}": loads.get(f"s{number}", 0) for number in (1, 2, 3)}
        for register in self.loads:
            cells = self.switch.registers.read([(register, number) for number in range(SERVERS)])
            self.assertEqual({f"s{n}": cells[n] for n in (1, 2, 3)}, wanted, register)
            self.assertEqual(sum(cells), sum(wanted.values()), register)

    def assertEvicted(self, connections: int) -> None:
        """Connections of s1 whose slot was taken before they had ended."""
        self.assertEqual(self.switch.registers.read([(Register.LOAD_EVICTED, S1.id)]), [connections])

    def resets(self, flow: Flow) -> None:
        """A RST of the client's."""
        self.client_sends(flow, flow.request(flags="R", seq=1001))

    def refuses(self, flow: Flow) -> None:
        """The server's host answers a SYN to a closed port (RFC 9293, section 3.10.7.1)."""
        self.server_sends(flow, flow.reply(flags="RA", seq=0, ack=FIRST + 1), was_reset(flow.server))

    def server_closes(self, flow: Flow) -> None:
        """A FIN of the server's."""
        self.server_sends(flow, flow.reply(flags="FA", seq=5001))
