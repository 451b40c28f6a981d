"""The controller's decisions about content services: the generation of their rules, and the agents that are away."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sluice.features.balance.feature import Balance
from sluice.loops.world import World
from sluice.switch.rules import Rules


@dataclass(frozen=True, slots=True)
class Away:
    """Agents that get no new connections, given by their numbers."""

    absent: frozenset[int] = frozenset()
    """Agents that do not answer."""
    leaving: frozenset[int] = frozenset()
    """Agents that finish their present connections and then end."""

    def among(self, agents: Collection[int]) -> Away:
        """Return the same state restricted to the given agents."""
        return Away(self.absent.intersection(agents), self.leaving.intersection(agents))


class ContentState:
    """The desired state of the switch for content services."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.rules = Rules().following(world.config)
        """The rules of all content services, with their generation number."""
        self.away = Away()

    @property
    def unread(self) -> dict[int, dict[int, int]]:
        """For each service without any agent: the weights of the servers that get its new connections, although no
        agent reads the requests (as State.unread). The service's setting `without_agents` selects these servers; if it
        is not set, no server gets connections.
        """
        plan, views = self._world.plan, self._world[Balance].views
        groups = {service.name: service.id for service in plan.services}
        return {
            service.id: views[groups[group]].weights if (group := content.unread_group) is not None else {}
            for service in plan.services
            if (content := service.config.content) is not None
            and all(agent.id in self.away.absent for agent in service.servers)
        }
