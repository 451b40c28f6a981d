"""Addresses that programs of one machine listen on: each has its own."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Config
from .yamlplace import Finding, Path

_EVERYWHERE = ("0.0.0.0", "[::]")
_LOOPBACK = ("127.", "[::1]", "localhost")


def findings(config: Config) -> Iterator[Finding]:
    """Every address that two of them would listen on, where the later one is the controller's own or an agent's."""
    taken: list[tuple[str, str]] = []
    for path, what, address in _listeners(config):
        for other, theirs in taken:
            if _meet(address, theirs):
                yield Finding(path, f"{address} is {other}'s ({theirs}) already", f"give {what} a port of its own")
                break
        taken.append((what, address))


def _listeners(config: Config) -> Iterator[tuple[Path, str, str]]:
    """Place, name and HOST:PORT of each. An agent of several services is one."""
    yield ("switch", "address"), "the switch", config.switch.address
    if config.switch.thrift is not None:
        yield ("switch", "thrift"), "the switch's Thrift server", config.switch.thrift
    if config.metrics is not None:
        yield ("metrics", "address"), "the metrics endpoint", config.metrics.address
    if config.page is not None:
        yield ("page", "address"), "the page", config.page.address
    seen: set[str] = set()
    for index, service in enumerate(config.services):
        for number, agent in enumerate(service.content.agents if service.content else ()):
            if not agent.control.startswith("unix:") and agent.control not in seen:
                seen.add(agent.control)
                path: Path = ("services", index, "content", "agents", number, "control")
                yield path, f"agent {agent.name}", agent.control


def _meet(one: str, other: str) -> bool:
    """Whether two programs cannot have them both: the same, or every address of this machine and one that is its own
    for certain."""
    (host, _, port), (their_host, _, their_port) = one.rpartition(":"), other.rpartition(":")
    if port != their_port:
        return False
    return host == their_host or any(
        every in _EVERYWHERE and (single in _EVERYWHERE or single.startswith(_LOOPBACK))
        for every, single in ((host, their_host), (their_host, host))
    )
