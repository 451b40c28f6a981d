"""A switch that balances: pins, ledger and weights, with sluice's own Balancer deciding every T seconds."""

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
"""A pin is free this long after the SYN that made it, if nobody answered."""


class _Ledger:
    __slots__ = ("completed", "reset", "syn", "synack", "synack_again")

    def __init__(self) -> None:
        self.syn = self.synack = self.synack_again = self.completed = self.reset = 0


class Pin:
    """A connection's entry in the table."""

    __slots__ = ("counted", "server", "until")

    def __init__(self) -> None:
        self.server, self.until = -1, -1.0
        self.counted = False
        """Whether it is one of the server's open connections."""


class BalancingSwitch:
    """One switch and its controller. Several may share a pool; each counts and decides by itself."""

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
        """CPU time of each decision, as this machine took it: the one figure that is not simulated."""
        clock.every(options.period_s, self._observe)

    def configure(self, options: BalanceOptions) -> None:
        """Other options from now on, with the same period."""
        self.balancer.configure(self.balancer.members.values(), options, self._clock.now)

    def syn(self, pin: Pin) -> int:
        """A SYN passes; the server it is for. A retransmission stays where the first went."""
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
        """Whether new connections take a second look: their ends matter then."""
        return self._look is not None

    def open_now(self) -> dict[int, int]:
        """Open connections by server, as the second look sees them; without one, of none."""
        return {} if self._look is None else self._look.open_now()

    def end(self, pin: Pin, *, seen: bool, by_fin: bool = False) -> None:
        """A connection ends, by its server's FIN or a RST or unseen."""
        if self._look is not None and pin.counted:
            pin.counted = False
            if seen:
                self._look.closed(pin.server, by_fin=by_fin)
            else:
                self._look.vanished(pin.server, pin.until)

    def synack(self, server: int, *, again: bool = False) -> None:
        """A SYN-ACK of a server passes."""
        if again:
            self._ledger[server].synack_again += 1
        else:
            self._ledger[server].synack += 1
            if self._look is not None:
                self._look.answered(server, by_reset=False)

    def refused(self, pin: Pin) -> None:
        """A server's RST in answer to a SYN passes: its connection has ended."""
        self._ledger[pin.server].reset += 1
        if self._look is not None:
            self._look.answered(pin.server, by_reset=True)
        self.end(pin, seen=True)

    def completed(self, server: int) -> None:
        """A handshake's last ACK passes."""
        self._ledger[server].completed += 1

    def counts(self) -> dict[int, Counts]:
        """The ledger: cumulative, by server."""
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
        """The algorithm's part of a period."""
        if self.looks:
            self._sample_open()
            for fraction in SAMPLE_TIMES:
                self._clock.after(fraction * self.balancer.options.period_s, self._sample_open)
        return self.balancer.observe(self._clock.now, counts)
