"""Texts of configuration files for tests."""

from __future__ import annotations

WEB = """\
switch: {{address: "{address}", device_id: 1, pipeline: "{pipeline}"}}
interfaces:
- {{port: 1, mac: "02:00:00:00:00:01", address: 10.0.1.1/24}}
- {{port: 2, mac: "02:00:00:00:00:02", address: 10.0.2.1/24}}
- {{port: 3, mac: "02:00:00:00:00:03", address: 10.0.3.1/24, vlan: 7}}
routes: [{{to: 0.0.0.0/0, via: 10.0.1.9}}]
services:
- name: web
  address: 10.0.0.100
  port: 80
  balance: {{mode: {mode}, period_s: {period_s}, window_s: {window_s}}}
  servers:
  - {{name: s1, address: 10.0.2.2, port: 80}}
  - {{name: s2, address: 10.0.3.2, port: 80}}
{more}
control: "{control}"
neighbours: {{retry_s: 0.1, refresh_s: 1}}
"""


def web(
    address: str = "127.0.0.1:9559",
    pipeline: str = "",
    *,
    control: str = "/run/sluice.sock",
    mode: str = "paper",
    period_s: float = 0.1,
    window_s: float = 1.0,
    more: str = "",
) -> str:
    """Return the configuration of a service with two servers; `more` is text that follows the list of servers."""
    return WEB.format(
        address=address,
        pipeline=pipeline,
        control=control,
        mode=mode,
        period_s=period_s,
        window_s=window_s,
        more=more,
    )
