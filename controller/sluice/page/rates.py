"""Rates per second between two statuses, from their cumulative counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Status = Mapping[str, Any]
"""A status in the form that ``status.gather`` returns."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A status, and the Unix time in seconds at which it was read."""

    time_s: float
    status: Status


class Rates:
    """Rates per second between a sample and the previous one.

    A rate is None if it is unknown: without a previous sample, after a reset of the counter, or for a new service,
    server or destination.
    """

    def __init__(self, now: Sample, before: Sample | None) -> None:
        self._seconds = now.time_s - before.time_s if before is not None else 0.0
        self._before = before.status if before is not None else {}
        self._services = {service["name"]: service for service in self._before.get("services", ())}
        self._servers = {
            (name, server["name"]): server for name, service in self._services.items() for server in service["servers"]
        }
        crowds = self._before.get("news", {}).get("destinations", ())
        self._destinations = {destination["name"]: destination for destination in crowds}

    def of(self, after: Mapping[str, int], before: Mapping[str, int] | None, key: str) -> float | None:
        """Return the rate of a counter, per second."""
        if before is None or key not in before or self._seconds <= 0 or after[key] < before[key]:
            return None
        return (after[key] - before[key]) / self._seconds

    def service(self, service: Mapping[str, Any], key: str) -> float | None:
        """Return the rate of a service's counter."""
        return self.of(service, self._services.get(service["name"]), key)

    def server(self, service: str, server: Mapping[str, Any], key: str) -> float | None:
        """Return the rate of a server's counter."""
        return self.of(server, self._servers.get((service, server["name"])), key)

    def failures(self, service: str, server: Mapping[str, Any]) -> float | None:
        """Return the rate of SYNs without a SYN-ACK. It is at least 0: between two samples there may be more SYN-ACKs
        than SYNs, because the first SYN-ACKs answer SYNs from before."""
        sent, answered = self.server(service, server, "syn"), self.server(service, server, "synack")
        return None if sent is None or answered is None else max(0.0, sent - answered)

    def destination(self, destination: Mapping[str, Any], key: str) -> float | None:
        """Return the rate of a destination's counter in flash-crowd control."""
        return self.of(destination, self._destinations.get(destination["name"]), key)

    def packets(self, after: Status, kind: str, reason: str) -> float | None:
        """Return the rate of those packets of a kind (``drops``, ``punts``, ...) that have the given reason.

        The count of a reason that the previous status lacks is taken as 0 there.
        """
        before = self._before.get("packets")
        earlier = None if before is None else {reason: before[kind].get(reason, 0)}
        return self.of(after["packets"][kind], earlier, reason)
