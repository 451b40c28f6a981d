"""The controller's features, each in a package. A feature is the state, the tasks and the views of one capability; the
capability's algorithm is pure and in another package.

A feature may use the feature of balancing, but no other feature.
"""

from sluice.config.model import Config
from sluice.loops.world import Feature, World

from .balance.feature import Balance
from .content.feature import Content
from .crowd.feature import CrowdControl
from .resources.feature import Resources

FEATURES: tuple[type[Feature], ...] = (Balance, Content, CrowdControl, Resources)
"""The controller's features, in the order in which they take over configurations and switches. A status report has
their parts in the same order."""


def world_of(config: Config) -> World:
    """Return the state at the start of a controller, with all features."""
    return World.of(config, FEATURES)


__all__ = ["FEATURES", "Balance", "Content", "CrowdControl", "Resources", "world_of"]
