"""Checks of content services against the rest of a configuration: groups, agents, and references between rules.

The rule engine, not this module, checks the contents of a ``match``.
"""

from __future__ import annotations

from collections.abc import Iterator

from sluice.names import AGENTS

from .content import REFUSE, ContentConfig
from .model import Config, ServerConfig, ServiceConfig
from .yamllines import Finding, Path


def findings(config: Config) -> Iterator[Finding]:
    """Yield every problem of content services."""
    for index, service in enumerate(config.services):
        if service.content is not None:
            path: Path = ("services", index, "content")
            yield from _groups(config, service, service.content, path)
            yield from _agents(config, service, service.content, path)
            yield from _rules(service.content, path)
    yield from _shared(config)
    agents = sum(len(service.content.agents) for service in config.services if service.content)
    if agents > AGENTS:
        yield Finding(
            ("services",),
            f"{agents} agents; the program holds {AGENTS}",
            "use fewer, or build the program with a larger table",
        )


def _groups(config: Config, service: ServiceConfig, content: ContentConfig, path: Path) -> Iterator[Finding]:
    services, contents = {item.name: item for item in config.services}, config.contents
    places: list[tuple[Path, str]] = [((*path, "default", "to"), content.default.to)]
    for number, rule in enumerate(content.rules):
        for key, outcome in rule.outcomes:
            if outcome.to is not None:
                places.append(((*path, "rules", number, *([key] if key else ()), "to"), outcome.to))
    if content.unread_group is not None:
        places.append(((*path, "without_agents"), content.unread_group))
        if content.refuses:
            yield Finding(
                (*path, "without_agents"),
                "such connections bypass the rules, and there are rules that refuse",
                f"write {REFUSE}, or leave the refusing rules to a service of their own",
            )
    for place, name in places:
        group = services.get(name)
        if group is None:
            candidates = ", ".join(item.name for item in config.services if item.content is None)
            yield Finding(place, f"no service {name!r}", f"there is: {candidates or 'none; add one'}")
        elif group.content is not None:
            yield Finding(place, f"{name} is a content service", "name one with servers")
        elif (content_service := contents[name]) is not service:
            yield Finding(
                place,
                f"{name} is a group of {content_service.name} already",
                "give each content service groups of its own; their servers listen on other ports",
            )


def _agents(config: Config, service: ServiceConfig, content: ContentConfig, path: Path) -> Iterator[Finding]:
    controls: dict[str, str] = {}
    agents_by_network: dict[object, int] = {}
    for number, agent in enumerate(content.agents):
        place: Path = (*path, "agents", number)
        if agent.control in controls:
            yield Finding(
                (*place, "control"),
                f"{agent.control} is {controls[agent.control]}'s already",
                "each agent listens at a place of its own",
            )
        controls.setdefault(agent.control, agent.name)
        for other_service in config.services:
            for other_agent in other_service.content.agents if other_service.content else ():
                if other_service is not service and (other_agent.address == agent.address) != (
                    other_agent.control == agent.control
                ):
                    yield Finding(
                        place,
                        f"{agent.name} and {other_service.name}/{other_agent.name} share one of address and control",
                        "an agent of two services has the same of both",
                    )
                elif (
                    other_service is not service
                    and other_agent.address == agent.address
                    and other_service.address == service.address
                ):
                    yield Finding(
                        place,
                        f"{agent.name} serves {other_service.name} at {service.address} as well",
                        "an agent's services have addresses of their own",
                    )
        network = next((i.address.network for i in config.interfaces if agent.address in i.address.network), None)
        if network is None:
            yield Finding(
                (*place, "address"),
                f"{agent.address} is in no interface's subnet",
                "an agent must be a neighbour of the switch, on a port of its own",
            )
            continue
        agents_by_network[network] = agents_by_network.get(network, 0) + 1
        ports = sum(interface.address.network == network for interface in config.interfaces)
        if agents_by_network[network] > ports:
            yield Finding(
                (*place, "address"),
                f"{network} has {ports} port{'s' if ports > 1 else ''}, and an agent of {service.name} on each already",
                "give every agent a port of its own",
            )


def _rules(content: ContentConfig, path: Path) -> Iterator[Finding]:
    names = {rule.name: number for number, rule in reversed(list(enumerate(content.rules)))}
    refusing = content.refuses
    if content.guess and refusing:
        yield Finding(
            (*path, "guess"),
            "a guessed connection reaches its server before rules have read a request, and there are rules that refuse",
            "leave it out, or leave the refusing rules to a service of their own",
        )
    if content.default.sticky == "client" and refusing:
        yield _bypasses((*path, "default", "sticky"))
    for number, rule in enumerate(content.rules):
        place: Path = (*path, "rules", number)
        if names[rule.name] != number:
            yield Finding((*place, "name"), f"{rule.name!r} is already rules[{names[rule.name]}]", "rename one")
        for key, outcome in rule.outcomes:
            outcome_path: Path = (*place, key) if key else place
            outcomes = [name for name in ("to", "goto", "refuse") if getattr(outcome, name) is not None]
            if len(outcomes) != 1:
                problem = f"has {' and '.join(outcomes)}" if outcomes else "states no outcome"
                yield Finding(outcome_path, problem, "give one of to, goto and refuse")
            if outcome.sticky is not None and outcome.to is None:
                yield Finding(
                    (*outcome_path, "sticky"), "`sticky` has no effect without a group", "leave it out, or give to"
                )
            elif outcome.sticky == "client" and refusing:
                yield _bypasses((*outcome_path, "sticky"))
            if outcome.goto is not None and names.get(outcome.goto, -1) <= number:
                later_rules = ", ".join(later.name for later in content.rules[number + 1 :])
                yield Finding(
                    (*outcome_path, "goto"),
                    f"no later rule {outcome.goto!r}",
                    f"later rules are: {later_rules}" if later_rules else "it is the last rule",
                )


def _bypasses(path: Path) -> Finding:
    return Finding(
        path,
        "later connections of such a client bypass the rules, and there are rules that refuse",
        "write connection, or leave the refusing rules to a service of their own",
    )


def _shared(config: Config) -> Iterator[Finding]:
    """Check that a server in several groups has the same settings in each."""
    first_uses: dict[object, tuple[str, ServerConfig]] = {}
    for index, service in enumerate(config.services):
        if service.name not in config.contents:
            continue
        for number, server in enumerate(service.servers):
            path: Path = ("services", index, "servers", number)
            key = (server.address, service.protocol, server.port)
            group, first_use = first_uses.setdefault(key, (service.name, server))
            if first_use.name != server.name:
                yield Finding(
                    (*path, "name"),
                    f"{server.address}:{server.port} is {group}/{first_use.name} already",
                    "name it alike",
                )
            for field in ("drain", "max_connections"):
                if getattr(first_use, field) != getattr(server, field):
                    yield Finding(
                        (*path, field), f"differs from {group}/{first_use.name}, the same server", "set both alike"
                    )
