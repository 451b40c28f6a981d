"""Table entries of the pipeline, by the names of its P4Info. Ports are the target's port numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from finsy import P4IndirectAction, P4MeterConfig, P4MeterEntry, P4TableAction, P4TableEntry, P4TableMatch
from sluice.balance.looks import seen_together, sought_idle
from sluice.names import Action, Meter, Table

from .plan import Server, Service


def _entry(table: Table, match: Mapping[str, object], action: Action, **args: object) -> P4TableEntry:
    return P4TableEntry(table, match=P4TableMatch(match), action=P4TableAction(action, **args))


def port(number: int, mac: str, inside: bool = False) -> P4TableEntry:
    """The router's MAC address on a port, and whether servers or protected hosts are behind it."""
    return _entry(Table.PORTS, {"port": number}, Action.SET_PORT, mac=mac, inside=int(inside))


def owned(address: str) -> P4TableEntry:
    """An address that is the router's own."""
    return _entry(Table.OWNED, {"address": address}, Action.IS_OWNED)


def route(prefix: str, next_hop: str | None) -> P4TableEntry:
    """A prefix, directly connected or by way of a next hop."""
    match = {"destination": prefix}
    if next_hop is None:
        return _entry(Table.ROUTES, match, Action.CONNECTED)
    return _entry(Table.ROUTES, match, Action.VIA, next_hop=next_hop)


def neighbour(address: str, number: int, src: str, dst: str) -> P4TableEntry:
    """A next hop: its port, the router's MAC address there and its own."""
    return _entry(Table.NEIGHBOURS, {"next_hop": address}, Action.SET_NEIGHBOUR, port=number, src=src, dst=dst)


def set_vlan(number: int, vlan: int) -> P4TableEntry:
    """Frames leave the port with this tag."""
    return _entry(Table.EGRESS_VLAN, {"port": number}, Action.SET_VLAN, id=vlan)


def strip_vlan(number: int) -> P4TableEntry:
    """Frames leave the port without a tag."""
    return _entry(Table.EGRESS_VLAN, {"port": number}, Action.STRIP)


def keep_vlan(number: int) -> P4TableEntry:
    """Frames leave the port with the tag that they came with."""
    return _entry(Table.EGRESS_VLAN, {"port": number}, Action.KEEP)


def _endpoint(address: str, protocol: int, port_number: int) -> dict[str, object]:
    return {"address": address, "protocol": protocol, "port": port_number}


def service(item: Service, shares: int = 0) -> P4TableEntry:
    """What clients address; with shares, drawn from evenly."""
    match = _endpoint(item.address, item.protocol, item.port)
    return _entry(Table.SERVICES, match, Action.TO_SERVICE, service=item.id, shares=shares)


def deny_direct(item: Service, server: Server) -> P4TableEntry:
    """A server's own endpoint is not to be addressed past its service."""
    match = _endpoint(server.host.address, item.protocol, server.port)
    return _entry(Table.SERVICES, match, Action.DENY_DIRECT)


def origin(item: Service, server: Server) -> P4TableEntry:
    """A server's answers come from its service."""
    match = _endpoint(server.host.address, item.protocol, server.port)
    args = {"server": server.id, "service": item.id, "address": item.address, "port": item.port}
    return _entry(Table.ORIGINS, match, Action.FROM_SERVER, **args)


def server(item: Server, draining: bool = False) -> P4TableEntry:
    """What a connection to the server is translated to."""
    args = {"address": item.host.address, "port": item.port, "draining": int(draining)}
    return _entry(Table.SERVERS, {"server": item.id}, Action.TO_SERVER, **args)


def ratios(item: Service, weights: Mapping[Server, int], others: Mapping[Server, int] | None = None) -> P4TableEntry:
    """The weights that R decides: one one-shot group; `others` are the groups of a second look."""
    groups = others or {}
    members = [
        (
            weight,
            P4TableAction(Action.CHOOSE_SERVER, id=server.id, own_weight=weight, others_id=groups.get(server, 0)),
        )
        for server, weight in weights.items()
    ]
    return P4TableEntry(Table.CHOOSE, match=P4TableMatch(service=item.id), action=P4IndirectAction(members))


def others(group: int, weights: Mapping[Server, int], looks: int = 2) -> P4TableEntry:
    """A group that a second look draws from, or so many looks at once."""
    members = [(places, _seen(*servers, weights=weights)) for places, servers in seen_together(weights, looks)]
    return P4TableEntry(Table.CHOOSE_OTHER, match=P4TableMatch(others=group), action=P4IndirectAction(members))


def idle_members(item: Service, servers: Iterable[Server], *, before_any: bool = False) -> P4TableEntry:
    """Those of the first word that a second look seeks out while they are idle; or before any other."""
    ((word, members),) = sought_idle({server.id: 1 for server in servers}).words.items()
    match = {"service": item.id, "word": word}
    return _entry(Table.IDLE_MEMBERS, match, Action.SEEK_IDLE, servers=members, before_any=int(before_any))


