"""The ``content:`` block of a service: its agents, and the rules by which agents send requests to groups of servers.

The agent's rule engine, not this module, checks the contents of a ``match``.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from .types import Control, Extension, IpAddress, Match, Name, Refusal, Section, Size

Sticky = Literal["connection", "client", "none"]
REFUSE = "refuse"
"""The value of ``without_agents`` that refuses connections, in place of a group's name."""


class AgentConfig(Section):
    """An agent: a proxy that answers clients' handshakes and reads their requests."""

    name: Name
    address: IpAddress
    """The agent's address, in the subnet of an interface, on a switch port of its own. The agent listens on the
    service's TCP port."""
    control: Control
    """The address at which the agent listens for the controller: unix:///PATH or HOST:PORT."""
    capacity: Annotated[float, Field(ge=0.001, le=1000)] = 1.0
    """The agent's capacity relative to the other agents' capacities."""
    drain: bool = False
    """Whether the agent drains: it gets no new connections, and keeps those that it has."""


class LimitsConfig(Section):
    """How much of a connection an agent reads, and for how long."""

    head: Size = "16KiB"
    """The largest size of an HTTP head, a ClientHello, or a mail dialogue."""
    body: Size = "64KiB"
    """The largest part of a body that rules examine; a rule that would need more does not match. Decoded values may be
    four times as large."""
    wait_s: Annotated[float, Field(gt=0, le=3600)] | None = None
    """Seconds within which a request must be complete; default 2. For mail: the longest time between two commands, in
    seconds; default 300."""
    depth: Annotated[int, Field(ge=1, le=1000)] = 32
    """The deepest nesting of XML and JSON."""
    encoded_slash: Literal["refuse", "keep"] = "refuse"
    """Whether requests with %2f, %5c or a backslash in the path are refused, or these characters are kept."""


class TargetConfig(Section):
    """The destination of a request."""

    to: Name
    """The destination group: the name of a service."""
    sticky: Sticky = "connection"
    """The scope of the decision: the connection, all of the client's connections, or one request."""


class OutcomeConfig(Section):
    """What happens to a request: one of to, goto and refuse."""

    to: Name | None = None
    """The destination group: the name of a service."""
    sticky: Sticky | None = None
    """The scope of the decision, as in ``default``; only beside ``to``."""
    goto: Name | None = None
    """The name of a later rule at which evaluation continues."""
    refuse: Refusal | None = None
    """The status code of a refusal, such as 403; true: the protocol's default."""


class RuleConfig(OutcomeConfig):
    """A rule: the first rule that matches decides."""

    name: Name
    """The rule's name, for ``goto``, counts and messages."""
    match: Match | None = None
    """A mapping of fields, all of which must match, or a list of mappings, one of which must match. Left out: the rule
    matches every request."""
    otherwise: Annotated[OutcomeConfig | None, Field(alias="else")] = None
    """The outcome if the rule does not match. Left out: the next rule decides."""

    @property
    def outcomes(self) -> tuple[tuple[str | None, OutcomeConfig], ...]:
        """The outcomes of a match and of a mismatch, each with its key in the file (None: the outcome is the rule's
        own)."""
        return ((None, self), *((("else", self.otherwise),) if self.otherwise else ()))


class ContentConfig(Section):
    """Content switching (Chow, Wang & Prakash): agents select servers by the contents of requests."""

    protocol: Literal["http", "tls", "smtp", "imap", "pop3"]
    """The protocol that clients use."""
    limits: LimitsConfig = LimitsConfig()
    agents: Annotated[tuple[AgentConfig, ...], Field(min_length=1)]
    """The agents, at least one."""
    default: TargetConfig
    """The destination of requests that no rule matches."""
    rules: tuple[RuleConfig, ...] = ()
    """The rules, in the order of evaluation."""
    guess: bool | None = None
    """Whether a client's next connection goes directly to the client's last server, and is moved if its request is for
    another group. Left out: yes, unless a rule refuses. HTTP and TLS only; connections with ``sticky: none`` are not
    remembered."""
    remember_s: Annotated[float, Field(ge=0, le=86_400)] = 300.0
    """Seconds for which a client's last server is remembered, for ``guess`` and ``sticky: client``."""
    without_agents: Name = REFUSE
    """What happens to new connections while no agent answers: ``refuse``, or the name of a group that receives them
    although no agent has read their requests. With a rule that refuses, only ``refuse`` is valid."""
    offer: tuple[Extension, ...] = ()
    """Mail extensions that the agent announces on behalf of the servers; mail protocols only."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the services to which requests go, the default service first."""
        outcomes = [outcome for rule in self.rules for _, outcome in rule.outcomes]
        named = (self.default.to, *(outcome.to for outcome in outcomes if outcome.to is not None))
        return tuple(dict.fromkeys((*named, *((self.unread_group,) if self.unread_group else ()))))

    @property
    def unread_group(self) -> str | None:
        """The group that gets new connections while no agent answers; None: such connections are refused."""
        return None if self.without_agents == REFUSE else self.without_agents

    @property
    def refuses(self) -> bool:
        """Whether any rule refuses requests. If a rule does, no request may reach a server before the rules have been
        evaluated."""
        return any(outcome.refuse is not None for rule in self.rules for _, outcome in rule.outcomes)

    @property
    def guesses(self) -> bool:
        """Whether the switch remembers clients for guesses: ``guess`` and ``remember_s`` permit it, no rule refuses
        requests, and in the protocol the client sends first (HTTP and TLS)."""
        return self.guess is not False and not self.refuses and self.remember_s > 0 and self.protocol in ("http", "tls")

    def rule_set_json(self) -> str:
        """Return the rule set as JSON, the rule engine's input format."""
        return json.dumps(self.rule_set())

    def rule_set(self) -> dict[str, Any]:
        """Return as data those keys of the block that the file sets and that the rule engine reads."""
        return self.model_dump(
            mode="json", by_alias=True, exclude_unset=True, exclude={"agents", "guess", "remember_s", "without_agents"}
        )
