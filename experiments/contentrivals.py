"""Configurations of HAProxy and nginx for content switching by the same rules as the agents. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from topo.plan.network import HostPlan

CHAIN_PORT, MAP_PORT, NGINX_PORT = 80, 81, 80
MAXIMUM = 4096
"""The largest number of simultaneous connections of a proxy."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a rival proxy."""

    prefixes: Sequence[tuple[str, str]]
    """Prefixes of the path, each with its group of servers; the first prefix that matches applies."""
    default: str
    """The group for requests that match no prefix."""
    groups: Mapping[str, Sequence[HostPlan]]
    port: int
    """The TCP port of the servers."""


def map_file(rules: Rules) -> str:
    """Return the content of HAProxy's map file: a line with prefix and group for each rule."""
    return "".join(f"{prefix} {group}\n" for prefix, group in rules.prefixes)


def haproxy_configuration(host: HostPlan, rules: Rules, file: Path) -> str:
    """Return HAProxy's configuration: one thread, HTTP mode.

    One frontend tests the rules one after another; a second frontend looks up the path in the map at `file`.
    """
    chain = "\n".join(f"  use_backend {group} if {{ path_beg {prefix} }}" for prefix, group in rules.prefixes)
    backends = "\n".join(
        "\n".join([f"backend {name}", *(f"  server {server.name} {server.address}:{rules.port}" for server in servers)])
        for name, servers in rules.groups.items()
    )
    return f"""\
global
  maxconn {MAXIMUM}
  nbthread 1
defaults
  mode http
  balance leastconn
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend chain
  bind {host.address}:{CHAIN_PORT}
{chain}
  default_backend {rules.default}
frontend map
  bind {host.address}:{MAP_PORT}
  use_backend %[path,map_beg({file},{rules.default})]
{backends}
"""


def nginx_configuration(host: HostPlan, rules: Rules, directory: Path) -> str:
    """Return nginx's configuration: one process, a location for each prefix, no access log, and no buffering of bodies
    on disk."""
    upstreams = "\n".join(
        f"  upstream {name} {{ least_conn; {' '.join(f'server {peer.address}:{rules.port};' for peer in servers)} }}"
        for name, servers in rules.groups.items()
    )
    asked = (*rules.prefixes, ("/", rules.default))
    locations = "\n".join(f"    location ^~ {prefix} {{ proxy_pass http://{group}; }}" for prefix, group in asked)
    return f"""\
daemon off;
master_process off;
pid {directory}/nginx.pid;
error_log {directory}/nginx-error.log;
events {{ worker_connections {2 * MAXIMUM}; }}
http {{
  access_log off;
  client_body_temp_path {directory}/nginx-body;
  proxy_temp_path {directory}/nginx-proxy;
  fastcgi_temp_path {directory}/nginx-fastcgi;
  uwsgi_temp_path {directory}/nginx-uwsgi;
  scgi_temp_path {directory}/nginx-scgi;
  proxy_max_temp_file_size 0;
  client_max_body_size 0;
  client_body_buffer_size 2m;
{upstreams}
  server {{
    listen {host.address}:{NGINX_PORT} backlog={MAXIMUM};
{locations}
  }}
}}
"""
