"""Web servers with few workers, by how they keep connections: their configurations.  Pure.

Apache's prefork has a process for each connection, however long it says nothing; event and nginx keep those aside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from topo.labs.apache import APACHE
from topo.plan.network import WEB_PORT

NGINX = "/usr/sbin/nginx"
MODULES = "/usr/lib/apache2/modules"
BACKLOG = 511
"""Apache's and nginx's own."""
TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class WebServer:
    """A program, its workers, and how long it keeps a connection that says nothing (0: not at all)."""

    kind: str
    """One of KINDS."""
    workers: int
    keep_s: float

    def files(self, directory: Path, address: str) -> Mapping[str, str]:
        """Return its configuration, by the name of the file."""
        return {"server.conf": KINDS[self.kind](self, directory, address)}

    def command(self, directory: Path) -> Sequence[str]:
        """Return what starts it in the foreground."""
        file = str(directory / "server.conf")
        return [NGINX, "-e", "stderr", "-c", file] if self.kind == "nginx" else [APACHE, "-DFOREGROUND", "-f", file]


def _apache(server: WebServer, directory: Path, address: str, workers: str) -> str:
    return f"""\
ServerRoot {directory}
ServerName web
PidFile {directory}/apache.pid
DefaultRuntimeDir {directory}
Mutex file:{directory}
ErrorLog {directory}/error.log
LogLevel warn
LoadModule mpm_{server.kind}_module {MODULES}/mod_mpm_{server.kind}.so
LoadModule authz_core_module {MODULES}/mod_authz_core.so
User www-data
Group www-data
Listen {address}:{WEB_PORT}
ListenBacklog {BACKLOG}
{workers}
MaxRequestWorkers {server.workers}
MaxConnectionsPerChild 0
KeepAlive {"On" if server.keep_s else "Off"}
KeepAliveTimeout {round(1000 * (server.keep_s or 5))}ms
MaxKeepAliveRequests 0
Timeout {TIMEOUT_S}
DocumentRoot {directory}/files
"""


def prefork(server: WebServer, directory: Path, address: str) -> str:
    """A process for each connection, all of them there from the start."""
    names = ("StartServers", "MinSpareServers", "MaxSpareServers", "ServerLimit")
    return _apache(server, directory, address, "\n".join(f"{name} {server.workers}" for name in names))


def event(server: WebServer, directory: Path, address: str) -> str:
    """As many threads, in one process; what is kept waits without one."""
    threads = server.workers
    return _apache(
        server,
        directory,
        address,
        f"StartServers 1\nServerLimit 1\nThreadsPerChild {threads}\nThreadLimit {threads}\n"
        f"MinSpareThreads {threads}\nMaxSpareThreads {threads}\nAsyncRequestWorkerFactor 20",
    )


def nginx(server: WebServer, directory: Path, address: str) -> str:
    """One process for all; what it does at once is not bounded."""
    return f"""\
daemon off;
master_process off;
pid {directory}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_timeout {server.keep_s:g};
  keepalive_requests 1000000;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  server {{
    listen {address}:{WEB_PORT} backlog={BACKLOG};
    root {directory}/files;
  }}
}}
"""


KINDS: Mapping[str, Callable[[WebServer, Path, str], str]] = {"prefork": prefork, "event": event, "nginx": nginx}
