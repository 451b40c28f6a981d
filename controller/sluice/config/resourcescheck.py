"""Checks of ``resources:`` against the rest of a configuration."""

from __future__ import annotations

from collections.abc import Iterator

from sluice.resources.pauses import DEFAULT_AGE_S

from .model import Config, ServerConfig
from .resources import ReceiveConfig, ResourcesConfig, SendConfig
from .types import Size, in_bytes
from .yamllines import Finding, Path

LEAST_BUDGET = 16 << 10
"""The smallest budget, in bytes. It is less than Linux initially assigns to a single connection, so a smaller budget
could not be shared."""


def findings(config: Config) -> Iterator[Finding]:
    """Yield every problem of the servers' resources."""
    groups = config.contents
    for index, service in enumerate(config.services):
        path: Path = ("services", index, "resources")
        if service.resources is not None:
            if service.content is not None or service.name in groups:
                kind = "a content service" if service.content is not None else f"a group of {groups[service.name].name}"
                yield Finding(
                    path,
                    f"{service.name} is {kind}, whose connections agents may move between servers",
                    "leave `resources` out, or give these servers a service without `content`",
                )
                continue
            yield from _service(service.resources, path)
        for number, server in enumerate(service.servers):
            yield from _server(server, service.resources, ("services", index, "servers", number, "resources"))


def warnings(config: Config) -> Iterator[Finding]:
    """Yield settings that are valid but risky."""
    for index, service in enumerate(config.services):
        idle = service.resources and service.resources.idle
        if idle and idle.least_age_s is not None and idle.least_age_s < DEFAULT_AGE_S:
            yield Finding(
                ("services", index, "resources", "idle", "least_age_s"),
                f"a response that pauses for {idle.least_age_s:g} s is cut off, and its client may not notice",
                f"leave it out, and it is learned from the service's own pauses; or give {DEFAULT_AGE_S:g} or more",
            )


def _service(resources: ResourcesConfig, path: Path) -> Iterator[Finding]:
    if (resources.send, resources.receive, resources.idle) == (None, None, None):
        yield Finding(path, "manages nothing", "give one of send, receive and idle")
    for name, share in (("send", resources.send), ("receive", resources.receive)):
        if share is not None:
            yield from _share(share, (*path, name))
    if resources.idle is not None and resources.idle.limit is None and not resources.idle.learned:
        yield Finding(
            (*path, "idle"),
            "does not state how many connections a server can have",
            "give limit, or write learned: true",
        )
    if resources.sampling and resources.send is None:
        yield Finding((*path, "sampling"), "nothing is measured", "leave it out, or give send")


def _share(share: ReceiveConfig, path: Path) -> Iterator[Finding]:
    if isinstance(share, SendConfig):
        if share.sharing == "fixed" and share.size is None:
            yield Finding((*path, "sharing"), "fixed shares have no size", "add size, such as 64KiB")
        if share.sharing != "fixed" and share.size is not None:
            remedy = "leave it out, or write sharing: fixed"
            yield Finding((*path, "size"), f"{share.sharing} computes its own sizes", remedy)
    for name, size in (("budget", share.budget), ("size", share.size)):
        yield from _check_size(size, (*path, name))


def _check_size(size: Size | None, path: Path) -> Iterator[Finding]:
    if size is not None and in_bytes(size) < LEAST_BUDGET:
        yield Finding(
            path,
            f"{in_bytes(size)} bytes are less than a single connection starts with",
            f"give at least {LEAST_BUDGET}",
        )


def _server(server: ServerConfig, resources: ResourcesConfig | None, path: Path) -> Iterator[Finding]:
    own = server.resources
    if own is None:
        return
    for name, value, managed in (
        ("send", own.send, resources and resources.send),
        ("receive", own.receive, resources and resources.receive),
        ("limit", own.limit, resources and resources.idle),
    ):
        if value is not None and not managed:
            block = "idle" if name == "limit" else name
            yield Finding(
                (*path, name), f"the service has no resources.{block}", f"give it {block}, or leave {name} out here"
            )
    yield from _check_size(own.send, (*path, "send"))
    yield from _check_size(own.receive, (*path, "receive"))
