"""Tests of the report of `sluice check` on programs of one host that would listen on the same port."""

from __future__ import annotations

import pytest
from configs import web
from content import content
from sluice.config.load import ConfigError, parse

METRICS, PAGE = 'metrics: {{address: "{}"}}\n', 'page: {{address: "{}"}}\n'


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            METRICS.format("127.0.0.1:9559"),
            r"metrics\.address: 127\.0\.0\.1:9559 is the switch's \(127",
        ),
        (
            METRICS.format("0.0.0.0:9559"),
            r"metrics\.address: 0\.0\.0\.0:9559 is the switch's .*; give the metrics",
        ),
        (METRICS.format("[::]:9559"), r"metrics\.address: \[::\]:9559 is the switch's"),
        (
            METRICS.format("127.0.0.1:8080") + PAGE.format("127.0.0.1:8080"),
            r"page\.address: 127\.0\.0\.1:8080 is the metrics endpoint's .*; give the page a port of its own",
        ),
    ],
)
def test_one_port_for_two(more: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse(web() + more)


def test_an_agent_on_the_metrics_port() -> None:
    with pytest.raises(ConfigError, match=r"agents\[1\]\.control: 127\.0\.0\.1:9471 is the metrics endpoint's"):
        parse(content() + METRICS.format("127.0.0.1:9471"))


@pytest.mark.parametrize("address", ["127.0.0.1:9464", "127.0.0.2:9559", "192.0.2.7:9559"])
def test_other_ports_and_other_addresses(address: str) -> None:
    parse(web() + METRICS.format(address))


def test_too_many_services_are_refused_with_the_limit() -> None:
    service = (
        "- {{name: w{0}, address: 10.1.{1}.{2}, port: 80, servers: [{{name: s{0}, address: 10.0.2.2, port: {3}}}]}}\n"
    )
    services = "".join(service.format(n, n // 200, 1 + n % 200, 1000 + n) for n in range(400))
    with pytest.raises(ConfigError, match=r"services: 401 services need 102656 .*65536.* \(256 small"):
        parse(web(more=services))
