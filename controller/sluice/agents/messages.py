"""Messages between controller and agent (agent/proto/agent.proto), and their conversion from and to plain data.

The message classes are made from descriptors at run time, because generated code would depend on one version of
protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from sluice.switch.plan import Plan, Service
from sluice.switch.rules import Rules

from .abilities import NAMES, Ability, Learned
from .cookies import Cookies

DESCRIPTORS = Path(__file__).resolve().parent / "agent.descriptor.txtpb"
SERVICE = "sluice.agent.v1.Agent"


def _messages() -> dict[str, type[Message]]:
    file = text_format.Parse(DESCRIPTORS.read_text(), descriptor_pb2.FileDescriptorProto())
    classes = message_factory.GetMessages([file], descriptor_pool.DescriptorPool())
    return {name.rpartition(".")[2]: kind for name, kind in classes.items()}


MESSAGES = _messages()
"""Message classes by their short names."""


def make(kind: str, /, **fields: object) -> Any:
    """Return a new message of the class named ``kind``, with these fields."""
    return cast(Any, MESSAGES[kind])(**fields)


def configuration(plan: Plan, control: str, rules: Rules, cookies: Cookies) -> Any:
    """Return the configuration message for the agent that listens at ``control``: the content services of ``plan`` that
    name this agent, the generation of ``rules``, and the keys of SYN cookies."""
    services = {service.name: service for service in plan.services}
    served = [
        make(
            "Service",
            name=service.name,
            address=str(service.address),
            port=service.port,
            agent_port=service.port,
            groups={name: _endpoint(services[name]) for name in content.groups},
            servers={name: make("Servers", ids=[s.id for s in services[name].servers]) for name in content.groups},
            content=content.rule_set_json(),
            guess=content.guesses,
        )
        for service in plan.config.services
        if (content := service.content) is not None and any(agent.control == control for agent in content.agents)
    ]
    return make(
        "Configuration",
        services=served,
        generation=rules.generation,
        cookie_key=cookies.key,
        former_cookie_key=cookies.former,
    )


def _endpoint(service: Service) -> str:
    address, _, port = service.endpoint
    return f"{address}:{port}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that the agent found in a rule set."""

    path: str
    """Path in the ``content:`` block, such as ``rules[3].match.path.regex``."""
    message: str
    remedy: str
    service: str = ""

    def __str__(self) -> str:
        place = ": ".join(component for component in (self.service, self.path) if component)
        return f"{place}: {self.message}" + (f"; {self.remedy}" if self.remedy else "")


def problems(verdict: Any) -> list[Problem]:
    """Return the problems in an agent's answer to a configuration; the list is empty if the agent accepted it."""
    return [Problem(problem.path, problem.message, problem.remedy, problem.service) for problem in verdict.problems]


COUNTS = tuple(
    field.name
    for field in MESSAGES["ServiceStatus"].DESCRIPTOR.fields
    if field.type == FieldDescriptor.TYPE_UINT64 and not field.is_repeated
)
"""Names of the counts that an agent reports for each service."""


@dataclass(frozen=True, slots=True)
class ServiceCounts:
    """A service's counts since the agent started, or the sums of several agents' counts."""

    counts: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    rules: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of requests by the rule that decided them, in the order of the rule list."""
    opened: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of connections opened to servers, by group."""
    failed: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of connections that no server accepted, by group."""
    refused: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of refused requests, by reason."""

    def __add__(self, other: ServiceCounts) -> ServiceCounts:
        return ServiceCounts(
            _sum(self.counts, other.counts),
            _sum(self.rules, other.rules),
            _sum(self.opened, other.opened),
            _sum(self.failed, other.failed),
            _sum(self.refused, other.refused),
        )


def _sum(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {key: first.get(key, 0) + second.get(key, 0) for key in (*first, *second)}


GroupName = tuple[str, str]
"""The name of a content service and the name of one of its groups of servers."""


@dataclass(frozen=True, slots=True)
class Report:
    """An agent's report about itself."""

    generation: int
    uptime_s: float
    connections: int
    """Number of the agent's open connections."""
    waiting: int
    """Number of requests that have not arrived completely."""
    memory: int
    """Bytes of memory that the connections use."""
    draining: bool
    services: Mapping[str, ServiceCounts]
    learned: Mapping[GroupName, Learned] = field(default_factory=dict[GroupName, Learned])
    """What the agent itself has learned about the groups of its services, without what other agents have learned."""


def report(status: Any) -> Report:
    """Convert an agent's status message to a report."""
    return Report(
        generation=status.generation,
        uptime_s=status.uptime_ms / 1000,
        connections=status.connections,
        waiting=status.waiting,
        memory=status.memory,
        draining=status.draining,
        services={service.name: _counts(service) for service in status.services},
        learned={
            (service.name, group.name): _learned(group.ability)
            for service in status.services
            for group in service.groups
            if group.HasField("ability")
        },
    )


def _learned(ability: Any) -> Learned:
    values = {name: getattr(ability, name) for name in NAMES if ability.HasField(name)}
    return Learned(frozenset(ability.servers), Ability(**values))


def shared(learned: Mapping[GroupName, Learned]) -> Any:
    """Return the message that informs an agent of what other agents have learned."""
    groups = [
        make(
            "GroupAbility",
            service=service,
            group=group,
            ability=make(
                "Ability",
                servers=sorted(knowledge.servers),
                **{name: value for name in NAMES if (value := getattr(knowledge.ability, name)) is not None},
            ),
        )
        for (service, group), knowledge in sorted(learned.items(), key=lambda item: item[0])
    ]
    return make("SharedAbilities", groups=groups)


def _counts(service: Any) -> ServiceCounts:
    return ServiceCounts(
        counts={name: getattr(service, name) for name in COUNTS},
        rules={rule.name: rule.hits for rule in service.rules},
        opened={group.name: group.opened for group in service.groups},
        failed={group.name: group.failed for group in service.groups},
        refused=dict(service.refused),
    )
