"""Stage agents: the switch ports behind which the agents (HTTP proxies) of content services are."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.names import Action, Table

from .plan import Server
from .state import State


def entries(state: State) -> Iterator[P4TableEntry]:
    """Yield an entry for each agent whose port is known: the only port of the agent's subnet, or the port at which the
    agent answered ARP."""
    for service in (candidate for candidate in state.plan.services if candidate.is_content):
        address, _, port = service.endpoint
        for agent in service.servers:
            if (agent_port := _port(state, agent)) is not None:
                yield P4TableEntry(
                    Table.AGENTS,
                    match=P4TableMatch(port=agent_port, address=address, service_port=port),
                    action=P4TableAction(Action.SET_AGENT, agent=agent.id),
                )


def hops(state: State) -> Iterator[P4TableEntry]:
    """Yield an entry for each agent on a connected subnet: the agent as the next hop of servers' answers."""
    for agent in dict.fromkeys(state.plan.agents):
        if state.plan.interfaces_towards(agent.address):
            yield P4TableEntry(
                Table.AGENT_HOPS,
                match=P4TableMatch(agent=agent.id),
                action=P4TableAction(Action.SET_AGENT_HOP, neighbour=state.neighbour_ids[agent.address]),
            )


def _port(state: State, agent: Server) -> int | None:
    ports = [interface.port for interface in state.plan.interfaces_towards(agent.address)]
    neighbour = state.neighbours.get(agent.address)
    if neighbour is not None and neighbour.port in ports:
        return neighbour.port
    return ports[0] if len(ports) == 1 else None
