"""What is decided of content services: the generation of their rules, and the agents that are away."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sluice.features.balance.feature import Balance
from sluice.loops.world import World
from sluice.switch.rules import Rules


@dataclass(frozen=True, slots=True)
class Away:
    """Agents that are given no new connections, by number."""

    absent: frozenset[int] = frozenset()
    """They do not answer."""
    leaving: frozenset[int] = frozenset()
    """They finish their connections and end."""

    def among(self, agents: Collection[int]) -> Away:
        """Return the same for some of the agents."""
        return Away(self.absent.intersection(agents), self.leaving.intersection(agents))


class ContentState:
    """What the switch is to hold for content services."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.rules = Rules().following(world.config)
        """Of all content services."""
        self.away = Away()

    @property
    def unread(self) -> dict[int, dict[int, int]]:
        """See State: what services without any agent do is declared by their `without_agents`."""
        plan, views = self._world.plan, self._world[Balance].views
        groups = {service.name: service.id for service in plan.services}
        return {
            service.id: views[groups[group]].weights if (group := content.unread_group) is not None else {}
            for service in plan.services
            if (content := service.config.content) is not None
            and all(agent.id in self.away.absent for agent in service.servers)
        }
