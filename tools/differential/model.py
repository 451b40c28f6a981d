"""Compares Tofino's model with the twin program (v1model's program with Tofino's tables) on the embedded switch.

Only frames and entries that both can treat alike are used. What a Tofino cannot do by design
(docs/reference/exclusions.md) is neither sent nor written:

- Frames have at least 60 bytes; the twin's output is padded before the comparison. For counters, only the packets are
  compared: the model's byte counts include the frame checksums, and some of its counters count no bytes.
- On Tofino a meter without a rate admits no packet, so limits admit either all packets or none.
- Tofino's selector hashes the fields in another order than the twin's. So every group has a single member that never
  changes.
- Tofino's tables have no state per entry, so pins (entries of the connection table) last for days, and no service has
  draining servers.
- The timeout of a pending pin is fixed in the program at 10 s. A connection recurs only within a block of frames, which
  takes less than 10 s.
- Tofino's ingress cannot determine a frame's length. If a header ends up to four bytes beyond the end of its frame, the
  missing bytes are read from the frame's checksum; an IPv4 length beyond the frame is not detected.
- The UDP checksum of a packet inside an ICMP error becomes zero. Therefore it is compared as zero, and so is the ICMP
  checksum. The checksum of the inner IPv4 header is adjusted, not computed: errors with a wrong inner checksum are not
  sent.
- A refused SYN with IPv4 options gets no RST: such SYNs are not sent.
- Tofino compares loads by logarithms but the twin compares them exactly, so no service compares a second server.
- Tofino's ledger (its packet counts) is in egress, which a packet does not reach if its next hop has no neighbour
  entry. So every next hop has a neighbour entry, and every host has a host route.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from finsy.proto import p4r
from sluice.names import Counter

from topo.testbed.entities import Value

from . import frames, world
from .side import State
from .world import CLIENTS, OTHERS, SERVER_HOSTS, SERVERS, TCP, TIMERS, UDP, Key

LEAST_FRAME = 60
"""Length of the shortest Ethernet frame in bytes, without the frame checksum (IEEE 802.3, 3.2.8)."""
FRAME_CHECKSUM = 4
"""Length in bytes of the checksum at the end of each Ethernet frame (IEEE 802.3, 3.2.9)."""
ERRORS = (3, 4, 5, 11, 12)
"""Types of the ICMP messages that quote a packet (RFC 792)."""
STRETCH = 25
"""The number of frames that are sorted by port, so that the frames of a port are sent in a row."""
BLOCK, PORTS_A_BLOCK = 200, 64
"""The number of frames in a block, within which connections repeat (about five seconds on the model), and the number of
client ports in a block."""
ALL = p4r.MeterConfig(cir=10_000_000, cburst=1_000_000, pir=10_000_000, pburst=1_000_000)
NONE = p4r.MeterConfig()

LACKING = (Counter.MOVED, Counter.DISOWNED)
"""Counters that Tofino's program lacks."""
STAGES = ("ledger", "requests", "loads")
"""Stages whose registers count packets and connections in the same way on Tofino and on v1model."""


@dataclass
class Frames(frames.Frames):
    """Frames that Tofino and v1model treat alike by design. Each group of STRETCH successive frames is sorted by input
    port."""

    _made = 0
    _blocks: list[int] = field(default_factory=list[int])
    """First client ports of the blocks to come; each port number occurs once."""

    def next_frame(self) -> tuple[int, bytes]:
        """Return a frame of one of the block's connections, of a kind that Tofino and v1model treat alike by design."""
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
        """Return `count` frames with their ports."""
        made = super().take(count)
        stretches = [made[at : at + STRETCH] for at in range(0, len(made), STRETCH)]
        return [frame for stretch in stretches for frame in sorted(stretch, key=lambda item: item[0])]


