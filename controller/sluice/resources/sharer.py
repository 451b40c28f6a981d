"""Shares out the budgets of servers among the transfers that the switch measures: what is read in, caps out.

The papers' server sets its own buffers; here a cap on the window is what a transfer can have. One that is small is left
alone (Matsuo et al., section 2.2.2), and one that sends nothing gives its cap back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sluice.names import TRANSFERS

from .columns import NONE, Columns, Flags, Numbers
from .direction import SMALL, Budget, Direction, Told
from .need import Estimator, Needs, Reading
from .receive import ReceiveBudget, Received, received
from .throughput import Column


@dataclass(frozen=True, slots=True)
class Managed:
    """A server whose buffers are shared."""

    send: Budget | None = None
    receive: ReceiveBudget | None = None
    sampling: int = 0
    """Of 2^sampling connections the switch measures one."""


class Caps(NamedTuple):
    """What the switch is to hold for connections of their own in one direction, an element each."""

    flow: Numbers
    """The connection's number."""
    fingerprint: Numbers
    size: Numbers
    """Bytes; 0 is no cap of its own."""


class Defaults(NamedTuple):
    """Caps of a server's connections that have none of their own, in bytes; 0: none."""

    send: int = 0
    receive: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """An interval's. The switch has nothing of it yet."""

    caps: Caps
    """Those of sending connections that are to be written."""
    defaults: Mapping[int, Defaults]
    """By server."""
    send: Mapping[int, Told]
    """By server."""
    receive: Mapping[int, Received]
    held: Column
    """The caps that the switch has when this has been written."""


class Sharer:
    """Follows all slots of a switch. ``observe`` decides, ``wrote`` says that the switch has it."""

    def __init__(self, managed: Mapping[int, Managed]) -> None:
        self.managed = managed
        self.defaults: dict[int, Defaults] = {}
        """In the switch."""
        self._before: Columns | None = None
        self._estimator = Estimator(0)
        self._send = Direction(0, {})

    def configure(self, managed: Mapping[int, Managed]) -> None:
        """Other budgets; what is known of the transfers stays."""
        self.managed = managed

    def rebase(self, defaults: Mapping[int, Defaults]) -> None:
        """The switch may be another one, and somebody else may have written caps: it has these defaults."""
        self.defaults, self._before = dict(defaults), None

    def observe(self, columns: Columns, connections: Mapping[int, int]) -> Decision:
        """Decide on what was read at an interval's end.

        ``connections``: open ones by server, as far as they are known.
        """
        reading = self._reading(columns)
        server = np.where(columns.flow == NONE, 0, columns.server)
        self._estimator.observe(reading)
        needs = self._send_needs(columns, server)
        sending = {number: (one.send, one.sampling) for number, one in self.managed.items() if one.send}
        measured = sum(connections.get(number, 0) / 2**sampling for number, (_, sampling) in sending.items())
        part = slotted(TRANSFERS, measured)
        caps, worth, send = self._send.decide(sending, server, needs, reading.flight, reading.mss, slotted=part)
        receive = {
            number: received(one.receive, connections.get(number, 0), self.defaults.get(number, Defaults()).receive)
            for number, one in self.managed.items()
            if one.receive
        }
        worth &= _among(server, self.managed)
        held = np.where(worth, caps, self._send.held)
        self._send.held[worth] = np.nan  # until it is written: a write may be cut off
        return Decision(_caps(columns, worth, caps), _defaults(send, receive), send, receive, held)

    def _reading(self, columns: Columns) -> Reading:
        """What is new since the last one. The cells of a slot's next connection hold no cap."""
        reading = columns.since(self._before)
        if self._before is None:
            slots = len(columns.flow)
            self._estimator = Estimator(slots)
            self._send = Direction(slots, {server: one.send for server, one in self.defaults.items()})
        else:
            self._send.held[reading.is_new] = 0.0
        self._before = columns
        return reading

    def _send_needs(self, columns: Columns, server: Numbers) -> Column:
        """Each server's as its budget says; those of others and of small transfers are 0."""
        needs, caps = np.zeros(len(server)), self._send.in_effect(server)
        for how in Needs:
            mine = [number for number, one in self.managed.items() if one.send and one.send.needs is how]
            if mine:
                needs = np.where(_among(server, mine), self._estimator.needs(how, server, caps), needs)
        needs[columns.sent < SMALL] = 0.0
        return needs

    def wrote(self, decision: Decision) -> None:
        """The switch has it."""
        self._send.held = decision.held
        self.defaults = dict(decision.defaults)
        self._send.defaults = {server: one.send for server, one in decision.defaults.items()}


def slotted(slots: int, connections: float) -> float:
    """The part of so many connections that find a slot, each hashed to one of ``slots`` and taking it if it is free."""
    load = connections / max(1, slots)
    return -math.expm1(-load) / load if load > 0 else 1.0


def _among(server: Numbers, wanted: Iterable[int]) -> Flags:
    """Whose server is one of those wanted. Slots without a transfer have the server 0, which is none."""
    numbers = list(wanted)
    flags = np.zeros(1 + max(int(server.max(initial=0)), max(numbers, default=0)), np.bool_)
    flags[numbers] = True
    return flags[server]


def _caps(columns: Columns, worth: Flags, caps: Column) -> Caps:
    """Those that are worth a write."""
    return Caps(columns.flow[worth], columns.fingerprint[worth], caps[worth].astype(np.int64))


def _defaults(send: Mapping[int, Told], receive: Mapping[int, Received]) -> dict[int, Defaults]:
    return {
        server: Defaults(
            send[server].default if server in send else 0, receive[server].default if server in receive else 0
        )
        for server in {**send, **receive}
    }
