"""Shares the budgets of servers among the measured transfers. The input is readings, the output is caps.

In the papers a server sets the sizes of its own buffers. Here a cap on the window determines how much a transfer can
use. A small transfer gets no cap (Matsuo et al., section 2.2.2), and a transfer that sends nothing loses its cap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sluice.names import TRANSFERS

from .columns import NONE, Columns, Flags, Numbers
from .direction import SMALL, Budget, Direction, SendSummary
from .need import Estimator, Needs, Reading
from .receive import ReceiveBudget, Received, received
from .throughput import Column


@dataclass(frozen=True, slots=True)
class Managed:
    """A server whose buffers are shared."""

    send: Budget | None = None
    receive: ReceiveBudget | None = None
    sampling: int = 0
    """The switch measures 1 in 2^sampling of the server's connections."""


class Caps(NamedTuple):
    """Caps of single connections in one direction that are to be written to the switch; each array has one element per
    cap."""

    flow: Numbers
    """Number of the connection's slot in the connection table."""
    fingerprint: Numbers
    size: Numbers
    """The cap in bytes; 0 removes the connection's own cap."""


class Defaults(NamedTuple):
    """Caps for those connections of a server that have no cap of their own, in bytes; 0: no cap."""

    send: int = 0
    receive: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision at the end of an interval, not yet written to the switch."""

    caps: Caps
    """The caps to be written for the send direction."""
    defaults: Mapping[int, Defaults]
    """Default caps, by server."""
    send: Mapping[int, SendSummary]
    """Each server's budget, default cap, and sums over the transfers that share the budget."""
    receive: Mapping[int, Received]
    """Each server's receive budget, its number of open connections, and their cap."""
    installed: Column
    """Each slot's cap in the switch after the decision has been written."""


class Sharer:
    """Decides the caps of all measured transfers of a switch.

    ``observe`` returns a decision. The caller calls ``wrote`` after it has written the decision to the switch.
    """

    def __init__(self, managed: Mapping[int, Managed]) -> None:
        self.managed = managed
        self.defaults: dict[int, Defaults] = {}
        """The default caps that are in the switch, by server."""
        self._before: Columns | None = None
        self._estimator = Estimator(0)
        self._send = Direction(0, {})

    def configure(self, managed: Mapping[int, Managed]) -> None:
        """Replace the budgets. The estimates of the transfers' needs stay."""
        self.managed = managed

    def rebase(self, defaults: Mapping[int, Defaults]) -> None:
        """Restart from a switch that has these defaults and whose other caps are unknown, such as after a
        reconnection."""
        self.defaults, self._before = dict(defaults), None

    def observe(self, columns: Columns, connections: Mapping[int, int]) -> Decision:
        """Decide the caps of the transfers that were read at the end of an interval.

        ``connections``: the number of open connections, by server number; a server that is missing counts as having 0.
        """
        reading = self._reading(columns)
        server = np.where(columns.flow == NONE, 0, columns.server)
        self._estimator.observe(reading)
        needs = self._send_needs(columns, server)
        sending = {number: (managed.send, managed.sampling) for number, managed in self.managed.items() if managed.send}
        measured = sum(connections.get(number, 0) / 2**sampling for number, (_, sampling) in sending.items())
        slotted_share = slotted(TRANSFERS, measured)
        caps, is_written, send = self._send.decide(
            sending, server, needs, reading.flight, reading.mss, slotted=slotted_share
        )
        receive = {
            number: received(managed.receive, connections.get(number, 0), self.defaults.get(number, Defaults()).receive)
            for number, managed in self.managed.items()
            if managed.receive
        }
        is_written &= _among(server, self.managed)
        installed = np.where(is_written, caps, self._send.installed)
        self._send.installed[is_written] = np.nan  # unknown until written, because a write may be interrupted
        return Decision(_caps(columns, is_written, caps), _defaults(send, receive), send, receive, installed)

    def _reading(self, columns: Columns) -> Reading:
        """Return the changes since the previous reading, and set the cap of slots with a new connection to 0 (none).

        The first reading, and the first after ``rebase``, discards all estimates, and sets the slots' caps to unknown.
        """
        reading = columns.since(self._before)
        if self._before is None:
            slots = len(columns.flow)
            self._estimator = Estimator(slots)
            self._send = Direction(slots, {server: default.send for server, default in self.defaults.items()})
        else:
            self._send.installed[reading.is_new] = 0.0
        self._before = columns
        return reading

    def _send_needs(self, columns: Columns, server: Numbers) -> Column:
        """Return each transfer's need by the method of its server's budget; 0 for small transfers and servers without a
        budget."""
        needs, caps = np.zeros(len(server)), self._send.in_effect(server)
        for how in Needs:
            numbers = [number for number, managed in self.managed.items() if managed.send and managed.send.needs is how]
            if numbers:
                needs = np.where(_among(server, numbers), self._estimator.needs(how, server, caps), needs)
        needs[columns.sent < SMALL] = 0.0
        return needs

    def wrote(self, decision: Decision) -> None:
        """Record that the switch has been written according to a decision."""
        self._send.installed = decision.installed
        self.defaults = dict(decision.defaults)
        self._send.defaults = {server: default.send for server, default in decision.defaults.items()}


def slotted(slots: int, connections: float) -> float:
    """Return the share of ``connections`` that find a free slot, if each hashes to one of ``slots`` slots."""
    load = connections / max(1, slots)
    return -math.expm1(-load) / load if load > 0 else 1.0


def _among(server: Numbers, servers: Iterable[int]) -> Flags:
    """Return flags of the transfers that belong to one of ``servers``. Slots without a transfer have server 0, which is
    no server's number."""
    numbers = list(servers)
    flags = np.zeros(1 + max(int(server.max(initial=0)), max(numbers, default=0)), np.bool_)
    flags[numbers] = True
    return flags[server]


def _caps(columns: Columns, is_written: Flags, caps: Column) -> Caps:
    """Return the caps flagged in ``is_written``, with their slots and fingerprints."""
    return Caps(columns.flow[is_written], columns.fingerprint[is_written], caps[is_written].astype(np.int64))


def _defaults(send: Mapping[int, SendSummary], receive: Mapping[int, Received]) -> dict[int, Defaults]:
    return {
        server: Defaults(
            send[server].default if server in send else 0, receive[server].default if server in receive else 0
        )
        for server in {**send, **receive}
    }
