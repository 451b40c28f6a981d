"""Tofino's model beside the twin on the embedded switch: what both decide alike.

What a Tofino cannot do by design (docs/reference/exclusions.md) is neither sent nor written:

- Frames have 60 bytes at least; what the twin sends is padded before it is compared. Of counters the packets are
  compared: the model's bytes have frames' checksums in them, and some of its counters have none.
- A meter without a rate admits nothing, so that limits are of all packets or of none.
- A selector's hash has an order of its own, so that a group has one member, the same one throughout.
- A key has no state, so that a pin lives for days, and a service's server is never a draining one.
- The time of a pending pin is the program's, 10 s: a connection is met again within a block of frames only, which is
  shorter than that.
- Ingress does not know how long a frame is. A header that ends up to four bytes behind its frame is read from the
  frame's checksum, and an IPv4 length beyond the frame goes unnoticed.
- The UDP checksum of a packet inside an ICMP error becomes zero: it is compared as zero, the ICMP checksum likewise.
  The checksum of the IPv4 header inside is adjusted, not computed: errors with a wrong one are not sent.
- A refused SYN with IPv4 options gets no RST: SYNs with such options are not sent.
- Loads are weighed by logarithms, the twin's exactly: no service looks at a second server.
- The ledger is in egress: every next hop has its neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from finsy.proto import p4r
from sluice.names import Counter

from topo.testbed.entities import Value

from . import frames, world
from .side import State
from .world import CLIENTS, OTHERS, SERVER_HOSTS, SERVERS, TCP, TIMERS, UDP, Key, host_mac, router_mac

LEAST_FRAME = 60
"""Of Ethernet, without the checksum (IEEE 802.3, 3.2.8)."""
FRAME_CHECKSUM = 4
"""Of Ethernet, behind each frame (IEEE 802.3, 3.2.9)."""
ERRORS = (3, 4, 5, 11, 12)
"""ICMP's messages that have a packet inside (RFC 792)."""
STRETCH = 25
"""Frames that are sorted by port, so that several of a port come in a row."""
BLOCK, PORTS_A_BLOCK = 200, 64
"""Frames within which connections are met again, some five seconds of the model's; and their clients' ports."""
ALL = p4r.MeterConfig(cir=10_000_000, cburst=1_000_000, pir=10_000_000, pburst=1_000_000)
NONE = p4r.MeterConfig()

LACKING = (Counter.MOVED, Counter.DISOWNED)
"""Counters that Tofino's program does not have."""
STAGES = ("ledger", "requests", "loads")
"""Those whose registers hold numbers of packets and connections, as they do on v1model."""


@dataclass
class Frames(frames.Frames):
    """Those that a Tofino can be sent, in stretches of one port."""

    _made = 0
    _blocks: list[int] = field(default_factory=list[int])
    """First client port of each block to come, each once."""

    def next_frame(self) -> tuple[int, bytes]:
        """A frame of the block's connections that meets no difference by design."""
        if self._made % BLOCK == 0:
            if not self._blocks:
                self._blocks = list(range(1024, 1 << 16, PORTS_A_BLOCK))
                self.rng.shuffle(self._blocks)
            first = self._blocks.pop()
            self.client_ports = range(first, first + PORTS_A_BLOCK)
        self._made += 1
        while True:
            port, frame = super().next_frame()
            frame = frame.ljust(LEAST_FRAME, b"\0")
            if not any(by_design(frame) for by_design in BY_DESIGN):
                return port, frame

    def take(self, count: int) -> list[tuple[int, bytes]]:
        """So many frames with their ports."""
        made = super().take(count)
        stretches = [made[at : at + STRETCH] for at in range(0, len(made), STRETCH)]
        return [frame for stretch in stretches for frame in sorted(stretch, key=lambda item: item[0])]


class World(world.World):
    """Entries that mean the same on both."""

    groups = tuple(group for group in world.GROUPS if group[0] != "choose_other")
    settings = (("timers", "set_timers", TIMERS[:1]), *world.SETTINGS[1:])

    def _group(self, table: str, action: str, service: int) -> tuple[Key, p4r.Entity]:
        return self._group_of(
            table, action, service, [next(n for n, server in SERVERS.items() if server[3] == service)]
        )

    def _member(self, action: str, number: int, service: int) -> dict[str, int]:
        member = super()._member(action, number, service)
        return {**member, "others_id": 0} if "others_id" in member else member

    def _foundation(self) -> list[tuple[Key, p4r.Entity]]:
        return [made for made in super()._foundation() if made[0][0] != "neighbours"]

    def start(self) -> list[p4r.Update]:
        """Everything that a working router needs, with neighbours that never go."""
        neighbours = (
            self._entry(
                "neighbours",
                {"next_hop": host},
                "set_neighbour",
                {"port": frames.port_of(host), "src": router_mac(frames.port_of(host)), "dst": host_mac(host)},
            )
            for host in (*CLIENTS, *SERVER_HOSTS, *OTHERS)
        )
        return [*map(self._set, neighbours), *super().start()]

    def _next_hop(self, match: Mapping[str, Value]) -> tuple[Key, p4r.Entity]:
        return self._via(match)

    def _draining(self) -> tuple[Key, p4r.Entity]:
        return self._destination()

    def _idle_members(self) -> tuple[Key, p4r.Entity]:
        return self._destination()

    def _meter(self) -> p4r.Update:
        name, index = self._some_meter()
        return p4r.Update(
            type=p4r.Update.MODIFY, entity=self.entities.meter(name, index, self.rng.choice((ALL, ALL, NONE)))
        )


