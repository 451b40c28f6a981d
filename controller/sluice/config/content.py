"""The ``content:`` block of a service: who reads its requests, and by which rules they go to groups of servers.

What may stand in a ``match`` is known to the rule engine alone, which the agent has.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from .types import Control, Extension, IpAddress, Match, Name, Refusal, Section, Size

Sticky = Literal["connection", "client", "none"]
REFUSE = "refuse"
"""In place of a group's name."""


class AgentConfig(Section):
    """An agent: it takes handshakes and reads requests."""

    name: Name
    address: IpAddress
    """In the subnet of an interface, on a port of its own; its TCP port is the service's."""
    control: Control
    """Where it listens for the controller: unix:///PATH or HOST:PORT."""
    capacity: Annotated[float, Field(ge=0.001, le=1000)] = 1.0
    """Relative to the other agents'."""
    drain: bool = False
    """It gets no new connections; those that it has stay."""


class LimitsConfig(Section):
    """How much of a connection an agent looks at."""

    head: Size = "16KiB"
    """Of an HTTP head, a ClientHello, or a mail dialogue."""
    body: Size = "64KiB"
    """Of a body that rules ask about; a rule that would need more does not match. Values may take four times that."""
    wait_s: Annotated[float, Field(gt=0, le=3600)] | None = None
    """A request is to be there within so many seconds: 2 if not told. Mail: the time between two commands, 300."""
    depth: Annotated[int, Field(ge=1, le=1000)] = 32
    """Levels of XML and JSON."""
    encoded_slash: Literal["refuse", "keep"] = "refuse"
    """What becomes of %2f, %5c and a backslash in a path."""


class TargetConfig(Section):
    """Where a request goes."""

    to: Name
    """A group: the name of a service."""
    sticky: Sticky = "connection"
    """How long the decision holds: for the connection, for all of the client's connections, or for one request."""


class OutcomeConfig(Section):
    """What becomes of a request: one of to, goto and refuse."""

    to: Name | None = None
    """A group: the name of a service."""
    sticky: Sticky | None = None
    """As in ``default``; beside ``to``."""
    goto: Name | None = None
    """The name of a later rule to go on with."""
    refuse: Refusal | None = None
    """The status of a refusal, or true for the protocol's own."""


class RuleConfig(OutcomeConfig):
    """A rule: the first that matches decides."""

    name: Name
    """For ``goto``, counts and messages."""
    match: Match | None = None
    """A mapping of fields, all of which must hold, or a list of mappings, one of which must; left out: everything."""
    otherwise: Annotated[OutcomeConfig | None, Field(alias="else")] = None
    """When it does not match; left out: the next rule."""

    @property
    def outcomes(self) -> tuple[tuple[str | None, OutcomeConfig], ...]:
        """What it does when it matches, and when it does not, each with the key that it is below."""
        return ((None, self), *((("else", self.otherwise),) if self.otherwise else ()))


class ContentConfig(Section):
    """Content switching (Chow, Wang & Prakash)."""

    protocol: Literal["http", "tls", "smtp", "imap", "pop3"]
    """What clients speak."""
    limits: LimitsConfig = LimitsConfig()
    agents: Annotated[tuple[AgentConfig, ...], Field(min_length=1)]
    """At least one."""
    default: TargetConfig
    """Where a request goes that no rule decides."""
    rules: tuple[RuleConfig, ...] = ()
    """In the order in which they are asked."""
    guess: bool | None = None
    """A client's next connection goes straight to its last server, and is moved when its request is another group's.
    Left out: yes, unless a rule refuses. HTTP and TLS only; connections with ``sticky: none`` are not remembered."""
    remember_s: Annotated[float, Field(ge=0, le=86_400)] = 300.0
    """How long a client's last server is remembered, for ``guess`` and ``sticky: client``."""
    without_agents: Name = REFUSE
    """What becomes of new connections while no agent is left: ``refuse``, or the name of a group that gets them unread.
    Beside a rule that refuses, ``refuse`` only."""
    offer: tuple[Extension, ...] = ()
    """Extensions that the agent offers in the servers' name; mail protocols only."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the services that requests go to, the default's first."""
        outcomes = [one for rule in self.rules for _, one in rule.outcomes]
        named = (self.default.to, *(one.to for one in outcomes if one.to is not None))
        return tuple(dict.fromkeys((*named, *((self.unread_group,) if self.unread_group else ()))))

    @property
    def unread_group(self) -> str | None:
        """The group that gets new connections while no agent is left; None: they are refused."""
        return None if self.without_agents == REFUSE else self.without_agents

    @property
    def refuses(self) -> bool:
        """Whether a rule refuses: then no request may reach a server before the rules have read it."""
        return any(one.refuse is not None for rule in self.rules for _, one in rule.outcomes)

    @property
    def guesses(self) -> bool:
        """Whether agents have clients remembered for guesses: where the client speaks first, and no rule refuses."""
        return self.guess is not False and not self.refuses and self.remember_s > 0 and self.protocol in ("http", "tls")

    def rule_set_json(self) -> str:
        """What the rule engine reads."""
        return json.dumps(self.rule_set())

    def rule_set(self) -> dict[str, Any]:
        """The same as data."""
        return self.model_dump(
            mode="json", by_alias=True, exclude_unset=True, exclude={"agents", "guess", "remember_s", "without_agents"}
        )
