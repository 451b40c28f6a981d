"""What controller and agent say to each other (switch/agent/proto/agent.proto), as plain data.

The messages are made from descriptors at run time: generated code would be bound to one version of protobuf.
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
    found = message_factory.GetMessages([file], descriptor_pool.DescriptorPool())
    return {name.rpartition(".")[2]: kind for name, kind in found.items()}


MESSAGES = _messages()
"""By their short names."""


def make(kind: str, /, **fields: object) -> Any:
    """A message."""
    return cast(Any, MESSAGES[kind])(**fields)


def configuration(plan: Plan, control: str, rules: Rules, cookies: Cookies) -> Any:
    """What the agent that listens at ``control`` is to do."""
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
    """What is wrong with rules."""

    path: str
    """In the ``content:`` block, such as ``rules[3].match.path.regex``."""
    message: str
    remedy: str
    service: str = ""

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.service, self.path) if part)
        return f"{place}: {self.message}" + (f"; {self.remedy}" if self.remedy else "")


def problems(verdict: Any) -> list[Problem]:
    """Of the answer to a configuration; none when it is in force."""
    return [Problem(one.path, one.message, one.remedy, one.service) for one in verdict.problems]


COUNTS = tuple(
    field.name
    for field in MESSAGES["ServiceStatus"].DESCRIPTOR.fields
    if field.type == FieldDescriptor.TYPE_UINT64 and not field.is_repeated
)
"""What an agent counts of a service."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an agent tells of a service, since it started; of several agents, together."""

    counts: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    rules: Mapping[str, int] = field(default_factory=dict[str, int])
    """Requests that each took, in list order."""
    opened: Mapping[str, int] = field(default_factory=dict[str, int])
    failed: Mapping[str, int] = field(default_factory=dict[str, int])
    """Connections to groups."""
    refused: Mapping[str, int] = field(default_factory=dict[str, int])
    """Requests by reason."""

    def __add__(self, other: Told) -> Told:
        return Told(
            _sum(self.counts, other.counts),
            _sum(self.rules, other.rules),
            _sum(self.opened, other.opened),
            _sum(self.failed, other.failed),
            _sum(self.refused, other.refused),
        )


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in (*one, *other)}


GroupName = tuple[str, str]
"""A content service, and a group of it."""


@dataclass(frozen=True, slots=True)
class Report:
    """What an agent tells of itself."""

    generation: int
    uptime_s: float
    connections: int
    """In its hands."""
    waiting: int
    """Requests that are not complete."""
    memory: int
    draining: bool
    services: Mapping[str, Told]
    learned: Mapping[GroupName, Learned] = field(default_factory=dict[GroupName, Learned])
    """Of its services' groups, by itself."""


def report(status: Any) -> Report:
    """From the message."""
    return Report(
        generation=status.generation,
        uptime_s=status.uptime_ms / 1000,
        connections=status.connections,
        waiting=status.waiting,
        memory=status.memory,
        draining=status.draining,
        services={one.name: _told(one) for one in status.services},
        learned={
            (one.name, group.name): _learned(group.ability)
            for one in status.services
            for group in one.groups
            if group.HasField("ability")
        },
    )


def _learned(ability: Any) -> Learned:
    shown = {name: getattr(ability, name) for name in NAMES if ability.HasField(name)}
    return Learned(frozenset(ability.servers), Ability(**shown))


def shared(learned: Mapping[GroupName, Learned]) -> Any:
    """The message that hands an agent what the other agents have learned."""
    groups = [
        make(
            "GroupAbility",
            service=service,
            group=group,
            ability=make(
                "Ability",
                servers=sorted(one.servers),
                **{name: value for name in NAMES if (value := getattr(one.ability, name)) is not None},
            ),
        )
        for (service, group), one in sorted(learned.items(), key=lambda item: item[0])
    ]
    return make("SharedAbilities", groups=groups)


def _told(one: Any) -> Told:
    return Told(
        counts={name: getattr(one, name) for name in COUNTS},
        rules={rule.name: rule.hits for rule in one.rules},
        opened={group.name: group.opened for group in one.groups},
        failed={group.name: group.failed for group in one.groups},
        refused=dict(one.refused),
    )
