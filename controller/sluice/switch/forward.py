"""Stage forward: routes, neighbours and VLAN tags."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.names import Action, Table

from .state import State


def routes(state: State) -> Iterator[P4TableEntry]:
    """Yield connected subnets and static routes. A static route for a connected subnet does not replace that subnet."""
    config = state.plan.config
    connected = {interface.address.network for interface in config.interfaces}
    actions = {route.to: P4TableAction(Action.VIA, next_hop=route.via) for route in config.routes}
    actions |= {network: P4TableAction(Action.CONNECTED) for network in connected}
    for network, action in sorted(actions.items(), key=lambda item: (item[0].version, item[0])):
        # P4Runtime requires that a prefix of length 0 is left out of the match.
        match = P4TableMatch(destination=network) if network.prefixlen else P4TableMatch()
        yield P4TableEntry(Table.ROUTES, match=match, action=action)


def neighbours(state: State) -> Iterator[P4TableEntry]:
    """Yield the next hops whose MAC address is known, on configured ports."""
    macs = {interface.port: interface.mac for interface in state.plan.config.interfaces}
    for address, neighbour in state.neighbours.items():
        if neighbour.port in macs:
            yield P4TableEntry(
                Table.NEIGHBOURS,
                match=P4TableMatch(next_hop=address),
                action=P4TableAction(
                    Action.SET_NEIGHBOUR,
                    port=neighbour.port,
                    src=macs[neighbour.port],
                    dst=neighbour.mac,
                ),
            )


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
