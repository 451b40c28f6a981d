"""Checks of a configuration that concern several fields. They run offline, without a request to a switch."""

from __future__ import annotations

from collections.abc import Iterator

from sluice.addresses import BROADCAST, Address
from sluice.balance import weight_sum
from sluice.balance.options import LARGEST
from sluice.names import DESTINATIONS, PREFIXES, SELECTOR_SIZE, SERVERS, SERVICES
from sluice.news import MODES

from . import contentcheck, listenercheck, resourcescheck
from .model import Config
from .yamllines import Finding, Path

INTERVAL_MIN_S = 0.01
"""The shortest interval between two decisions, in seconds: the controller cannot read a switch more often."""
MOST_INTERVALS = 10_000
"""The largest number of intervals in a window: the counts of every interval are stored for each server."""
_FOR_HOT_SPOTS = 2
"""Destination numbers reserved for hot spots that the configuration does not list: one for the hot spot that is
limited, and one for another that overtakes it."""


def findings(config: Config) -> list[Finding]:
    """Return every semantic problem of a configuration whose single fields are valid."""
    return [
        *_interfaces(config),
        *_routes(config),
        *_services(config),
        *_servers(config),
        *contentcheck.findings(config),
        *resourcescheck.findings(config),
        *_balance(config),
        *_news(config),
        *_news_times(config),
        *_news_limits(config),
        *_sizes(config),
        *listenercheck.findings(config),
    ]


def _interfaces(config: Config) -> Iterator[Finding]:
    ports: dict[int, int] = {}
    for index, interface in enumerate(config.interfaces):
        path: Path = ("interfaces", index)
        if interface.port in ports:
            earlier_index = ports[interface.port]
            yield Finding(
                (*path, "port"),
                f"port {interface.port} is already interfaces[{earlier_index}]",
                "give every port once",
            )
        ports.setdefault(interface.port, index)
        network = interface.address.network
        if (kind := _unusable(interface.address.ip)) is not None:
            yield Finding(
                (*path, "address"), f"{interface.address.ip} is {kind}", "give the switch an address of its own"
            )
        if interface.address.ip in (network.network_address, network.broadcast_address) and (network.prefixlen < 31):
            yield Finding(
                (*path, "address"),
                f"{interface.address.ip} is the network or broadcast address of {network}",
                f"take one between, such as {network.network_address + 1}/{network.prefixlen}",
            )
        for number, earlier in enumerate(config.interfaces[:index]):
            other_network = earlier.address.network
            if network != other_network and network.overlaps(other_network):
                yield Finding(
                    (*path, "address"),
                    f"{network} overlaps interfaces[{number}] ({other_network})",
                    "use the same prefix for ports of one subnet, or separate subnets",
                )
            elif network == other_network and interface.address.ip != earlier.address.ip:
                yield Finding(
                    (*path, "address"),
                    f"{interface.address.ip} differs from interfaces[{number}] ({earlier.address.ip}) in one subnet",
                    "ports of one subnet share the router's address",
                )


def _connected(config: Config, address: object) -> bool:
    return any(address in interface.address.network for interface in config.interfaces)


def _routes(config: Config) -> Iterator[Finding]:
    indices: dict[object, int] = {}
    vips = {service.address: service.name for service in config.services}
    for index, route in enumerate(config.routes):
        path: Path = ("routes", index)
        if route.to in indices:
            yield Finding((*path, "to"), f"{route.to} is already routes[{indices[route.to]}]", "keep one of the two")
        indices.setdefault(route.to, index)
        if not _connected(config, route.via):
            yield Finding(
                (*path, "via"),
                f"{route.via} is in no interface's subnet",
                "a next hop must be a neighbour; add the interface or correct the address",
            )
        elif any(route.via == interface.address.ip for interface in config.interfaces):
            yield Finding((*path, "via"), f"{route.via} is the switch itself", "name the router at the other end")
        elif (owner := vips.get(route.via)) is not None:
            yield Finding(
                (*path, "via"), f"{route.via} is the address of service {owner}", "name the router at the other end"
            )
        else:
            yield from _hosts(config, (*path, "via"), route.via)


