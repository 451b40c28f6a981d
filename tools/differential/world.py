"""The contents of sluice's tables in a differential run, with random valid changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from finsy.proto import p4r

from topo.testbed.entities import Entities, Value

PORTS = (1, 2, 3, 4)
CPU_PORT = 510


def ipv4(text: str) -> int:
    """Return an IPv4 address as a number."""
    return int.from_bytes(bytes(int(octet) for octet in text.split(".")), "big")


def router_mac(port: int) -> int:
    """Return the router's MAC address on a port."""
    return 0x020000000001 | port << 8


def neighbour_id(address: int) -> int:
    """Return the id of a host as a next hop: its address's last two bytes, which differ for all hosts."""
    return address & 0xFFFF


def host_mac(address: int) -> int:
    """Return the MAC address of the host with an IPv4 address."""
    return 0x020000000000 | address & 0xFFFFFF


NETWORKS = {1: ipv4("10.0.1.0"), 2: ipv4("10.0.2.0"), 3: ipv4("10.0.3.0"), 4: ipv4("10.0.4.0")}
ROUTERS = {port: network | 1 for port, network in NETWORKS.items()}
CLIENTS = [NETWORKS[1] | host for host in (10, 11, 12, 254)] + [ipv4("20.0.0.0") | host for host in range(1, 9)]
SERVER_HOSTS = [NETWORKS[2] | host for host in (11, 12, 13)] + [NETWORKS[3] | host for host in (13, 14)]
OTHERS = [NETWORKS[4] | host for host in (20, 21, 254)]
VIPS = [ipv4("10.0.0.100"), ipv4("10.0.0.101")]
TCP, UDP = 6, 17

SERVICES = {1: (VIPS[0], TCP, 80), 2: (VIPS[0], UDP, 53), 3: (VIPS[1], TCP, 80), 4: (VIPS[1], TCP, 443)}
SERVERS = {
    number: (host, {1: TCP, 2: UDP, 3: TCP, 4: TCP}[service], 8000 + service, service)
    for number, (host, service) in enumerate(((host, service) for service in SERVICES for host in SERVER_HOSTS), 1)
}
"""Servers by id: address, protocol, port and service."""

DAYS = 1_318_360
"""The ticks of 65.536 ms in a day. With this timeout, a slot of the connection table does not expire during a run."""
OVER = (1 << 32) - DAYS
"""A negative timeout in ticks: with this timeout, a slot of the connection table has always expired."""

TIMES = ("idle_time", "pending_time", "answered_time", "half_closed_time", "linger_time")
TIMERS: tuple[dict[str, int], ...] = (
    dict.fromkeys(TIMES, DAYS),
    dict.fromkeys(TIMES, DAYS) | {"pending_time": OVER, "linger_time": OVER},
    dict.fromkeys(TIMES, DAYS) | {"idle_time": OVER, "half_closed_time": OVER},
)

LONGEST_STEP = 1 << 18
"""The longest step of the response rates' estimator, in units of 1.024 ms: 268 s, so that a shorter run stays within
one step."""

SETTINGS: tuple[tuple[str, str, tuple[dict[str, int], ...]], ...] = (
    ("timers", "set_timers", TIMERS),
    # Either all packets or none are sampled, because the switches' random generators differ.
    ("sampling", "set_sampling", ({"packets": 0}, {"packets": 65536})),
    ("rate_settings", "set_rates", tuple({"step_time": LONGEST_STEP, "flow_mask": mask} for mask in (0, 1, 7))),
)
"""Tables without a key: table, action, and possible values of the action's parameters."""

GROUPS = (
    ("choose", "choose_server"),
    ("choose_other", "choose_other_server"),
    ("choose_other", "choose_other_servers"),
    ("choose_stable", "choose_stable_server"),
)
"""Tables with action selectors, and their actions."""

LIMITED = 8
"""The number of destinations with a limit."""

Key = tuple[str, tuple[tuple[str, Value], ...]]


