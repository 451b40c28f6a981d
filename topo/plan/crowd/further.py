"""Services beside the target and the bystander, each with a server program of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluice.addresses import Address

from topo.plan.crowd.network import BULK_PORT, BYSTANDER_ADDRESS
from topo.plan.crowd.settings import Settings
from topo.plan.network import HostPlan
from topo.plan.synthesis import Crowd


@dataclass(frozen=True, slots=True)
class Further:
    """A further service, and how many requests it gets.  Times and rates are before compression."""

    number: int
    """From 1 on; no two of a scenario have the same."""
    server: HostPlan
    """The host of its server program; those on the slow one share its CPUs and its memory."""
    quiet_per_s: float
    crowd_per_s: float
    """Requests per second from its crowd's beginning to its end; the settings' ramp leads there."""
    begins_s: float = 0.0
    """Its crowd begins so long after the onset."""
    lasts_s: float = math.inf
    """Seconds from its crowd's beginning to its end."""

    @property
    def name(self) -> str:
        """The service's name."""
        return f"further-{self.number}"

    @property
    def address(self) -> Address:
        """The service's address."""
        return BYSTANDER_ADDRESS + self.number

    @property
    def port(self) -> int:
        """Where the server program listens; the service's own port is that of all."""
        return BULK_PORT + self.number

    def crowd(self, settings: Settings) -> Crowd:
        """Return the rates of its requests."""
        begin = settings.onset_s + self.begins_s
        return Crowd(
            self.quiet_per_s, self.crowd_per_s, begin, settings.ramp_s, settings.seconds, over_s=begin + self.lasts_s
        )