class World(world.World):
    """Table entries with the same meaning on both switches."""

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
        return [made for made in super()._foundation() if not self._is_lasting(made[0])]

    def start(self) -> list[p4r.Update]:
        """Return the writes for a working router. Later changes never remove a neighbour's entry or host route."""
        lasting = [self._neighbour(frames.port_of(host), host) for host in (*CLIENTS, *SERVER_HOSTS, *OTHERS)]
        lasting += [made for made in super()._foundation() if made[0][0] == "routes" and self._is_lasting(made[0])]
        return [*map(self._set, lasting), *super().start()]

    def _is_lasting(self, key: Key) -> bool:
        table, ((_, value), *_) = key
        return table == "neighbours" or (table == "routes" and isinstance(value, tuple) and value[1] == 32)

    def _next_hop(self, match: Mapping[str, Value]) -> tuple[Key, p4r.Entity]:
        return self._some_via(match)

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
    """Return the offset of the header after Ethernet and at most one VLAN tag, and the EtherType."""
    at = 18 if frame[12:14] == b"\x81\x00" else 14
    return at, int.from_bytes(frame[at - 2 : at], "big")


def ipv4_header(frame: bytes) -> int | None:
    """Return the offset of a frame's IPv4 header; None if the frame contains no complete IPv4 header."""
    at, kind = network_header(frame)
    return at if kind == frames.IPV4 and len(frame) >= at + 20 else None


def header_ends(frame: bytes) -> Iterator[int]:
    """Yield the end offset of each header that a parser extracts from the frame."""
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
    """Return whether one of a frame's headers ends within the Ethernet checksum at the end of the frame."""
    return any(len(frame) < end <= len(frame) + FRAME_CHECKSUM for end in header_ends(frame))


def is_cut(frame: bytes) -> bool:
    """Return whether a frame's IPv4 packet is longer than the frame."""
    at = ipv4_header(frame)
    return at is not None and at + int.from_bytes(frame[at + 2 : at + 4], "big") > len(frame)


def packet_inside(frame: bytes) -> int | None:
    """Return the offset of the IPv4 header that an ICMP error quotes; None if the frame is no ICMP error, or the quoted
    header is incomplete."""
    at = ipv4_header(frame)
    if at is None or frame[at + 9] != frames.ICMP:
        return None
    message = at + 4 * (frame[at] & 0xF)
    if message >= len(frame) or frame[message] not in ERRORS or len(frame) < message + 28:
        return None
    return message + 8


def has_wrong_checksum_inside(frame: bytes) -> bool:
    """Return whether a frame is an ICMP error about a packet whose IPv4 header has a wrong checksum."""
    at = packet_inside(frame)
    if at is None:
        return False
    size = 4 * (frame[at] & 0xF)
    return len(frame) >= at + size >= at + 20 and frames.checksum(frame[at : at + size]) != 0


def is_syn_with_options(frame: bytes) -> bool:
    """Return whether a frame is a SYN with options in its IPv4 header."""
    at = ipv4_header(frame)
    if at is None or frame[at + 9] != TCP or frame[at] & 0xF <= 5:
        return False
    flags = at + 4 * (frame[at] & 0xF) + 13
    return flags < len(frame) and frame[flags] & (frames.SYN | frames.ACK) == frames.SYN


BY_DESIGN = (ends_in_checksum, is_cut, has_wrong_checksum_inside, is_syn_with_options)
"""Predicates for frames that are not sent because the two programs treat them differently by design."""


def comparable_frame(frame: bytes) -> bytes:
    """Return a frame padded to Tofino's least length. If the frame is an ICMP error that quotes a UDP packet, the
    checksums of ICMP and of UDP are set to 0."""
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
    """Return the output frames by port in comparable form; messages to the controller are unchanged."""
    return {
        place: [comparable_frame(frame) for frame in frames] if isinstance(place, int) else list(frames)
        for place, frames in out.items()
    }


def comparable(state: State) -> State:
    """Return the part of a state that both programs have, by the last two components of the objects' names.

    Counters of bytes are set to 0, and table entries are left out.
    """
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
