"""Lists the measurements: the forwarders, and the set-ups of each forwarder."""

from __future__ import annotations

from dataclasses import dataclass

WHO = ("copy-forward", "embedded", "bmv2", "kernel-dnat")
PIPELINES = ("embedded", "bmv2")
"""Forwarders that run sluice's P4 program."""

SMALL, MIDDLE, LARGE = 64, 512, 1400
"""Frame lengths in bytes, including the frame check sequence."""

BASE_SERVERS, BASE_CONNECTIONS = 100, 1_000


@dataclass(frozen=True, slots=True)
class Case:
    """A measurement's frame length in bytes, and its numbers of servers, open connections and additional routes.

    A case is measured for each forwarder; a case of one forwarder is a row of the report.
    """

    frame: int = SMALL
    servers: int = BASE_SERVERS
    connections: int = BASE_CONNECTIONS
    entries: int = 0
    """The number of routes in addition to those that the traffic uses."""


@dataclass(frozen=True, slots=True)
class SetUp:
    """Cases that run on the same forwarder process, in the order of growing numbers of connections."""

    cases: tuple[Case, ...]
    large: bool = False
    """Whether the cases need the program's large build."""
    handshakes: bool = False
    """Whether the rate of new connections is measured in addition to the cases."""

    @property
    def servers(self) -> int:
        """The number of servers behind the service, equal in all cases of the set-up."""
        return self.cases[0].servers


BASE = SetUp(
    (Case(SMALL), Case(MIDDLE), Case(LARGE), Case(connections=100_000)),
    handshakes=True,
)
FULL = (
    BASE,
    SetUp((Case(servers=1),)),
    SetUp((Case(servers=1_000),)),
    SetUp((Case(entries=100_000), Case(connections=1_000_000)), large=True),
)
QUICK = (SetUp((Case(SMALL), Case(LARGE)), handshakes=True),)
FRAMES_ONLY = SetUp((Case(SMALL), Case(MIDDLE), Case(LARGE)))


def set_ups(who: str, *, quick: bool) -> tuple[SetUp, ...]:
    """Return the set-ups that are meaningful for a forwarder.

    The copy-forward loop has neither servers nor connections. BMv2 is not measured with the large build, because
    opening a million connections through BMv2 would take minutes.
    """
    chosen = QUICK if quick else FULL
    if who == "copy-forward":
        return (SetUp(QUICK[0].cases, handshakes=True),) if quick else (SetUp(FRAMES_ONLY.cases, handshakes=True),)
    if who == "bmv2":
        return tuple(set_up for set_up in chosen if not set_up.large)
    return chosen
