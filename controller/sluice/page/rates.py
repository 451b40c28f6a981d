"""What happened per second between two statuses, from their cumulative counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Status = Mapping[str, Any]
"""As ``status.gather`` returns it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A status and when it was read, in Unix seconds."""

    time_s: float
    status: Status


class Rates:
    """Per second, between a sample and the one before it. None where that is unknown: no sample before, a counter that
    began again, a service or server that is new."""

    def __init__(self, now: Sample, before: Sample | None) -> None:
        self._seconds = now.time_s - before.time_s if before is not None else 0.0
        self._before = before.status if before is not None else {}
        self._services = {one["name"]: one for one in self._before.get("services", ())}
        self._servers = {
            (name, server["name"]): server for name, one in self._services.items() for server in one["servers"]
        }
        crowds = self._before.get("news", {}).get("destinations", ())
        self._destinations = {one["name"]: one for one in crowds}

    def of(self, after: Mapping[str, int], before: Mapping[str, int] | None, key: str) -> float | None:
        """Of one counter."""
        if before is None or key not in before or self._seconds <= 0 or after[key] < before[key]:
            return None
        return (after[key] - before[key]) / self._seconds

    def service(self, service: Mapping[str, Any], key: str) -> float | None:
        """Of a service's counter."""
        return self.of(service, self._services.get(service["name"]), key)

    def server(self, service: str, server: Mapping[str, Any], key: str) -> float | None:
        """Of a server's counter."""
        return self.of(server, self._servers.get((service, server["name"])), key)

    def failures(self, service: str, server: Mapping[str, Any]) -> float | None:
        """SYNs without a SYN-ACK; what is answered from before is none below zero."""
        asked, answered = self.server(service, server, "syn"), self.server(service, server, "synack")
        return None if asked is None or answered is None else max(0.0, asked - answered)

    def destination(self, one: Mapping[str, Any], key: str) -> float | None:
        """Of a destination's counter in flash-crowd control."""
        return self.of(one, self._destinations.get(one["name"]), key)

    def packets(self, after: Status, kind: str, reason: str) -> float | None:
        """Of packets of a kind (``drops``, ``punts``, ...) by reason; a reason that is new began at 0."""
        before = self._before.get("packets")
        earlier = None if before is None else {reason: before[kind].get(reason, 0)}
        return self.of(after["packets"][kind], earlier, reason)
