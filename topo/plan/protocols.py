"""Plan of the lab of protocols: TLS and mail switched by content; each protocol has two groups with one server each.

The hosts are those of the lab of content switching. By default connections go to s1; connections that match a rule go
to s2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluice.addresses import Address, from_text

from topo.plan.content import AGENTS, POOL, S1, S2, agent_entries
from topo.plan.network import ASKED_ONCE, Balance, HostPlan, service, switch_config

NAMED = "b.example"
"""The name by which rules select s2: domain of a mail's recipients, or name of a TLS server."""
USER = "tim"
"""The user whose mailbox is on s2."""


@dataclass(frozen=True, slots=True)
class ProtocolPlan:
    """The content service of a protocol."""

    name: str
    address: Address
    port: int
    match: Mapping[str, object]
    """The match of the rule whose connections go to s2."""
    offer: Sequence[str] = ()

    def group(self, server: HostPlan) -> str:
        """Return the name of the group with this server."""
        return f"{self.name}-{server.name}"


TLS = ProtocolPlan("tls", from_text("10.0.0.120"), 443, {"sni": NAMED})
SMTP = ProtocolPlan(
    "smtp", from_text("10.0.0.121"), 25, {"rcpt_to": {"suffix": f"@{NAMED}"}}, ("PIPELINING", "8BITMIME", "STARTTLS")
)
IMAP = ProtocolPlan("imap", from_text("10.0.0.122"), 143, {"user": USER}, ("AUTH=PLAIN", "SASL-IR"))
POP3 = ProtocolPlan("pop3", from_text("10.0.0.123"), 110, {"user": USER}, ("SASL PLAIN",))
PROTOCOLS = (TLS, SMTP, IMAP, POP3)


def protocols_config(balance: Balance, *, controls: Mapping[str, str], thrift: bool) -> dict[str, object]:
    """Return the content of sluice.yaml for the lab; ``controls``: by agent, the address on which the agent listens for
    the controller."""
    agents = agent_entries({agent: controls[agent.name] for agent in AGENTS})
    services = [
        {
            "name": plan.name,
            "address": str(plan.address),
            "port": plan.port,
            "content": {
                "protocol": plan.name,
                "agents": agents,
                "default": {"to": plan.group(S1)},
                "rules": [{"name": "named", "match": dict(plan.match), "to": plan.group(S2)}],
                **({"offer": list(plan.offer)} if plan.offer else {}),
            },
        }
        for plan in PROTOCOLS
    ]
    groups = [
        {
            **service(plan.group(server), group_address(server), [server], plan.port, balance=balance.as_config()),
            "port": plan.port,
        }
        for plan in PROTOCOLS
        for server in (S1, S2)
    ]
    return switch_config(POOL.hosts, [*services, *groups], thrift=thrift, neighbours=ASKED_ONCE)


def group_address(server: HostPlan) -> Address:
    """Return the internal address of the groups with this server."""
    return from_text("10.0.9.1") + (S1, S2).index(server)
