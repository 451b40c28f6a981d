"""Web servers of the labs: Apache and nginx, by their workers and how they keep connections; and `stress` beside them.

Apache's prefork has a process for each connection, however long it is silent; event and nginx keep silent ones aside.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topo.plan.load import HOGS
from topo.plan.network import WEB_PORT
from topo.testbed.errors import SetupError
from topo.testbed.namespaces import connect_in
from topo.testbed.prerequisites import APACHE

NGINX = "/usr/sbin/nginx"
MODULES = "/usr/lib/apache2/modules"

PAGE, PAGE_BYTES = "page", 100_000
"""The page of Ohta & Andou (section 5)."""
LONG, LONG_BYTES = "long", 3_000_000
"""A file whose download by a slow reader lasts many balancing periods."""
WORK, WORK_BYTES = "work", 36_000
HEAVY, HEAVY_BYTES = "heavy", 21 * WORK_BYTES
"""Files that Apache compresses anew for each request: CPU time, in proportion to their size, for few packets.
zlib takes some 55 us for 1,000 bytes of hexadecimal digits, and makes half as many of them."""
COMPRESSED = (WORK, HEAVY)

SEND_BUFFER_BYTES = 1 << 17
"""The page fits, so a worker writes it at once.  With a smaller buffer a worker is woken several times for a page; once
it shares a CPU limit with `stress` each time costs it a turn, and what the server can do falls with the load itself."""
WORKERS, BACKLOG, TIMEOUT_S = 10, 16, 5
"""What makes the accept queue overflow: worker processes, connections the kernel queues for them, and seconds that a
worker waits for a client to go on.  Each of the demo's long downloads may keep a worker; the others are for the load.
Clients that gave up while the server was overloaded would otherwise keep workers busy long after."""
COMPRESSING = f"""\
SendBufferSize {SEND_BUFFER_BYTES}
DeflateCompressionLevel 6
<LocationMatch "^/({"|".join(COMPRESSED)})$">
SetOutputFilter DEFLATE
SetEnv force-gzip 1
</LocationMatch>
"""
"""Further directives of the web lab's Apache."""
DEFAULTS = {"backlog": 511, "timeout_s": 60}
"""Apache's and nginx's defaults."""
KINDS = ("prefork", "event", "nginx")
"""Apache's multi-processing modules, and nginx."""
STRESS = ("stress", "--cpu", str(HOGS))
"""The command that loads a server, in the server's own cgroup, so that it takes from that server's CPU only.

Ohta & Andou load disk and I/O as well.  sync(2), which `stress --io` calls, would slow the whole machine whatever
the cgroup, so only its CPU workers are used."""


def write_files(directory: Path, share: float = 1.0) -> None:
    """Write the files that all servers serve; their content is the same in every run.

    `share`: of PAGE_BYTES and LONG_BYTES that PAGE and LONG have.
    """
    directory.mkdir()
    source = random.Random(1)
    for name, size in ((PAGE, PAGE_BYTES), (LONG, LONG_BYTES)):
        (directory / name).write_bytes(source.randbytes(round(size * share)))
    for name, size in ((WORK, WORK_BYTES), (HEAVY, HEAVY_BYTES)):
        (directory / name).write_bytes(source.randbytes(size // 2).hex().encode())


def apache_configuration(
    directory: Path,
    name: str,
    address: str,
    files: Path,
    *directives: str,
    module: str = "prefork",
    workers: int = WORKERS,
    backlog: int = BACKLOG,
    timeout_s: int = TIMEOUT_S,
) -> str:
    """Return Apache's configuration: all workers of its multi-processing module are there from the start."""
    processes = dict.fromkeys(("StartServers", "MinSpareServers", "MaxSpareServers", "ServerLimit"), workers)
    threads = dict.fromkeys(("ThreadsPerChild", "ThreadLimit", "MinSpareThreads", "MaxSpareThreads"), workers)
    event = {"StartServers": 1, "ServerLimit": 1, **threads, "AsyncRequestWorkerFactor": 20}
    limits = processes if module == "prefork" else event
    modules = (f"mpm_{module}", "authz_core", "deflate", "env")
    return f"""\
ServerRoot {directory}
ServerName {name}
PidFile {directory}/apache.pid
DefaultRuntimeDir {directory}
Mutex file:{directory}
ErrorLog {directory}/error.log
LogLevel warn
{_lines(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in modules)}
User www-data
Group www-data
Listen {address}:{WEB_PORT}
ListenBacklog {backlog}
{_lines(f"{limit} {number}" for limit, number in limits.items())}
MaxRequestWorkers {workers}
MaxConnectionsPerChild 0
Timeout {timeout_s}
DocumentRoot {files}
{_lines(directives)}
"""


def apache_command(configuration: Path) -> list[str]:
    """Return the command line that starts Apache in the foreground."""
    return [APACHE, "-DFOREGROUND", "-f", str(configuration)]


@dataclass(frozen=True, slots=True)
class WebServer:
    """A web server, its number of workers, and the seconds for which it keeps idle connections (0: none)."""

    kind: str
    """One of KINDS."""
    workers: int
    keep_s: float

    def files(self, directory: Path, address: str) -> Mapping[str, str]:
        """Return the server's configuration files by name."""
        if self.kind == "nginx":
            return {"server.conf": self._nginx(directory, address)}
        keep = ("On" if self.keep_s else "Off", f"{round(1000 * (self.keep_s or 5))}ms", "0")
        names = ("KeepAlive", "KeepAliveTimeout", "MaxKeepAliveRequests")
        directives = [f"{name} {value}" for name, value in zip(names, keep, strict=True)]
        limits: Mapping[str, Any] = {"module": self.kind, "workers": self.workers, **DEFAULTS}
        return {
            "server.conf": apache_configuration(directory, "web", address, directory / "files", *directives, **limits)
        }

    def command(self, directory: Path) -> Sequence[str]:
        """Return the command line that starts the server in the foreground."""
        file = directory / "server.conf"
        return [NGINX, "-e", "stderr", "-c", str(file)] if self.kind == "nginx" else apache_command(file)

    def _nginx(self, directory: Path, address: str) -> str:
        """Return nginx's configuration: one process, with any number of connections."""
        temporary = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        return f"""\
daemon off;
master_process off;
pid {directory}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_timeout {self.keep_s:g};
  keepalive_requests 1000000;
{_lines(f"  {name}_temp_path {directory}/{name};" for name in temporary)}
  server {{
    listen {address}:{WEB_PORT} backlog={DEFAULTS["backlog"]};
    root {directory}/files;
  }}
}}
"""


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(texts)


def request_locally(namespace_pid: int, address: str, timeout_s: float, file: Path) -> None:
    """Fetch a file within a server's own namespace; raise SetupError if it does not arrive in time.

    Of a file that is compressed a half and more comes.
    """
    try:
        with connect_in(namespace_pid, (address, WEB_PORT), timeout_s) as connection:
            connection.sendall(f"GET /{file.name} HTTP/1.0\r\n\r\n".encode())
            size = 0
            while more := connection.recv(1 << 16):
                size += len(more)
    except OSError as error:
        raise SetupError(f"the server at {address} does not answer: {error}") from error
    if size < file.stat().st_size // (2 if file.name in COMPRESSED else 1):
        raise SetupError(f"the server at {address} answered with {size} bytes only")
