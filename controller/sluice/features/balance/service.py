"""One service as the controller balances it: its balancer, its last decision, and its full servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluice.balance import Balancer, Decision, full_servers, refuses

SERVICE = 0
"""Stands for all servers of a service together among their numbers, which begin at 1."""
NOT_JUDGED = "Not judged yet: the first window has not ended."
"""The sentence of a status before the first decision."""


@dataclass(slots=True)
class ServiceView:
    """A service's balancer, its last decision, and which of its servers are full."""

    balancer: Balancer
    decision: Decision | None = None
    weight_changes: int = 0
    """Writes of a changed weight vector since the controller started."""
    due_s: float | None = None
    """When the next decision is due, in the loop's time; None: at once, since the next reading is a new base."""
    full: frozenset[int] = frozenset()
    """Servers at their cap of open connections, as of the last reading."""
    full_since_decision: frozenset[int] = frozenset()
    """Servers that were full in any reading since the last decision."""
    refusing: bool = False
    """Whether the switch refuses new connections, as last written."""
    reported_full: dict[int, float] = field(default_factory=dict[int, float])
    """Servers, or SERVICE, that an event reported as full, and when they last were (`spill`)."""

    @property
    def weights(self) -> dict[int, int]:
        """The selector weights: those decided, of the servers that are not full."""
        return self.balancer.weights(self.full)

    @property
    def taking(self) -> frozenset[int]:
        """Servers that can be given connections: those that do not drain, without ejected ones if any other remains."""
        active = frozenset(i for i, member in self.balancer.members.items() if not member.draining)
        return active - self.balancer.ejected or active

    @property
    def refuses(self) -> bool:
        """Whether new connections are to be refused because all servers are full."""
        return refuses(self.full, self.taking)

    def update_full(self, caps: Mapping[int, int], open_now: Mapping[int, int]) -> None:
        """Take in the open connections of the servers that have a cap."""
        self.full = full_servers(caps, open_now, self.full, self.taking)
        self.full_since_decision |= self.full

    def keep_capped(self, caps: Mapping[int, int]) -> None:
        """Forget what is known of servers that have no cap any more."""
        self.full &= caps.keys()
        capped = {SERVICE, *caps} if caps else set[int]()
        self.reported_full = {server: at_s for server, at_s in self.reported_full.items() if server in capped}

    def rebase(self) -> None:
        """Take the next reading as a base: the switch's counters may have been reset."""
        self.balancer.rebase()
        self.due_s = None
