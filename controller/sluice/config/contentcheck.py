"""What content services must agree on with the rest of a configuration: groups, agents, and which rule names which.

The meaning of a ``match`` is the rule engine's.
"""

from __future__ import annotations

from collections.abc import Iterator

from sluice.names import AGENTS

from .content import REFUSE, ContentConfig
from .model import Config, ServerConfig, ServiceConfig
from .yamlplace import Finding, Path


def findings(config: Config) -> Iterator[Finding]:
    """Every problem of content services."""
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
    services, fronts = {one.name: one for one in config.services}, config.contents
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
                "such connections pass the rules by, and there are rules that refuse",
                f"write {REFUSE}, or leave the refusing rules to a service of their own",
            )
    for place, name in places:
        group = services.get(name)
        if group is None:
            known = ", ".join(one.name for one in config.services if one.content is None)
            yield Finding(place, f"no service {name!r}", f"there is: {known or 'none; add one'}")
        elif group.content is not None:
            yield Finding(place, f"{name} is a content service", "name one with servers")
        elif (front := fronts[name]) is not service:
            yield Finding(
                place,
                f"{name} is a group of {front.name} already",
                "give each content service groups of its own; their servers listen on other ports",
            )


def _agents(config: Config, service: ServiceConfig, content: ContentConfig, path: Path) -> Iterator[Finding]:
    controls: dict[str, str] = {}
    there: dict[object, int] = {}
    for number, agent in enumerate(content.agents):
        place: Path = (*path, "agents", number)
        if agent.control in controls:
            yield Finding(
                (*place, "control"),
                f"{agent.control} is {controls[agent.control]}'s already",
                "each agent listens at a place of its own",
            )
        controls.setdefault(agent.control, agent.name)
        for other in config.services:
            for theirs in other.content.agents if other.content else ():
                if other is not service and (theirs.address == agent.address) != (theirs.control == agent.control):
                    yield Finding(
                        place,
                        f"{agent.name} and {other.name}/{theirs.name} share one of address and control",
                        "an agent of two services has the same of both",
                    )
                elif other is not service and theirs.address == agent.address and other.address == service.address:
                    yield Finding(
                        place,
                        f"{agent.name} serves {other.name} at {service.address} as well",
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
        there[network] = there.get(network, 0) + 1
        ports = sum(interface.address.network == network for interface in config.interfaces)
        if there[network] > ports:
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
        yield _passes((*path, "default", "sticky"))
    for number, rule in enumerate(content.rules):
        place: Path = (*path, "rules", number)
        if names[rule.name] != number:
            yield Finding((*place, "name"), f"{rule.name!r} is already rules[{names[rule.name]}]", "rename one")
        for key, outcome in rule.outcomes:
            at: Path = (*place, key) if key else place
            given = [name for name in ("to", "goto", "refuse") if getattr(outcome, name) is not None]
            if len(given) != 1:
                problem = f"has {' and '.join(given)}" if given else "says not what is to be done"
                yield Finding(at, problem, "give one of to, goto and refuse")
            if outcome.sticky is not None and outcome.to is None:
                yield Finding((*at, "sticky"), "nothing sticks without a group", "leave it out, or give to")
            elif outcome.sticky == "client" and refusing:
                yield _passes((*at, "sticky"))
            if outcome.goto is not None and names.get(outcome.goto, -1) <= number:
                known = ", ".join(later.name for later in content.rules[number + 1 :])
                yield Finding(
                    (*at, "goto"),
                    f"no later rule {outcome.goto!r}",
                    f"behind it there is: {known}" if known else "it is the last rule",
                )


def _passes(path: Path) -> Finding:
    return Finding(
        path,
        "later connections of such a client pass the rules by, and there are rules that refuse",
        "write connection, or leave the refusing rules to a service of their own",
    )


def _shared(config: Config) -> Iterator[Finding]:
    """A server of several groups is one server."""
    seen: dict[object, tuple[str, ServerConfig]] = {}
    for index, service in enumerate(config.services):
        if service.name not in config.contents:
            continue
        for number, server in enumerate(service.servers):
            path: Path = ("services", index, "servers", number)
            key = (server.address, service.protocol, server.port)
            group, same = seen.setdefault(key, (service.name, server))
            if same.name != server.name:
                yield Finding(
                    (*path, "name"), f"{server.address}:{server.port} is {group}/{same.name} already", "name it alike"
                )
            for field in ("drain", "max_connections"):
                if getattr(same, field) != getattr(server, field):
                    yield Finding(
                        (*path, field), f"differs from {group}/{same.name}, the same server", "set both alike"
                    )
