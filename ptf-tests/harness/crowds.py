"""Base class and segments for tests of the limit on requests to a destination, a token bucket that is not refilled."""

from __future__ import annotations

from typing import Any, cast

from sluice.names import Counter, DropReason, Meter, Register

from .base import Changes, StageTest, admitted, new, refused
from .flow import Flow
from .frames import IP, TCP, Packet, layers
from .plan import CLIENT, CLIENT_HOST, S1, WEB, Host
from .probes import ether, routed

OFFERED_WEB = (Counter.OFFERED, WEB.id)
REFUSED_WEB = (Counter.REFUSED, WEB.id)
HOT, OTHER = 1, 2
"""Numbers of the two destinations in the switch's table `destinations`."""


def segment(
    destination: str, port: int = 22, source: Host = CLIENT_HOST, client_port: int = 50000, **fields: object
) -> Packet:
    """Return a TCP segment to an address and port that belong to no service: a SYN, unless `fields` has other flags."""
    header: dict[str, object] = {"flags": "S", "seq": 1000, **fields}
    tcp = cast(Any, TCP)(sport=client_port, dport=port, **header)
    return layers(ether(source), IP(src=source.address, dst=destination), tcp)


class Crowd(StageTest):
    """Base class of the tests in which the bucket of a destination holds few tokens and is never refilled."""

    def limit(self, burst: int, known: int | None = None, destination: int = HOT) -> None:
        """Let the switch admit `burst` SYNs to the destination, from any client.

        Afterwards it admits only SYNs of remembered clients: `known` SYNs (None: all).
        """
        self.meter(Meter.DESTINATION_LIMIT, destination, cir=0, cburst=burst, pir=0, pburst=burst)
        if known is not None:
            self.meter(Meter.RETURNING_LIMIT, destination, cir=0, cburst=known, pir=0, pburst=known)

    def passes(self, host: Host, frame: Packet, *changes: Changes, source: Host = CLIENT_HOST) -> None:
        """Send a frame; assert that the switch routes it to the host."""
        self.forwards(source.port, frame, host.port, routed(frame, host), *changes)

    def exhausts(self, host: Host, known: int | None = None, answer_reset: bool = False, remember: int = 0) -> None:
        """Let the switch admit a single SYN to the host, then `known` SYNs of remembered clients; send the single SYN.

        `known` is described in `limit`, `answer_reset` and `remember` in `watch`.
        """
        self.watch(host.address, HOT, answer_reset, remember)
        self.limit(1, known)
        self.passes(host, segment(host.address), admitted(HOT))
        self.spent(Meter.DESTINATION_LIMIT)

    def opens_web(self, client_port: int, *changes: Changes) -> Flow:
        """Open a new connection to the service; assert that it is admitted and pinned to S1; return the connection."""
        flow = Flow(WEB, S1, client_port=client_port)
        self.client_sends(flow, flow.syn(), new(WEB, S1), *changes)
        return flow

    def refuses_web(self, flow: Flow, number: int = HOT) -> None:
        """Send a SYN to the service; assert that it is neither pinned nor counted for a server.

        `number` is the destination that counts the SYN as refused.
        """
        self.drops(CLIENT, flow.syn(), DropReason.ADMISSION_REFUSED, OFFERED_WEB, REFUSED_WEB, refused(number))
        self.assertNotPinned(flow.key)

    def others(self) -> list[int]:
        """Return the numbers of offered, admitted and refused requests to all destinations without an entry."""
        registers = (Register.REQUESTS_OFFERED, Register.REQUESTS_ADMITTED, Register.REQUESTS_REFUSED)
        return self.switch.registers.read([(register, 0) for register in registers])
