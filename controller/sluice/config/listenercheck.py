"""Checks that no two programs on one machine listen on the same address."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Config
from .yamllines import Finding, Path

_EVERYWHERE = ("0.0.0.0", "[::]")
_LOOPBACK = ("127.", "[::1]", "localhost")


def findings(config: Config) -> Iterator[Finding]:
    """Yield a finding for every listener whose address an earlier listener has. The order is: switch, controller,
    agents."""
    listeners: list[tuple[str, str]] = []
    for path, name, address in _listeners(config):
        for earlier, earlier_address in listeners:
            if _collide(address, earlier_address):
                yield Finding(
                    path, f"{address} is {earlier}'s ({earlier_address}) already", f"give {name} a port of its own"
                )
                break
        listeners.append((name, address))


def _listeners(config: Config) -> Iterator[tuple[Path, str, str]]:
    """Yield each listener's path in the file, its name, and HOST:PORT. An agent of several services is yielded once."""
    yield ("switch", "address"), "the switch", config.switch.address
    if config.switch.thrift is not None:
        yield ("switch", "thrift"), "the switch's Thrift server", config.switch.thrift
    if config.metrics is not None:
        yield ("metrics", "address"), "the metrics endpoint", config.metrics.address
    if config.page is not None:
        yield ("page", "address"), "the page", config.page.address
    controls: set[str] = set()
    for index, service in enumerate(config.services):
        for number, agent in enumerate(service.content.agents if service.content else ()):
            if not agent.control.startswith("unix:") and agent.control not in controls:
                controls.add(agent.control)
                path: Path = ("services", index, "content", "agents", number, "control")
                yield path, f"agent {agent.name}", agent.control


def _collide(first: str, second: str) -> bool:
    """Return whether one program that listens on ``first`` prevents another from listening on ``second`` (HOST:PORT).

    The addresses collide if their ports are equal and either the hosts are equal, or one host is a wildcard and the
    other one is certainly an address of this machine.
    """
    (host, _, port), (other_host, _, other_port) = first.rpartition(":"), second.rpartition(":")
    if port != other_port:
        return False
    return host == other_host or any(
        wildcard in _EVERYWHERE and (specific in _EVERYWHERE or specific.startswith(_LOOPBACK))
        for wildcard, specific in ((host, other_host), (other_host, host))
    )