def _services(config: Config) -> Iterator[Finding]:
    names: dict[str, int] = {}
    keys: dict[object, int] = {}
    for index, service in enumerate(config.services):
        path: Path = ("services", index)
        if service.name in names:
            yield Finding((*path, "name"), f"{service.name!r} is already services[{names[service.name]}]", "rename one")
        names.setdefault(service.name, index)
        key = (service.address, service.protocol, service.port)
        if key in keys:
            yield Finding(
                (*path, "port"),
                f"{service.address}:{service.port}/{service.protocol} is already services[{keys[key]}]",
                "a service needs an address and port of its own",
            )
        keys.setdefault(key, index)
        if any(service.address == interface.address.ip for interface in config.interfaces):
            yield Finding(
                (*path, "address"),
                f"{service.address} is an interface's address",
                "give the service an address of its own",
            )
        yield from _hosts(config, (*path, "address"), service.address)
        if service.looks is not None and (service.second_look is False or service.content is not None):
            why = "the service has `second_look: false`" if service.content is None else "agents take no second look"
            yield Finding((*path, "looks"), f"{service.looks} looks, and {why}", "take `looks` out")
        if not service.members:
            yield Finding((*path, "servers"), "is required but not given", "add 'servers', or 'content'")
        elif service.content is not None and service.servers:
            yield Finding(
                (*path, "servers"),
                "a content service has agents, and no servers of its own",
                "name services in `to` that have them",
            )
        elif all(server.drain for server in service.members):
            members_key = ("servers",) if service.content is None else ("content", "agents")
            yield Finding((*path, *members_key), "every server is draining", "set drain: false on at least one server")


def _servers(config: Config) -> Iterator[Finding]:
    owner: dict[object, tuple[str, str | None]] = {}
    contents = config.contents
    vips = {service.address: service.name for service in config.services}
    for number, service in enumerate(config.services):
        names: set[str] = set()
        content = contents.get(service.name)
        members_key: Path = ("servers",) if service.content is None else ("content", "agents")
        for index, server in enumerate(service.members):
            path: Path = ("services", number, *members_key, index)
            if server.name in names:
                yield Finding(
                    (*path, "name"),
                    f"{server.name!r} is already a server of {service.name}",
                    "give the servers of a service different names",
                )
            names.add(server.name)
            key = (server.address, service.protocol, server.port)
            shared_by = content.name if content else None
            if key in owner and (shared_by is None or owner[key][1] != shared_by):
                yield Finding(
                    (*path, "port") if service.content is None else path,
                    f"{server.address}:{server.port} already belongs to {owner[key][0]}",
                    "a server's port belongs to one service, or to groups of one content service; use another port "
                    "for the second",
                )
            owner.setdefault(key, (f"{service.name}/{server.name}", shared_by))
            if server.address in vips:
                yield Finding(
                    (*path, "address"),
                    f"{server.address} is the address of service {vips[server.address]}",
                    "a server needs an address of its own",
                )
            elif any(server.address == interface.address.ip for interface in config.interfaces):
                yield Finding((*path, "address"), f"{server.address} is the switch itself", "correct the address")
            elif not _connected(config, server.address) and not any(
                server.address in route.to for route in config.routes
            ):
                yield Finding(
                    (*path, "address"),
                    f"{server.address} is in no interface's subnet and no route leads to it",
                    "add the interface or a route",
                )
            else:
                yield from _hosts(config, (*path, "address"), server.address)


def _balance(config: Config) -> Iterator[Finding]:
    for index, service in enumerate(config.services):
        options = service.balance
        path: Path = ("services", index, "balance")
        if options.period_s < INTERVAL_MIN_S:
            yield Finding(
                (*path, "period_s"),
                f"{options.period_s:g} s is faster than a switch is read",
                f"give at least {INTERVAL_MIN_S:g}",
            )
            continue
        yield from _window(path, "period_s", options.period_s, options.window_s, tolerance=1e-9)


def _window(path: Path, period: str, period_s: float, window_s: float, tolerance: float) -> Iterator[Finding]:
    intervals = window_s / period_s
    if window_s > MOST_INTERVALS * period_s:
        yield Finding(
            (*path, "window_s"),
            f"{window_s:g} s are more than {MOST_INTERVALS} periods of {period_s:g} s",
            f"give at most {MOST_INTERVALS * period_s:g}",
        )
    elif abs(intervals - round(intervals)) > tolerance or round(intervals) < 1:
        yield Finding(
            (*path, "window_s"),
            f"{window_s:g} is not a multiple of {period} ({period_s:g})",
            f"for example {max(1, round(intervals)) * period_s:g}",
        )


