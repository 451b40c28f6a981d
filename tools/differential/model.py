"""Tofino's model beside the twin on the embedded switch: what both decide alike.

What a Tofino cannot do by design (docs/reference/exclusions.md) is neither sent nor written:

- Frames have 60 bytes at least; what the twin sends is padded before it is compared. Of counters the packets are
  compared: the model's bytes have frames' checksums in them, and some of its counters have none.
- A meter without a rate admits nothing, so that limits are of all packets or of none.
- A selector's hash has an order of its own, so that a group has one member, the same one throughout.
- A key has no state, so that a pin lives for days, and a service's server is never a draining one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from finsy.proto import p4r
from sluice.names import Counter

from . import frames, world
from .side import State
from .world import SERVERS, TIMERS, Key

LEAST_FRAME = 60
"""Of Ethernet, without the checksum (IEEE 802.3, 3.2.8)."""
STRETCH = 25
"""Frames that are sorted by port, so that several of a port come in a row."""
ALL = p4r.MeterConfig(cir=10_000_000, cburst=1_000_000, pir=10_000_000, pburst=1_000_000)
NONE = p4r.MeterConfig()

LACKING = (Counter.MOVED, Counter.DISOWNED)
"""Counters that Tofino's program does not have."""
STAGES = ("ledger", "requests", "loads")
"""Those whose registers hold numbers of packets and connections, as they do on v1model."""


class Frames(frames.Frames):
    """Those that a Tofino can be sent, in stretches of one port."""

    def take(self, count: int) -> list[tuple[int, bytes]]:
        """So many frames with their ports."""
        made = [(port, frame.ljust(LEAST_FRAME, b"\0")) for port, frame in super().take(count)]
        stretches = [made[at : at + STRETCH] for at in range(0, len(made), STRETCH)]
        return [frame for stretch in stretches for frame in sorted(stretch, key=lambda one: one[0])]


class World(world.World):
    """Entries that mean the same on both."""

    groups = tuple(group for group in world.GROUPS if group[1] != "choose_other_servers")
    settings = (("timers", "set_timers", TIMERS[:1]), *world.SETTINGS[1:])

    def _group(self, table: str, action: str, service: int) -> tuple[Key, p4r.Entity]:
        servers = [number for number, server in SERVERS.items() if server[3] == service]
        return self._group_of(table, action, service, [servers[table == "choose_other"]])

    def _draining(self) -> tuple[Key, p4r.Entity]:
        return self._destination()

    def _idle_members(self) -> tuple[Key, p4r.Entity]:
        return self._destination()

    def _meter(self) -> p4r.Update:
        name, index = self._some_meter()
        return p4r.Update(
            type=p4r.Update.MODIFY, entity=self.entities.meter(name, index, self.rng.choice((ALL, ALL, NONE)))
        )


def padded(out: Mapping[int | str, Sequence[bytes]]) -> dict[int | str, list[bytes]]:
    """What came out, with frames as a Tofino's port sends them."""
    return {
        place: [frame.ljust(LEAST_FRAME, b"\0") for frame in frames] if isinstance(place, int) else list(frames)
        for place, frames in out.items()
    }


def comparable(state: State) -> State:
    """What both programs have of a state, by the last two parts of a name."""
    lacking = {_short(name) for name in LACKING}
    return State(
        registers={_short(name): cells for name, cells in state.registers.items() if name.split(".")[1] in STAGES},
        counters={
            _short(name): {index: (packets, 0) for index, (packets, _) in cells.items()}
            for name, cells in state.counters.items()
            if _short(name) not in lacking
        },
        entries={},
    )


def _short(name: str) -> str:
    return ".".join(name.split(".")[-2:])
