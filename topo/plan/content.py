"""Plan of the lab of content switching: a content service with two agents, and three groups that share servers.

```
 c1 10.0.1.1 --1|        |3-- s1 10.0.11.1        shop   = 10.0.0.110:80 by content
 c2 10.0.2.1 --2| sluice |4-- s2 10.0.12.1        all    = s1, s2, s3
 h1 10.0.3.1 --6|        |5-- s3 10.0.13.1        images = s1, s2
                 7      8                         fast   = s3
                 a1    a2  10.0.21.1, 10.0.22.1
```
The rules are taken from Chow, Wang & Prakash, section 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluice.addresses import Address, from_text

from topo.plan.network import ASKED_ONCE, SERVERS, THREE, WEB_PORT, Balance, HostPlan, PoolPlan, service, switch_config

SHOP = "shop"
SHOP_ADDRESS = from_text("10.0.0.110")
AGENTS = (HostPlan("a1", 7, 21), HostPlan("a2", 8, 22))
S1, S2, S3 = SERVERS

GROUPS: Mapping[str, Sequence[HostPlan]] = {"all": SERVERS, "images": (S1, S2), "fast": (S3,)}
"""The servers of each group."""

RULES: Sequence[Mapping[str, object]] = (
    {"name": "R1", "match": {"xml": {"purchase.totalAmount": "> 52000"}}, "to": "fast"},
    {"name": "R2", "match": {"xml": {"purchase.customerName": "CCL"}}, "to": "fast", "sticky": "none"},
    {"name": "R3", "match": {"path": {"suffix": ".gif"}}, "to": "images", "sticky": "none"},
    {"name": "R4", "match": {"source": "10.0.2.1/32"}, "to": "images", "sticky": "client"},
    {
        "name": "R5",
        "match": {"path": {"regex": "xmlprocess\\.pl"}},
        "goto": "R6",
        "else": {"to": "all", "sticky": "none"},
    },
    {
        "name": "R6",
        "match": {"xml": {"purchase.totalAmount": "> 5000"}},
        "to": "fast",
        "sticky": "none",
        "else": {"to": "images", "sticky": "none"},
    },
)


@dataclass(frozen=True, slots=True)
class ContentPool(PoolPlan):
    """The demo's pool of servers, with two agents in addition."""

    @property
    def hosts(self) -> Sequence[HostPlan]:
        """The hosts around the switch."""
        return (*super(ContentPool, self).hosts, *AGENTS)


POOL = ContentPool(THREE.servers, THREE.cpus)


def group_address(name: str) -> Address:
    """Return the internal address of a group."""
    return from_text("10.0.9.1") + list(GROUPS).index(name)


def agent_entries(agents: Mapping[HostPlan, str]) -> list[dict[str, str]]:
    """Return the configuration's entries for the agents of a content service. ``agents`` maps each agent to the address
    on which it listens for the controller."""
    return [{"name": agent.name, "address": str(agent.address), "control": at} for agent, at in agents.items()]


def content_service(
    name: str,
    address: Address,
    agents: Mapping[HostPlan, str],
    rules: Sequence[Mapping[str, object]],
    /,
    **more: object,
) -> Mapping[str, object]:
    """Return the configuration of a service that is switched by content.

    ``agents``: the address on which each agent listens for the controller; ``more``: keys of the block ``content`` that
    are added or replaced.
    """
    content = {"protocol": "http", "agents": agent_entries(agents), "rules": list(rules), **more}
    return {"name": name, "address": str(address), "port": WEB_PORT, "content": content}


def content_config(
    balance: Balance, *, controls: Mapping[str, str], thrift: bool, content: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Return the content of sluice.yaml for the lab; ``controls``: by agent, the address on which the agent listens for
    the controller.

    ``content``: keys that are added to the service's block ``content``, or replaced.
    """
    agents = {agent: controls[agent.name] for agent in AGENTS}
    keys = {"default": {"to": "all", "sticky": "none"}, **(content or {})}
    shop = content_service(SHOP, SHOP_ADDRESS, agents, RULES, **keys)
    how = balance.as_config()
    groups = [service(name, group_address(name), servers, balance=how) for name, servers in GROUPS.items()]
    return switch_config(POOL.hosts, [shop, *groups], thrift=thrift, neighbours=ASKED_ONCE)