def _news(config: Config) -> Iterator[Finding]:
    if config.news is None:
        return
    owners: dict[object, str] = {service.address: f"service {service.name}" for service in config.services}
    owners |= {interface.address.ip: "an interface" for interface in config.interfaces}
    for index, host in enumerate(config.news.hosts):
        if host.address in owners:
            yield Finding(
                ("news", "hosts", index, "address"),
                f"{host.address} is already the address of {owners[host.address]}",
                "leave it out: services are watched anyway, and everything else is named once",
            )
        owners.setdefault(host.address, f"hosts[{index}]")
        yield from _hosts(config, ("news", "hosts", index, "address"), host.address)


def _hosts(config: Config, path: Path, address: Address) -> Iterator[Finding]:
    if (problem := _unusable(address) or _reserved_in_subnet(config, address)) is not None:
        yield Finding(path, f"{address} is {problem}", "name a host by its own address")


def _unusable(address: Address) -> str | None:
    """Return why no host in any network may have an address; None if a host may have it."""
    if address.is_multicast:
        return "a multicast address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_unspecified or address.is_reserved:
        return "the broadcast address" if address == BROADCAST else "no host's address"
    return None


def _reserved_in_subnet(config: Config, address: Address) -> str | None:
    for interface in config.interfaces:
        network = interface.address.network
        if network.prefixlen < 31 and address in (network.network_address, network.broadcast_address):
            return f"the network or broadcast address of {network}"
    return None


def _news_times(config: Config) -> Iterator[Finding]:
    news = config.news
    if news is None:
        return
    extra = news.production
    production: Path = ("news", "production")
    for path, seconds in (
        (("news", "period_s"), news.period_s),
        ((*production, "detection_s"), extra.detection_s),
        (("news", "poll_s"), news.poll_s),
    ):
        if seconds < INTERVAL_MIN_S:
            yield Finding(path, f"{seconds:g} s is faster than a switch is read", f"give at least {INTERVAL_MIN_S:g}")
    if extra.detection_s >= INTERVAL_MIN_S:
        tolerance = 1e-9 * extra.window_s / extra.detection_s
        yield from _window(production, "detection_s", extra.detection_s, extra.window_s, tolerance)


def _news_limits(config: Config) -> Iterator[Finding]:
    news = config.news
    if news is None:
        return
    if MODES[news.mode].limits and news.bucket_s > news.interval_s:
        yield Finding(
            ("news", "bucket_s"),
            f"{news.bucket_s:g} s of the limit at once are more than an interval ({news.interval_s:g} s) has",
            f"give at most {news.interval_s:g}",
        )
    elif news.bucket_s * news.limit_max > LARGEST:
        yield Finding(
            ("news", "bucket_s"),
            f"{news.bucket_s:g} s of limit_max ({news.limit_max:g}) are more at once than the switch's meters take",
            f"give at most {LARGEST / news.limit_max:g}",
        )


def _sizes(config: Config) -> Iterator[Finding]:
    servers = sum(len(service.members) for service in config.services)
    prefixes = {interface.address.network for interface in config.interfaces} | {route.to for route in config.routes}
    for key, number, what, most in (
        ("services", servers, "servers", SERVERS - 1),
        ("services", len(config.services), "services", SERVICES - 1),
        ("routes", len(prefixes), "prefixes with the interfaces'", PREFIXES),
    ):
        if number > most:
            text = f"{number} {what}; the program holds {most}"
            yield Finding((key,), text, "use fewer, or build the program with a larger table")
    if config.news is not None:
        watched = {service.address for service in config.services} | {host.address for host in config.news.hosts}
        room = DESTINATIONS - 1 - _FOR_HOT_SPOTS
        if len(watched) > room:
            yield Finding(
                ("news", "hosts"),
                f"{len(watched)} destinations with the services'; the program watches {room}, and hot spots besides",
                "use fewer services or hosts: a crowd at a host that is not listed is found and limited all the same",
            )
    weights = sum(weight_sum(len(service.members)) for service in config.services)
    if weights > SELECTOR_SIZE:
        yield Finding(
            ("services",),
            f"{len(config.services)} services need {weights} places in the program's selectors, which hold "
            f"{SELECTOR_SIZE}: a service takes {weight_sum(1)}, one of many servers more",
            f"use fewer services or servers ({SELECTOR_SIZE // weight_sum(1)} small services fit), or build the "
            "program with larger selectors",
        )
