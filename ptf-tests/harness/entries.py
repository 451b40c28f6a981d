"""Table entries of the program, by the names in its P4Info.

`number` is the target's number of a port; in `destination` it is the number of the destination.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from finsy import P4IndirectAction, P4MeterConfig, P4MeterEntry, P4TableAction, P4TableEntry, P4TableMatch
from sluice.addresses import from_text
from sluice.balance.looks import seen_together, sought_idle
from sluice.names import Action, Meter, Table

from .plan import Server, Service


def _entry(table: Table, match: Mapping[str, object], action: Action, **args: object) -> P4TableEntry:
    return P4TableEntry(table, match=P4TableMatch(match), action=P4TableAction(action, **args))


def _default(table: Table, action: Action, **args: int) -> P4TableEntry:
    return P4TableEntry(table, is_default_action=True, action=P4TableAction(action, **args))


def port(number: int, mac: str, inside: bool = False) -> P4TableEntry:
    """Return the entry of a port: the router's MAC address, and whether it leads to servers or protected hosts."""
    return _entry(Table.PORTS, {"port": number}, Action.SET_PORT, mac=mac, inside=int(inside))


def owned(address: str) -> P4TableEntry:
    """Return the entry of an address that belongs to the router."""
    return _entry(Table.OWNED, {"address": address}, Action.IS_OWNED)


def neighbour_id(address: str) -> int:
    """Return the id that tests assign to a next hop: its address's last two bytes, which differ for all next hops."""
    return int(from_text(address)) & 0xFFFF


def route(prefix: str, next_hop: str | None) -> P4TableEntry:
    """Return the route of a prefix, which is directly connected (`next_hop` is None) or reached by a next hop."""
    match = {"destination": prefix}
    if next_hop is None:
        return _entry(Table.ROUTES, match, Action.CONNECTED)
    return _entry(Table.ROUTES, match, Action.VIA, neighbour=neighbour_id(next_hop))


def host_route(address: str) -> P4TableEntry:
    """Return the route of a neighbour's address, which leads to the neighbour itself. The entry's metadata is the
    address, by which a restarted controller recognises the entry."""
    return replace(route(f"{address}/32", address), metadata=address.encode())


def neighbour(address: str, number: int, src: str, dst: str) -> P4TableEntry:
    """Return the entry of a next hop: its port, the router's MAC address at the port, the next hop's MAC address. The
    entry's metadata is the next hop's address, by which a restarted controller recognises the entry."""
    entry = _entry(
        Table.NEIGHBOURS,
        {"neighbour": neighbour_id(address)},
        Action.SET_NEIGHBOUR,
        port=number,
        src=src,
        dst=dst,
    )
    return replace(entry, metadata=address.encode())


def set_vlan(number: int, vlan: int) -> P4TableEntry:
    """Return the entry by which frames leave the port with this VLAN tag."""
    return _entry(Table.EGRESS_VLAN, {"port": number}, Action.SET_VLAN, id=vlan)


def strip_vlan(number: int) -> P4TableEntry:
    """Return the entry by which frames leave the port without a VLAN tag."""
    return _entry(Table.EGRESS_VLAN, {"port": number}, Action.STRIP)


def keep_vlan(number: int) -> P4TableEntry:
    """Return the entry by which frames leave the port with the VLAN tag with which they arrived."""
    return _entry(Table.EGRESS_VLAN, {"port": number}, Action.KEEP)


def _endpoint(address: str, protocol: int, port_number: int) -> dict[str, object]:
    return {"address": address, "protocol": protocol, "port": port_number}


def service(item: Service, shares: int = 0) -> P4TableEntry:
    """Return the entry of a service's endpoint; `shares` has the same meaning as in `group`."""
    match = _endpoint(item.address, item.protocol, item.port)
    return _entry(Table.SERVICES, match, Action.TO_SERVICE, service=item.id, shares=shares)


def deny_direct(item: Service, server: Server) -> P4TableEntry:
    """Return the entry that denies clients direct access to a server's own endpoint."""
    match = _endpoint(server.host.address, item.protocol, server.port)
    return _entry(Table.SERVICES, match, Action.DENY_DIRECT)


def origin(item: Service, server: Server, action: Action = Action.FROM_SERVER) -> P4TableEntry:
    """Return the entry that replaces the source of a server's answers by the endpoint of its service `item`."""
    match = _endpoint(server.host.address, item.protocol, server.port)
    args = {"server": server.id, "service": item.id, "address": item.address, "port": item.port}
    return _entry(Table.ORIGINS, match, action, **args)


def server(item: Server, draining: bool = False) -> P4TableEntry:
    """Return the entry of a server: address and port, to which the switch translates packets, and whether it drains."""
    args = {"address": item.host.address, "port": item.port, "draining": int(draining)}
    return _entry(Table.SERVERS, {"server": item.id}, Action.TO_SERVER, **args)


def ratios(item: Service, weights: Mapping[Server, int], others: Mapping[Server, int] | None = None) -> P4TableEntry:
    """Return the selector group with a service's weights by R.

    `others` contains, by server, the number of the group from which further candidates are drawn; None: no candidates.
    """
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
    """Return the entry of a group from which the switch draws further candidates for a SYN.

    `looks`: the number of servers that the switch compares for a SYN; a draw from the group yields `looks` - 1 servers.
    """
    members = [(places, _drawn(*servers, weights=weights)) for places, servers in seen_together(weights, looks)]
    return P4TableEntry(Table.CHOOSE_OTHER, match=P4TableMatch(others=group), action=P4IndirectAction(members))