def network_header(frame: bytes) -> tuple[int, int]:
    """Where what is behind a frame's Ethernet header, and at most one tag, begins; and its EtherType."""
    at = 18 if frame[12:14] == b"\x81\x00" else 14
    return at, int.from_bytes(frame[at - 2 : at], "big")


def ipv4_header(frame: bytes) -> int | None:
    """Where a frame's IPv4 header begins; None when it has no whole one."""
    at, kind = network_header(frame)
    return at if kind == frames.IPV4 and len(frame) >= at + 20 else None


def header_ends(frame: bytes) -> Iterator[int]:
    """Where each header of a frame ends that a parser looks for, as far as the frame goes."""
    at, kind = network_header(frame)
    if kind == frames.ARP:
        yield at + 28
    if kind != frames.IPV4:
        return
    yield at + 20
    while at + 20 <= len(frame):
        protocol = frame[at + 9]
        at += 4 * (frame[at] & 0xF)
        yield at
        yield at + 8
        if protocol == TCP:
            yield at + 20
            yield at + 4 * (frame[at + 12] >> 4 if at + 12 < len(frame) else 0)
        if protocol != frames.ICMP or at >= len(frame) or frame[at] not in ERRORS:
            return
        at += 8
        yield at + 20


def ends_in_checksum(frame: bytes) -> bool:
    """Whether one of a frame's headers ends within the checksum behind it."""
    return any(len(frame) < end <= len(frame) + FRAME_CHECKSUM for end in header_ends(frame))


def is_cut(frame: bytes) -> bool:
    """Whether a frame's IPv4 packet is longer than the frame."""
    at = ipv4_header(frame)
    return at is not None and at + int.from_bytes(frame[at + 2 : at + 4], "big") > len(frame)


def packet_inside(frame: bytes) -> int | None:
    """Where the IPv4 header inside an ICMP error begins; None when a frame has no whole one."""
    at = ipv4_header(frame)
    if at is None or frame[at + 9] != frames.ICMP:
        return None
    message = at + 4 * (frame[at] & 0xF)
    if message >= len(frame) or frame[message] not in ERRORS or len(frame) < message + 28:
        return None
    return message + 8


def has_wrong_checksum_inside(frame: bytes) -> bool:
    """Whether a frame is an ICMP error about a packet whose IPv4 header has a wrong checksum."""
    at = packet_inside(frame)
    if at is None:
        return False
    size = 4 * (frame[at] & 0xF)
    return len(frame) >= at + size >= at + 20 and frames.checksum(frame[at : at + size]) != 0


def is_syn_with_options(frame: bytes) -> bool:
    """Whether a frame is a SYN with options in its IPv4 header."""
    at = ipv4_header(frame)
    if at is None or frame[at + 9] != TCP or frame[at] & 0xF <= 5:
        return False
    flags = at + 4 * (frame[at] & 0xF) + 13
    return flags < len(frame) and frame[flags] & (frames.SYN | frames.ACK) == frames.SYN


BY_DESIGN = (ends_in_checksum, is_cut, has_wrong_checksum_inside, is_syn_with_options)
"""Of frames that are not sent: each says whether a frame is one."""


def comparable_frame(frame: bytes) -> bytes:
    """A frame as long as a Tofino sends it; an ICMP error about UDP without its own and the inner UDP checksum."""
    frame = frame.ljust(LEAST_FRAME, b"\0")
    at = packet_inside(frame)
    if at is None or frame[at + 9] != UDP:
        return frame
    checksum = at + 4 * (frame[at] & 0xF) + 6
    without = bytearray(frame)
    without[at - 6 : at - 4] = bytes(2)
    if checksum + 2 <= len(frame):
        without[checksum : checksum + 2] = bytes(2)
    return bytes(without)


def comparable_output(out: Mapping[int | str, Sequence[bytes]]) -> dict[int | str, list[bytes]]:
    """What came out, by port, as it is compared; what went to the controller as it is."""
    return {
        place: [comparable_frame(frame) for frame in frames] if isinstance(place, int) else list(frames)
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
