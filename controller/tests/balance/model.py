"""Simulate a closed loop in virtual time: clients, servers with a limited accept queue, and a balancer.

In every interval each server receives its share of the offered connections. It answers as many SYNs as its capacity
admits, and drops the others. Clients retransmit dropped SYNs in the next interval to the same server, because the
switch keeps a connection on its server.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sluice.balance import BalanceOptions, Balancer, Counts, Decision, Member


@dataclass
class Pool:
    """A simulated service with clients and a balancer; `capacity` is in answered SYNs per interval, by server id."""

    capacity: dict[int, int]
    offered: int
    options: BalanceOptions
    members: list[Member] = field(default_factory=list[Member])
    now: float = 0.0
    completing: float = 1.0
    """Share of the answered handshakes that clients complete, from 0 to 1."""

    def __post_init__(self) -> None:
        self.members = self.members or [Member(i) for i in self.capacity]
        self.balancer = Balancer(self.members, self.options)
        self.counts = {i: Counts() for i in self.capacity}
        self.waiting = dict.fromkeys(self.capacity, 0)
        self.balancer.observe(self.now, self.counts)

    def interval(self) -> Decision:
        """Simulate one interval; return the balancer's decision."""
        weights = self.balancer.weights()
        whole = sum(weights.values())
        for server, able in self.capacity.items():
            syn = round(self.offered * weights.get(server, 0) / whole) + self.waiting[server]
            answered = min(syn, able)
            self.waiting[server] = syn - answered
            done = round(answered * self.completing)
            self.counts[server] += Counts(syn=syn, synack=answered, completed=done)
        self.now += self.options.period_s
        decision = self.balancer.observe(self.now, self.counts)
        assert decision is not None
        return decision

    def intervals(self, count: int) -> Decision:
        """Simulate `count` intervals; return the balancer's last decision."""
        for _ in range(count - 1):
            self.interval()
        return self.interval()
