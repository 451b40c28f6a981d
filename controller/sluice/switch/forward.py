"""Stage forward: routes, neighbours and VLAN tags.

Routes lead to neighbours (next hops) by their ids. A neighbour's entry and its host route note the neighbour's address,
so that a restarted controller can assign the same id.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.addresses import Address, from_text
from sluice.names import Action, Table

from .state import State


def routes(state: State) -> Iterator[P4TableEntry]:
    """Yield connected subnets, static routes, and host routes of neighbours. A static route for a connected subnet does
    not replace that subnet.

    A neighbour has a host route if packets to its address are not forwarded through another neighbour.
    """
    config, ids = state.plan.config, state.neighbour_ids
    connected = {interface.address.network for interface in config.interfaces}
    hosts = {ip_network(address): address for address in ids if state.plan.next_hop(address) == address}
    hops = {network: ids[address] for network, address in hosts.items()}
    hops |= {route.to: ids[route.via] for route in config.routes}
    actions = {network: P4TableAction(Action.VIA, neighbour=number) for network, number in hops.items()}
    actions |= {network: P4TableAction(Action.CONNECTED) for network in connected}
    for network, action in sorted(actions.items(), key=lambda item: (item[0].version, item[0])):
        # P4Runtime requires that a prefix of length 0 is left out of the match.
        match = P4TableMatch(destination=network) if network.prefixlen else P4TableMatch()
        yield P4TableEntry(Table.ROUTES, match=match, action=action, metadata=_note(hosts.get(network)))


def neighbours(state: State) -> Iterator[P4TableEntry]:
    """Yield the next hops whose MAC address is known, on configured ports."""
    macs = {interface.port: interface.mac for interface in state.plan.config.interfaces}
    for address, neighbour in state.neighbours.items():
        if neighbour.port in macs:
            yield P4TableEntry(
                Table.NEIGHBOURS,
                match=P4TableMatch(neighbour=state.neighbour_ids[address]),
                action=P4TableAction(
                    Action.SET_NEIGHBOUR,
                    port=neighbour.port,
                    src=macs[neighbour.port],
                    dst=neighbour.mac,
                ),
                metadata=_note(address),
            )


def _note(address: Address | None) -> bytes:
    return b"" if address is None else str(address).encode()


def address_noted(metadata: bytes) -> Address | None:
    """Return the neighbour's address that an entry notes; None if the note contains no address."""
    try:
        return from_text(metadata.decode())
    except ValueError:
        return None


def vlans(state: State) -> Iterator[P4TableEntry]:
    """Yield, for each port, the treatment of a packet's VLAN tag. To keep the tag is the default and needs no entry."""
    for interface in state.plan.config.interfaces:
        match interface.vlan:
            case "keep":
                continue
            case "strip":
                action = P4TableAction(Action.STRIP)
            case vid:
                action = P4TableAction(Action.SET_VLAN, id=vid)
        yield P4TableEntry(Table.EGRESS_VLAN, match=P4TableMatch(port=interface.port), action=action)
