"""The configuration of a content-switched service for tests: two agents, and two server groups that share a server."""

from __future__ import annotations

CONTENT = """\
switch: {{address: "{address}", device_id: 1, pipeline: "{pipeline}"}}
interfaces:
- {{port: 1, mac: "02:00:00:00:00:01", address: 10.0.1.1/24}}
- {{port: 2, mac: "02:00:00:00:00:02", address: 10.0.2.1/24}}
- {{port: 3, mac: "02:00:00:00:00:03", address: 10.0.3.1/24}}
- {{port: 4, mac: "02:00:00:00:00:04", address: 10.0.4.1/24}}
- {{port: 5, mac: "02:00:00:00:00:05", address: 10.0.4.1/24}}
services:
- name: shop
  address: 10.0.0.100
  port: 80
  balance: {{period_s: 0.1, window_s: 1.0}}
  content:
    protocol: http
    limits: {{head: 16KiB, body: 65536, wait_s: 2}}
    agents:
    - {{name: a1, address: 10.0.3.31, control: "{control_1}"}}
    - {{name: a2, address: 10.0.4.32, control: "{control_2}", capacity: 3}}
    default: {{to: all}}
    rules:
    - {{name: big, match: {{xml: {{purchase.total: "> 5000"}}}}, to: fast, sticky: none}}
    - {{name: perl, match: {{path: {{regex: "pl$"}}}}, goto: admin, else: {{to: all}}}}
    - {{name: admin, match: [{{path: {{prefix: /admin}}}}, {{method: DELETE}}], refuse: 403}}
- name: all
  address: 10.9.0.1
  port: 80
  balance: {{period_s: 0.1, window_s: 1.0}}
  servers:
  - {{name: x1, address: 10.0.2.11, port: 8000}}
  - {{name: x2, address: 10.0.2.12, port: 8000}}
- name: fast
  address: 10.9.0.2
  port: 8080
  balance: {{period_s: 0.1, window_s: 1.0}}
  servers:
  - {{name: x2, address: 10.0.2.12, port: 8000}}
  - {{name: x3, address: 10.0.2.13, port: 8000}}
- name: plain
  address: 10.0.0.101
  port: 80
  balance: {{period_s: 0.1, window_s: 1.0}}
  servers:
  - {{name: s1, address: 10.0.2.21, port: 80}}
  - {{name: s2, address: 10.0.2.22, port: 80}}
control: "{control}"
neighbours: {{retry_s: 0.1, refresh_s: 1}}
"""


def content(
    address: str = "127.0.0.1:9559",
    pipeline: str = "",
    *,
    control: str = "/run/sluice.sock",
    agents: tuple[str, str] = ("unix:///run/a1.sock", "127.0.0.1:9471"),
) -> str:
    """Return a configuration with a plain service and the content service `shop`, with groups `all` and `fast`."""
    control_1, control_2 = agents
    return CONTENT.format(address=address, pipeline=pipeline, control=control, control_1=control_1, control_2=control_2)
