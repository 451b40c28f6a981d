"""Tests of configurations with `resources` of services: accepted ones, and the error messages about others."""

from __future__ import annotations

import pytest
from configs import web
from content import content
from sluice.config.load import ConfigError, parse
from sluice.config.types import in_bytes
from sluice.features.resources.view import managed_of
from sluice.resources.need import Needs

SHARES = "{send: {budget: 256 KiB}, receive: {budget: 1MB, size: 65536}, idle: {limit: 1000}}"


def text(resources: str, server: str = "") -> str:
    """Return a configuration with these `resources` of the service; `server` is more text for its first server."""
    with_resources = web().replace("  servers:", f"  resources: {resources}\n  servers:")
    return with_resources.replace("10.0.2.2, port: 80", f"10.0.2.2, port: 80{server}")


def test_off_unless_asked_for() -> None:
    assert parse(web()).services[0].resources is None


def test_what_servers_have() -> None:
    service = parse(text(SHARES, ", resources: {send: 2MiB}")).services[0]
    assert service.resources is not None
    first, second = (managed_of(service.resources, server) for server in service.servers)
    assert first.send and second.send and second.receive
    assert (first.send.size, second.send.size, second.receive.fixed) == (2 << 20, 256 << 10, 65536.0)
    assert second.send.needs is Needs.PRODUCTION
    assert service.resources.idle and service.resources.idle.threshold == 0.8


@pytest.mark.parametrize(
    ("size", "octets"), [(7, 7), ("16KiB", 16384), ("2 MiB", 2 << 20), ("3kB", 3000), ("4 KB", 4000), ("5MB", 5000000)]
)
def test_sizes(size: str | int, octets: int) -> None:
    assert in_bytes(size) == octets


@pytest.mark.parametrize(
    ("resources", "server", "says"),
    [
        ("", "", r":12: services\[0\]\.resources: has no keys below it; write \{\} after the colon"),
        ("{}", "", r":12: services\[0\]\.resources: manages nothing; give one of send, receive and idle$"),
        ("{send: {}}", "", r"resources\.send\.budget: is required but not given; add 'budget'$"),
        ("{send: {budget: 1}}", "", r"send\.budget: 1 bytes are less than a single connection starts with; give"),
        ("{send: {budget: 64K}}", "", r"send\.budget: not a size \(got '64K'\); write digits .* such as 16KiB$"),
        ("{send: {budget: 1MB, sharing: fair}}", "", r"sharing: must be 'sabt', 'abt', 'equal' or 'fixed' \(got 'fair"),
        ("{send: {budget: 1MB, sharing: fixed}}", "", r"send\.sharing: fixed shares have no size; add size, such as"),
        (
            "{send: {budget: 1MB, size: 64KiB}}",
            "",
            r"send\.size: sabt computes its own sizes; leave it out, or write shar",
        ),
        (
            "{send: {budget: 1MB, needs: all}}",
            "",
            r"send\.needs: must be 'paper', 'production' or 'present' \(got 'all'\)$",
        ),
        (
            "{receive: {budget: 1MB, needs: paper}}",
            "",
            r"receive\.needs: unknown key; known keys: budget, size",
        ),
        (
            "{idle: {}}",
            "",
            r"resources\.idle: does not state how many connections .*; give limit, or write learned: true$",
        ),
        ("{idle: {limit: 0}}", "", r"idle\.limit: must be greater than or equal to 1 \(got 0\)$"),
        ("{idle: {limit: 9, treshold: 0.5}}", "", r"idle\.treshold: unknown key; did you mean 'threshold'\?$"),
        (
            "{idle: {limit: 9}, sampling: 2}",
            "",
            r"resources\.sampling: nothing is measured; leave it out, or give send",
        ),
        (
            "{idle: {limit: 9}}",
            ", resources: {send: 1MB}",
            r":14: .*servers\[0\]\.resources\.send: the service has no resources\.send; give it send, or leave",
        ),
        (
            "{send: {budget: 1MB}}",
            ", resources: {limit: 9}",
            r"servers\[0\]\.resources\.limit: the service has no resources\.idle; give it idle, or leave limit",
        ),
    ],
)
def test_complaints_say_what_to_do(resources: str, server: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse(text(resources, server))


def test_content_services_and_their_groups_have_none() -> None:
    block = "  resources: {idle: {limit: 9}}\n"
    for name, says in (
        ("shop", r"resources: shop is a content service, whose connections agents may move .*; leave `resources` out"),
        ("all", r"resources: all is a group of shop, whose connections agents may move between servers"),
    ):
        with pytest.raises(ConfigError, match=says):
            parse(content().replace(f"- name: {name}\n", f"- name: {name}\n{block}"))
