"""Simulates a closed loop in virtual time: clients, servers with a limited accept queue, and a balancer.

Every interval each server gets its share of the offered connections, answers up to its capacity, and drops the rest;
clients retransmit dropped SYNs in the next interval to the same server, because their connections are pinned to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sluice.balance import BalanceOptions, Balancer, Counts, Decision, Member


@dataclass
class Pool:
    """Servers by id with the connections per interval that each can answer."""

    capacity: dict[int, int]
    offered: int
    options: BalanceOptions
    members: list[Member] = field(default_factory=list[Member])
    now: float = 0.0
    completing: float = 1.0
    """Share of the answered handshakes that clients complete."""

    def __post_init__(self) -> None:
        self.members = self.members or [Member(i) for i in self.capacity]
        self.balancer = Balancer(self.members, self.options)
        self.counts = {i: Counts() for i in self.capacity}
        self.waiting = dict.fromkeys(self.capacity, 0)
        self.balancer.observe(self.now, self.counts)

    def interval(self) -> Decision:
        """Simulate a period; return the balancer's decision."""
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
        """Simulate several periods; return the last decision."""
        for _ in range(count - 1):
            self.interval()
        return self.interval()
