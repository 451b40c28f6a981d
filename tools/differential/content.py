"""Adds a content service to the tables, and random frames of its clients, agents and servers to the frames.

The agents also send orders: messages by which the switch splices a client's connection with a server's.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from finsy.proto import p4r
from sluice.names import ETHERTYPE_SPLICE, ORDER_SPLICE, Remember, Turn

from . import frames, world
from .frames import ACK, FLAGS, PUSH, RESET, SYN, SYN_ACK
from .world import CLIENTS, DAYS, NETWORKS, SERVER_HOSTS, TCP, VIPS, Key, host_mac, ipv4

CONTENT = (VIPS[1], 8080)
SERVICE = 11
GROUPS = {12: (ipv4("10.0.9.1"), 80), 13: (ipv4("10.0.9.2"), 8080)}
"""Address and port of the groups to which agents send connections, by group number."""
AGENTS = {101: NETWORKS[2] | 31, 102: NETWORKS[3] | 32}
"""Addresses of agents by server number; each agent is behind the port of its network."""
PORT_OF = {101: 2, 102: 3}
SERVERS = {111 + place: (host, 8100) for place, host in enumerate(SERVER_HOSTS)}
GENERATIONS = (1, 2)
DELTAS = (0, 5, 0xFFFFF000)
SHIFTS = (0, 3, -3, 15, -16)
CLIENT_SHIFTS = (0, 0, 1, 7, 14, 15)


class World(world.World):
    """Table contents that also include the content service, its agents and groups."""

    def start(self) -> list[p4r.Update]:
        """Return the writes of all entries, including those by which the switch selects agents and groups' servers."""
        updates = super().start()
        for service, members in ((SERVICE, AGENTS), *((group, SERVERS) for group in GROUPS)):
            for table, action in world.GROUPS:
                updates.append(self._set(self._choices(table, action, service, list(members))))
        return updates

    def _foundation(self) -> list[tuple[Key, p4r.Entity]]:
        made = super()._foundation()
        address, port = CONTENT
        args = {
            "service": SERVICE,
            "generation": self.rng.choice(GENERATIONS),
            "remember_time": self.rng.choice((0, DAYS)),
        }
        made.append(self._entry("services", world.endpoint(address, TCP, port), "to_content", args))
        for number, (group, group_port) in GROUPS.items():
            args = {"service": number, "shares": 0, "address": address, "port": port}
            made.append(self._entry("services", world.endpoint(group, TCP, group_port), "to_group", args))
        for number, host in AGENTS.items():
            behind = PORT_OF[number]
            match: dict[str, world.Value] = {"port": behind, "address": address, "service_port": port}
            made.append(self._entry("agents", match, "set_agent", {"agent": number}))
            hop = {"neighbour": world.neighbour_id(host)}
            made.append(self._entry("agent_hops", {"agent": number}, "set_agent_hop", hop))
            made += [self._neighbour(behind, host), self._via({"destination": (host, 32)}, host)]
        for number, (host, at, action) in {
            **{number: (host, port, "from_server") for number, host in AGENTS.items()},
            **{number: (*end, "from_content") for number, end in SERVERS.items()},
        }.items():
            args = {"server": number, "service": SERVICE, "address": address, "port": port}
            made.append(self._entry("origins", world.endpoint(host, TCP, at), action, args))
            args = {"address": host, "port": at, "draining": int(self.rng.random() < 0.1)}
            made.append(self._entry("servers", {"server": number}, "to_server", args))
        return made

    def _regroup(self) -> p4r.Update:
        if self.rng.random() < 0.5:
            return super()._regroup()
        table, action = self.rng.choice(world.GROUPS)
        service = self.rng.choice((SERVICE, *GROUPS))
        return self._set(self._choices(table, action, service, list(AGENTS if service == SERVICE else SERVERS)))

    def _choices(self, table: str, action: str, service: int, among: list[int]) -> tuple[Key, p4r.Entity]:
        return self._group_of(table, action, service, self.rng.sample(among, self.rng.randint(1, len(among))))


def options(rng: random.Random) -> bytes:
    """Return random TCP options of up to 40 bytes: those of SYNs and data, SACK, and unassigned kinds."""
    known = ("020405b4", "0402", "030307", "03030f", "080a0000000100000002", "01", "01", "fe041234", "0101050a", "00")
    made = b"".join(bytes.fromhex(rng.choice(known)) for _ in range(rng.randint(0, 8)))
    blocks = rng.randint(0, 4)
    if blocks and rng.random() < 0.4:
        made = bytes((1, 1, 5, 2 + 8 * blocks)) + rng.randbytes(8 * blocks)
    return made[:40].ljust((min(len(made), 40) + 3) // 4 * 4, b"\x01")


class Frames(frames.Frames):
    """Random frames; half of them belong to the content service."""

    def next_frame(self) -> tuple[int, bytes]:
        """Return a random frame with its port; of the content service's frames, 15 % are mutilated."""
        kinds: tuple[Callable[[], tuple[int, bytes]], ...] = (self._client, self._client, self._agent, self._said)
        if self.rng.random() < 0.5:
            return super().next_frame()
        port, frame = self.rng.choice((*kinds, self._server, self._server, self._order))()
        return port, self.mutilated(frame) if self.rng.random() < 0.15 else frame

    def _tcp_options(self) -> bytes:
        return options(self.rng) if self.rng.random() < 0.5 else b""

    def _end(self) -> tuple[int, int]:
        """Return a client's address and port, from a small set, so that connections repeat."""
        return self.rng.choice(CLIENTS[:4]), self.rng.choice(frames.CLIENT_PORTS[:8])

    def _client(self) -> tuple[int, bytes]:
        return self._between(self._end(), CONTENT, TCP, FLAGS)

    def _agent(self) -> tuple[int, bytes]:
        """Return a frame from an agent, with a client's source address, to a group."""
        client, group = self._end(), self.rng.choice(list(GROUPS.values()))
        segment = self._segment(client, group, TCP, (SYN, SYN, ACK, PUSH, RESET))
        port = self.rng.choice((*PORT_OF.values(), *PORT_OF.values(), 1))
        return port, frames.ethernet(port, host_mac(7), frames.IPV4, frames.packet(client[0], group[0], TCP, segment))

    def _said(self) -> tuple[int, bytes]:
        """Return a frame from an agent to a client."""
        return self._between((self.rng.choice(list(AGENTS.values())), CONTENT[1]), self._end(), TCP, (SYN_ACK, PUSH))

    def _server(self) -> tuple[int, bytes]:
        return self._between(self.rng.choice(list(SERVERS.values())), self._end(), TCP, frames.ANSWERS)

    def _order(self) -> tuple[int, bytes]:
        rng, (client, client_port) = self.rng, self._end()
        body = struct.pack("!BBIHIH", ORDER_SPLICE, 0, client, client_port, *CONTENT)
        remember = rng.choice(list(Remember))
        translated = (rng.choice(DELTAS), rng.choice(SHIFTS), remember, rng.choice(GENERATIONS), Turn.SPLICED)
        body += struct.pack("!IbBBBB", *translated, rng.choice(CLIENT_SHIFTS))
        port = rng.choice((*PORT_OF.values(), *PORT_OF.values(), 1))
        return port, frames.ethernet(port, host_mac(7), ETHERTYPE_SPLICE, body.ljust(46, b"\0"))
