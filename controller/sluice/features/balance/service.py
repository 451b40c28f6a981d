"""The controller's state of one balanced service: its balancer, its last decision, and its full servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluice.balance import Balancer, Decision, full_servers, refuses

SERVICE = 0
"""Stands in place of a server number for all servers of a service together. Server numbers start at 1."""
NOT_JUDGED = "Not judged yet: the first window has not ended."
"""The sentence in a status report before the first decision."""


@dataclass(slots=True)
class ServiceView:
    """A service's balancer, its last decision, and which of its servers are full: a server is full from the time it
    reaches its cap of open connections until an eighth of the cap is free again (see `sluice.balance.spill`)."""

    balancer: Balancer
    decision: Decision | None = None
    weight_changes: int = 0
    """Number of writes of changed weights since the controller started."""
    due_s: float | None = None
    """Time of the next decision by the event loop's clock; None: at once, because the next reading is a new base."""
    full: frozenset[int] = frozenset()
    """Servers that are full, by the last reading of the open connections."""
    full_since_decision: frozenset[int] = frozenset()
    """Servers that were full at any reading since the last decision."""
    refusing: bool = False
    """Whether the switch refuses new connections, by the last write."""
    reported_full: dict[int, float] = field(default_factory=dict[int, float])
    """Servers that an event reported as full, by number, or SERVICE for all. The values are the times at which they
    were last full, in seconds by the event loop's clock."""

    @property
    def weights(self) -> dict[int, int]:
        """The selector weights: the decided weights of the servers that are not full."""
        return self.balancer.weights(self.full)

    @property
    def taking(self) -> frozenset[int]:
        """Servers that may get connections: those that do not drain. Ejected servers are excluded if any other
        remains."""
        active = frozenset(i for i, member in self.balancer.members.items() if not member.draining)
        return active - self.balancer.ejected or active

    @property
    def refuses(self) -> bool:
        """Whether the switch is to refuse new connections because all servers are full."""
        return refuses(self.full, self.taking)

    def update_full(self, caps: Mapping[int, int], open_now: Mapping[int, int]) -> None:
        """Update the full servers by the numbers of open connections of the servers that have a cap."""
        self.full = full_servers(caps, open_now, self.full, self.taking)
        self.full_since_decision |= self.full

    def keep_capped(self, caps: Mapping[int, int]) -> None:
        """Forget the state of servers that no longer have a cap."""
        self.full &= caps.keys()
        capped = {SERVICE, *caps} if caps else set[int]()
        self.reported_full = {server: at_s for server, at_s in self.reported_full.items() if server in capped}

    def rebase(self) -> None:
        """Use the next reading only as a base for later differences, since the switch's counters may have been
        reset."""
        self.balancer.rebase()
        self.due_s = None
