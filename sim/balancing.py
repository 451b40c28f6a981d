"""A model of a switch that balances connections: it draws a server for each new connection by the servers' weights, and
counts the packets of handshakes. From these counts sluice's own Balancer computes new weights every T seconds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from sluice.balance import BalanceOptions, Balancer, Counts, Decision, Member
from sluice.balance.slowness import SAMPLE_TIMES
from sluice.config.model import ConnectionsConfig
from sluice.dataplane.draws import Group

from .clock import Clock
from .cputime import timed
from .secondlook import SecondLook

PENDING_S = ConnectionsConfig().pending_s
"""Seconds after which a pin (a connection's entry in the table) expires if the server has not answered the SYN that
created the pin."""


class _Ledger:
    __slots__ = ("completed", "reset", "syn", "synack", "synack_again")

    def __init__(self) -> None:
        self.syn = self.synack = self.synack_again = self.completed = self.reset = 0


class Pin:
    """A connection's entry in the connection table: its server and the time until which it is valid."""

    __slots__ = ("counted", "server", "until")

    def __init__(self) -> None:
        self.server, self.until = -1, -1.0
        self.counted = False
        """Whether the connection is counted among the server's open connections."""


class BalancingSwitch:
    """One switch and its controller. Several switches may share a pool of servers; each switch then has separate
    counters and decisions."""

    def __init__(
        self,
        clock: Clock,
        source: random.Random,
        members: Iterable[Member],
        options: BalanceOptions,
        decided: Callable[[Decision], None] = lambda _: None,
        *,
        second_look: type[SecondLook] | None = None,
    ) -> None:
        self._clock, self._source, self._decided = clock, source, decided
        self.balancer = Balancer(members, options)
        self._ledger = {server: _Ledger() for server in self.balancer.members}
        self._group = Group(self.balancer.weights())
        self._weights: Mapping[int, int] = self.balancer.weights()
        self._look = second_look(clock, self._weights) if second_look else None
        self._ejected: frozenset[int] = frozenset()
        self.weight_changes = 0
        self.decide_s: list[float] = []
        """CPU seconds of each decision, measured on the machine that runs the simulation; all other figures are
        simulated."""
        clock.every(options.period_s, self._observe)

    def configure(self, options: BalanceOptions) -> None:
        """Apply other options from now on; they must have the same period as the present ones."""
        self.balancer.configure(self.balancer.members.values(), options, self._clock.now)

    def syn(self, pin: Pin) -> int:
        """Return the server to which the switch forwards a SYN. A retransmitted SYN goes to the server of the
        connection's first SYN, unless the pin has expired or the server is ejected."""
        now = self._clock.now
        if pin.server < 0 or now > pin.until or pin.server in self._ejected:
            self._choose(pin)
            pin.until = now + PENDING_S
        self._ledger[pin.server].syn += 1
        return pin.server

    def _choose(self, pin: Pin) -> None:
        if self._look is None:
            pin.server = self._group.at(int(self._source.random() * self._group.size))
            return
        if pin.counted:
            self._look.closed(pin.server)
        pin.server, pin.counted = self._look.choose(self._source), True

    @property
    def looks(self) -> bool:
        """Whether the switch compares the open connections of several servers before it selects one (the second look).
        Only then do the ends of connections matter."""
        return self._look is not None

    def open_now(self) -> dict[int, int]:
        """Return the open connections by server as the second look counts them; without a second look, an empty
        dict."""
        return {} if self._look is None else self._look.open_now()

    def end(self, pin: Pin, *, seen: bool, by_fin: bool = False) -> None:
        """Record a connection's end.

        ``seen``: the switch received a packet that ends the connection (the server's FIN if ``by_fin``, else a RST).
        Otherwise the pin expires later.
        """
        if self._look is not None and pin.counted:
            pin.counted = False
            if seen:
                self._look.closed(pin.server, by_fin=by_fin)
            else:
                self._look.vanished(pin.server, pin.until)

    def synack(self, server: int, *, again: bool = False) -> None:
        """Count a server's SYN-ACK; ``again``: the SYN-ACK is a retransmission."""
        if again:
            self._ledger[server].synack_again += 1
        else:
            self._ledger[server].synack += 1
            if self._look is not None:
                self._look.answered(server, by_reset=False)

    def refused(self, pin: Pin) -> None:
        """Count a server's RST in answer to a SYN, which ends the connection."""
        self._ledger[pin.server].reset += 1
        if self._look is not None:
            self._look.answered(pin.server, by_reset=True)
        self.end(pin, seen=True)

    def completed(self, server: int) -> None:
        """Count the ACK that completes a handshake."""
        self._ledger[server].completed += 1

    def counts(self) -> dict[int, Counts]:
        """Return the cumulative handshake counters by server."""
        return {
            server: Counts(entry.syn, entry.synack, entry.synack_again, entry.completed, entry.reset)
            for server, entry in self._ledger.items()
        }

    def _sample_open(self) -> None:
        self.balancer.sample_open(self.open_now())

    def _observe(self) -> None:
        counts = self.counts()
        decision, cpu_s = timed(lambda: self._decide(counts))
        self.decide_s.append(cpu_s)
        if decision is None:
            return
        if decision.weights != self._weights:
            self._weights = decision.weights
            self._group = Group(decision.weights)
            if self._look is not None:
                self._look.weigh(decision.weights)
            self.weight_changes += 1
        self._ejected = decision.ejected
        self._decided(decision)

    def _decide(self, counts: Mapping[int, Counts]) -> Decision | None:
        """Return the Balancer's decision; None for the first reading of the counters, because a decision needs the
        differences from an earlier reading.

        With a second look, sample the open connections now and at further times of the period. The caller measures the
        CPU time of this function.
        """
        if self.looks:
            self._sample_open()
            for fraction in SAMPLE_TIMES:
                self._clock.after(fraction * self.balancer.options.period_s, self._sample_open)
        return self.balancer.observe(self._clock.now, counts)
