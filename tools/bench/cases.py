"""What is measured: the forwarders, and in which set-ups."""

from __future__ import annotations

from dataclasses import dataclass

WHO = ("copy-forward", "embedded", "bmv2", "kernel-dnat")
PIPELINES = ("embedded", "bmv2")
"""Those that run sluice's program."""

SMALL, MIDDLE, LARGE = 64, 512, 1400
"""Frame lengths in bytes, frame check sequence included."""

BASE_SERVERS, BASE_CONNECTIONS = 100, 1_000


@dataclass(frozen=True, slots=True)
class Case:
    """One row for each forwarder."""

    frame: int = SMALL
    servers: int = BASE_SERVERS
    connections: int = BASE_CONNECTIONS
    entries: int = 0
    """Routes beside those that the traffic takes."""


@dataclass(frozen=True, slots=True)
class SetUp:
    """Cases that share a running forwarder, in this order: connections only become more."""

    cases: tuple[Case, ...]
    large: bool = False
    """Needs the program's large build."""
    handshakes: bool = False
    """New connections are measured here too."""

    @property
    def servers(self) -> int:
        """Servers behind the service, the same for all cases."""
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
    """The set-ups that make sense for a forwarder.

    The copy-forward loop has neither servers nor connections. BMv2 is spared the large build: it would take minutes to
    open a million connections through it.
    """
    chosen = QUICK if quick else FULL
    if who == "copy-forward":
        return (SetUp(QUICK[0].cases, handshakes=True),) if quick else (SetUp(FRAMES_ONLY.cases, handshakes=True),)
    if who == "bmv2":
        return tuple(set_up for set_up in chosen if not set_up.large)
    return chosen