def idle_members(item: Service, servers: Iterable[Server], *, before_any: bool = False) -> P4TableEntry:
    """Return the entry of the servers that the switch may select because they are idle.

    `before_any`: idle servers are always preferred to the drawn candidates, otherwise only to candidates with open
    connections.
    """
    ((word, members),) = sought_idle({server.id: 1 for server in servers}).words.items()
    match = {"service": item.id, "word": word}
    return _entry(Table.IDLE_MEMBERS, match, Action.SEEK_IDLE, servers=members, before_any=int(before_any))


def fixed_draw(group: int, servers: Sequence[Server], weights: Mapping[Server, int]) -> P4TableEntry:
    """Return a group from which the switch always draws these servers, in this order."""
    action = P4IndirectAction([(1, _drawn(*servers, weights=weights))])
    return P4TableEntry(Table.CHOOSE_OTHER, match=P4TableMatch(others=group), action=action)


def _drawn(
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
    """Return the selector group with a service's weights by capacity."""
    members = [(weight, P4TableAction(Action.CHOOSE_STABLE_SERVER, id=server.id)) for server, weight in weights.items()]
    return P4TableEntry(Table.CHOOSE_STABLE, match=P4TableMatch(service=item.id), action=P4IndirectAction(members))


def timers(times: Mapping[str, int]) -> P4TableEntry:
    """Return the entry with the connection table's timeouts in ticks; `times` has the parameters of the action."""
    return _default(Table.TIMERS, Action.SET_TIMERS, **times)


def destination(address: str, number: int, answer_reset: bool = False, remember: int = 0) -> P4TableEntry:
    """Return the entry that counts and limits requests to an address, as destination `number`.

    `answer_reset`: refused SYNs are answered by an RST. `remember`: ticks for which clients are remembered.
    """
    args = {"id": number, "answer_reset": int(answer_reset), "remember_time": remember}
    return _entry(Table.DESTINATIONS, {"address": address}, Action.LIMIT_DESTINATION, **args)


def sampling(packets: int) -> P4TableEntry:
    """Return the setting by which the switch samples the destinations of `packets` in 65,536 packets.

    Only packets to services, and routed packets from outside, are sampled.
    """
    return _default(Table.SAMPLING, Action.SET_SAMPLING, packets=packets)


def rate_settings(step: int, mask: int) -> P4TableEntry:
    """Return the setting by which response rates are measured in steps of `step` times 1,024 us (0: off).

    Only responses whose fingerprint is 0 in the bits of `mask` are measured.
    """
    return _default(Table.RATE_SETTINGS, Action.SET_RATES, step_time=step, flow_mask=mask)


def meter(name: Meter, index: int, *, cir: int, cburst: int, pir: int, pburst: int) -> P4MeterEntry:
    """Return the configuration of a token bucket: rates in packets per second, bursts in packets."""
    return P4MeterEntry(name, index=index, config=P4MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst))


def unmetered(name: Meter, index: int) -> P4MeterEntry:
    """Return an unconfigured token bucket, which is always green."""
    return P4MeterEntry(name, index=index)


def content(item: Service, generation: int = 1, remember: int = 0) -> P4TableEntry:
    """Return the entry of a content service's endpoint.

    `generation` is the version of the service's rules; clients are remembered for `remember` ticks.
    """
    match = _endpoint(item.address, item.protocol, item.port)
    args = {"service": item.id, "generation": generation, "remember_time": remember}
    return _entry(Table.SERVICES, match, Action.TO_CONTENT, **args)


def group(item: Service, of: Service, shares: int = 0) -> P4TableEntry:
    """Return the entry by which agents of the content service `of` reach the group of servers `item`.

    If `shares` (the sum of the servers' weights) is not 0, the switch draws servers by an evenly spaced sequence of
    `shares` steps, and otherwise by a hash.
    """
    match = _endpoint(item.address, item.protocol, item.port)
    args = {"service": item.id, "shares": shares, "address": of.address, "port": of.port}
    return _entry(Table.SERVICES, match, Action.TO_GROUP, **args)


def content_origin(of: Service, server: Server) -> P4TableEntry:
    """Return the entry that recognises answers of a server in the groups of the content service `of`."""
    return origin(of, server, Action.FROM_CONTENT)


def agent(of: Service, number: int, server: Server) -> P4TableEntry:
    """Return the entry of an agent of the content service `of`: the agent `server`, at port `number` of the target."""
    match = {"port": number, "address": of.address, "service_port": of.port}
    return _entry(Table.AGENTS, match, Action.SET_AGENT, agent=server.id)


def agent_hop(server: Server) -> P4TableEntry:
    """Return the entry that makes the agent `server` the next hop of servers' answers."""
    hop = neighbour_id(server.host.address)
    return _entry(Table.AGENT_HOPS, {"agent": server.id}, Action.SET_AGENT_HOP, neighbour=hop)


def managed(item: Server, send_cap: int = 0, receive_cap: int = 0, **how: int) -> P4TableEntry:
    """Return the entry of a server whose TCP resources are managed.

    The caps are in bytes (0: no cap): `send_cap` bounds the windows that clients advertise to the server, `receive_cap`
    those that the server advertises. `how` sets other parameters, which are 0 unless given.
    """
    args = {"measured": 0, "sampling": 0, "closed": 0, "send_cap": send_cap, "receive_cap": receive_cap, **how}
    return _entry(Table.RESOURCES, {"server": item.id}, Action.MANAGE, **args)