def seen(group: int, servers: Sequence[Server], weights: Mapping[Server, int]) -> P4TableEntry:
    """A group from which these are drawn, always and in this order."""
    action = P4IndirectAction([(1, _seen(*servers, weights=weights))])
    return P4TableEntry(Table.CHOOSE_OTHER, match=P4TableMatch(others=group), action=action)


def _seen(
    server: Server, third: Server | None = None, fourth: Server | None = None, *, weights: Mapping[Server, int]
) -> P4TableAction:
    args = {"id": server.id, "own_weight": weights[server]}
    if third is None:
        return P4TableAction(Action.CHOOSE_OTHER_SERVER, **args)
    args |= {"third": third.id, "third_weight": weights[third], "fourth": 0, "fourth_weight": 0}
    if fourth is not None:
        args |= {"fourth": fourth.id, "fourth_weight": weights[fourth]}
    return P4TableAction(Action.CHOOSE_OTHER_SERVERS, **args)


def capacities(item: Service, weights: Mapping[Server, int]) -> P4TableEntry:
    """The weights of capacity."""
    members = [(weight, P4TableAction(Action.CHOOSE_STABLE_SERVER, id=server.id)) for server, weight in weights.items()]
    return P4TableEntry(Table.CHOOSE_STABLE, match=P4TableMatch(service=item.id), action=P4IndirectAction(members))


def timers(times: Mapping[str, int]) -> P4TableEntry:
    """The times of the connection table, in ticks, by parameter."""
    return P4TableEntry(Table.TIMERS, is_default_action=True, action=P4TableAction(Action.SET_TIMERS, **times))


def destination(address: str, number: int, answer_reset: bool = False, remember: int = 0) -> P4TableEntry:
    """Requests to an address are counted and limited under a number; clients are remembered for so many ticks."""
    args = {"id": number, "answer_reset": int(answer_reset), "remember_time": remember}
    return _entry(Table.DESTINATIONS, {"address": address}, Action.LIMIT_DESTINATION, **args)


def sampling(packets: int) -> P4TableEntry:
    """The share of packets towards inside whose destination is sampled, in 65,536ths."""
    action = P4TableAction(Action.SET_SAMPLING, packets=packets)
    return P4TableEntry(Table.SAMPLING, is_default_action=True, action=action)


def rate_settings(step: int, mask: int) -> P4TableEntry:
    """The step of the response rates (0: off), and the mask of the fingerprints that are measured."""
    action = P4TableAction(Action.SET_RATES, step_time=step, flow_mask=mask)
    return P4TableEntry(Table.RATE_SETTINGS, is_default_action=True, action=action)


def meter(name: Meter, index: int, *, cir: int, cburst: int, pir: int, pburst: int) -> P4MeterEntry:
    """A token bucket, in packets (per second)."""
    return P4MeterEntry(name, index=index, config=P4MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst))


def unmetered(name: Meter, index: int) -> P4MeterEntry:
    """The cell as it is before anyone configures it: always green."""
    return P4MeterEntry(name, index=index)


def content(item: Service, generation: int = 1, remember: int = 0) -> P4TableEntry:
    """What clients of a content service address, remembered for so many ticks; its servers are the agents."""
    match = _endpoint(item.address, item.protocol, item.port)
    args = {"service": item.id, "generation": generation, "remember_time": remember}
    return _entry(Table.SERVICES, match, Action.TO_CONTENT, **args)


def group(item: Service, of: Service, shares: int = 0) -> P4TableEntry:
    """What agents of a content service address: one of its groups; with shares, drawn from evenly."""
    match = _endpoint(item.address, item.protocol, item.port)
    args = {"service": item.id, "shares": shares, "address": of.address, "port": of.port}
    return _entry(Table.SERVICES, match, Action.TO_GROUP, **args)


def content_origin(of: Service, server: Server) -> P4TableEntry:
    """Answers of a server of a content service's groups."""
    match = _endpoint(server.host.address, of.protocol, server.port)
    args = {"server": server.id, "service": of.id, "address": of.address, "port": of.port}
    return _entry(Table.ORIGINS, match, Action.FROM_CONTENT, **args)


def agent(of: Service, number: int, server: Server) -> P4TableEntry:
    """The agent of a content service that is behind a port."""
    match = {"port": number, "address": of.address, "service_port": of.port}
    return _entry(Table.AGENTS, match, Action.SET_AGENT, agent=server.id, address=server.host.address)


def managed(item: Server, send_cap: int = 0, receive_cap: int = 0, **how: int) -> P4TableEntry:
    """A server whose TCP resources are managed: caps in bytes on windows towards it, and on its own; what is not given
    is 0."""
    args = {"measured": 0, "sampling": 0, "closed": 0, "send_cap": send_cap, "receive_cap": receive_cap, **how}
    return _entry(Table.RESOURCES, {"server": item.id}, Action.MANAGE, **args)