@dataclass
class World:
    """The tables' current contents, from which valid changes are derived."""

    entities: Entities
    rng: random.Random
    groups: ClassVar = GROUPS
    settings: ClassVar = SETTINGS
    there: dict[Key, p4r.Entity] = field(default_factory=dict[Key, p4r.Entity])
    bursts: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])

    def start(self) -> list[p4r.Update]:
        """Return the writes that configure a working router."""
        updates = [self._set(made) for made in self._foundation()]
        groups = [group for group in self.groups if group[1] != "choose_other_servers"]
        updates += [self._set(self._group(*group, service)) for service in SERVICES for group in groups]
        defaults = (self.entities.default(table, action, settings[0]) for table, action, settings in self.settings)
        return [*updates, *(p4r.Update(type=p4r.Update.MODIFY, entity=entity) for entity in defaults)]

    def change(self) -> list[p4r.Update]:
        """Return a few random changes, all of them valid."""
        count = self.rng.randint(1, 12)
        kinds = [self._toggle, self._toggle, self._regroup, self._regroup, self._meter, self._route, self._setting]
        return [self.rng.choice(kinds)() for _ in range(count)]

    # -- random entities

    def _foundation(self) -> list[tuple[Key, p4r.Entity]]:
        made = [self._port(port, inside=port in (2, 3)) for port in PORTS]
        owned = [*ROUTERS.values(), *VIPS]
        made += [self._entry("owned", {"address": address}, "is_owned", {}) for address in owned]
        for network in NETWORKS.values():
            made.append(self._entry("routes", {"destination": (network, 24)}, "connected", {}))
        gateways = ((ipv4("20.0.0.0"), 8, CLIENTS[3]), (ipv4("192.168.0.0"), 16, OTHERS[2]))
        for prefix, length, hop in gateways:
            made.append(self._via({"destination": (prefix, length)}, hop))
        for port, network in NETWORKS.items():
            for host in (*CLIENTS, *SERVER_HOSTS, *OTHERS):
                if host & 0xFFFFFF00 == network:
                    made += [self._neighbour(port, host), self._via({"destination": (host, 32)}, host)]
        for number, at in SERVICES.items():
            args = {"service": number, "shares": self.rng.choice((0, 37, 256, 65535))}
            made.append(self._entry("services", endpoint(*at), "to_service", args))
        for number, (host, protocol, port, service) in SERVERS.items():
            match = endpoint(host, protocol, port)
            address, _, service_port = SERVICES[service]
            args = {"server": number, "service": service, "address": address, "port": service_port}
            made.append(self._entry("origins", match, "from_server", args))
            made.append(self._entry("services", match, "deny_direct", {}))
            args = {"address": host, "port": port, "draining": 0}
            made.append(self._entry("servers", {"server": number}, "to_server", args))
        return made

    def _neighbour(self, port: int, host: int) -> tuple[Key, p4r.Entity]:
        """Return the entry of a neighbour."""
        args = {"port": port, "src": router_mac(port), "dst": host_mac(host)}
        return self._entry("neighbours", {"neighbour": neighbour_id(host)}, "set_neighbour", args)

    def _entry(
        self, table: str, match: Mapping[str, Value], action: str, args: Mapping[str, int]
    ) -> tuple[Key, p4r.Entity]:
        return (table, tuple(sorted(match.items()))), self.entities.entry(table, match, action, args)

    def _group(self, table: str, action: str, service: int) -> tuple[Key, p4r.Entity]:
        servers = [number for number, server in SERVERS.items() if server[3] == service]
        return self._group_of(table, action, service, self.rng.sample(servers, self.rng.randint(1, len(servers))))

    def _group_of(self, table: str, action: str, service: int, chosen: list[int]) -> tuple[Key, p4r.Entity]:
        members = [(self.rng.randint(1, 16), self._member(action, number, service)) for number in chosen]
        match = {"others": service} if table == "choose_other" else {"service": service}
        return (table, tuple(match.items())), self.entities.group_entry(table, match, action, members)

    def _member(self, action: str, number: int, service: int) -> dict[str, int]:
        """Return parameters of a member. If the action is `choose_server`, half of the members let the switch compare
        the server with a second server of the same service."""
        weight = {} if action == "choose_stable_server" else {"own_weight": self.rng.randint(1, 16)}
        others = {"others_id": self.rng.choice((0, service))} if action == "choose_server" else {}
        return {"id": number, **weight, **others, **self._more(action)}

    def _more(self, action: str) -> dict[str, int]:
        """Return further servers that a member's parameters name, of any service; 0 means "none"."""
        if action != "choose_other_servers":
            return {}
        third, fourth = (self.rng.choice((0, *SERVERS)) for _ in range(2))
        weights = {name: self.rng.randint(1, 16) for name in ("third_weight", "fourth_weight")}
        return {"third": third, "fourth": fourth, **weights}

    # -- random changes

    def _set(self, made: tuple[Key, p4r.Entity]) -> p4r.Update:
        key, entity = made
        kind = p4r.Update.MODIFY if key in self.there else p4r.Update.INSERT
        self.there[key] = entity
        return p4r.Update(type=kind, entity=entity)

    def _toggle(self) -> p4r.Update:
        """Insert an entry if it is missing; else delete it (in 15 % of the cases), or write it again, if possible with
        other parameters."""
        candidates: list[Callable[[], tuple[Key, p4r.Entity]]] = [
            lambda: self.rng.choice(self._foundation()),
            self._vlan,
            self._draining,
            self._some_port,
            self._destination,
            self._destination,
            self._idle_members,
        ]
        key, entity = self.rng.choice(candidates)()
        if key in self.there and self.rng.random() < 0.15:
            return p4r.Update(type=p4r.Update.DELETE, entity=self.there.pop(key))
        return self._set((key, entity))

    def _port(self, port: int, *, inside: bool) -> tuple[Key, p4r.Entity]:
        args = {"mac": router_mac(port), "inside": int(inside)}
        return self._entry("ports", {"port": port}, "set_port", args)

    def _some_port(self) -> tuple[Key, p4r.Entity]:
        return self._port(self.rng.choice(PORTS), inside=self.rng.random() < 0.5)

    def _destination(self) -> tuple[Key, p4r.Entity]:
        match = {"address": self.rng.choice((*VIPS, *VIPS, *SERVER_HOSTS, *OTHERS))}
        args = {
            "id": self.rng.randint(1, LIMITED),
            "answer_reset": self.rng.randint(0, 1),
            "remember_time": self.rng.choice((0, 4 * DAYS)),
        }
        return self._entry("destinations", match, "limit_destination", args)

    def _idle_members(self) -> tuple[Key, p4r.Entity]:
        match = {"service": self.rng.choice(list(SERVICES)), "word": self.rng.choice(list(SERVERS)) >> 5}
        args = {"servers": self.rng.getrandbits(32), "before_any": self.rng.randint(0, 1)}
        return self._entry("idle_members", match, "seek_idle", args)

    def _vlan(self) -> tuple[Key, p4r.Entity]:
        match = {"port": self.rng.choice(PORTS)}
        action = self.rng.choice(("set_vlan", "strip", "keep"))
        return self._entry(
            "egress_vlan", match, action, {"id": self.rng.randint(1, 4094)} if action == "set_vlan" else {}
        )

    def _draining(self) -> tuple[Key, p4r.Entity]:
        number = self.rng.choice(list(SERVERS))
        host, _, port, _ = SERVERS[number]
        args = {"address": host, "port": port, "draining": self.rng.randint(0, 1)}
        return self._entry("servers", {"server": number}, "to_server", args)

    def _regroup(self) -> p4r.Update:
        table, action = self.rng.choice(self.groups)
        made = self._group(table, action, self.rng.choice(list(SERVICES)))
        if made[0] in self.there and self.rng.random() < 0.2:
            return p4r.Update(type=p4r.Update.DELETE, entity=self.there.pop(made[0]))
        return self._set(made)

    def _route(self) -> p4r.Update:
        """Insert or delete the route of a prefix around an address that occurs in packets; change a lasting route.

        In half of the cases the prefix is the address itself: while a host route exists, changes of shorter prefixes
        have no effect on the address. The lengths of the other prefixes are random.
        """
        address = self.rng.choice((*CLIENTS, *SERVER_HOSTS, *OTHERS, ipv4("192.168.7.7")))
        length = self.rng.choice((32, self.rng.randint(1, 31)))
        prefix = address >> (32 - length) << (32 - length)
        made = self._next_hop({"destination": (prefix, length)})
        if made[0] in self.there and not self._is_lasting(made[0]):
            return p4r.Update(type=p4r.Update.DELETE, entity=self.there.pop(made[0]))
        return self._set(made)

    def _is_lasting(self, key: Key) -> bool:
        """Return whether random changes never remove an entry; they may change its action."""
        return False

    def _next_hop(self, match: Mapping[str, Value]) -> tuple[Key, p4r.Entity]:
        return self._entry("routes", match, "connected", {}) if self.rng.random() < 0.5 else self._some_via(match)

    def _some_via(self, match: Mapping[str, Value]) -> tuple[Key, p4r.Entity]:
        return self._via(match, self.rng.choice((*CLIENTS, *OTHERS)))

    def _via(self, match: Mapping[str, Value], host: int) -> tuple[Key, p4r.Entity]:
        return self._entry("routes", match, "via", {"neighbour": neighbour_id(host)})

    def _meter(self) -> p4r.Update:
        """Configure a meter with a burst but a rate of zero; such a meter admits a fixed number of packets, regardless
        of time.

        The configuration always changes, because BMv2 refills the bucket on every write, the embedded switch only on a
        change.
        """
        name, index = self._some_meter()
        burst = self.rng.choice([b for b in (1, 100, 5_000, 100_000) if b != self.bursts.get((name, index))])
        self.bursts[name, index] = burst
        config = p4r.MeterConfig(cir=0, cburst=burst, pir=0, pburst=2 * burst)
        return p4r.Update(type=p4r.Update.MODIFY, entity=self.entities.meter(name, index, config))

    def _some_meter(self) -> tuple[str, int]:
        cells = {
            "admission": tuple(SERVICES),
            "punt_limit": (1, 2, 3, 4),
            "destination_limit": range(1, LIMITED + 1),
            "returning_limit": range(1, LIMITED + 1),
        }
        name = self.rng.choice(list(cells))
        return name, self.rng.choice(cells[name])

    def _setting(self) -> p4r.Update:
        table, action, settings = self.rng.choice(self.settings)
        entity = self.entities.default(table, action, self.rng.choice(settings))
        return p4r.Update(type=p4r.Update.MODIFY, entity=entity)


def endpoint(address: int, protocol: int, port: int) -> dict[str, Value]:
    """Return the key by which services and servers are matched: address, protocol and port."""
    return {"address": address, "protocol": protocol, "port": port}
