"""Web servers of the labs: Apache and nginx with their numbers of workers and keep-alive times, and `stress`, which
loads a server.

Apache's prefork module has a process for each connection, even if the connection is idle. Apache's event module and
nginx need no worker for idle connections.
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
"""Name and size in bytes of the page that Ohta & Andou's clients download (section 5)."""
LONG, LONG_BYTES = "long", 3_000_000
"""Name and size in bytes of a file whose download by a slow reader lasts many balancing periods."""
WORK, WORK_BYTES = "work", 36_000
HEAVY, HEAVY_BYTES = "heavy", 21 * WORK_BYTES
"""Names and sizes in bytes of files that Apache compresses anew for each request. A request costs CPU time in
proportion to the size, but few packets. zlib needs some 55 us for 1,000 bytes of hexadecimal digits, and halves their
size."""
COMPRESSED = (WORK, HEAVY)

SEND_BUFFER_BYTES = 1 << 17
"""Size of the send buffer in bytes. A complete page fits, so a worker writes the page at once. With a smaller buffer a
worker is woken several times per page. Beside `stress` under the same CPU limit the worker would wait for the CPU each
time, and the server's capacity would fall as the load rises."""
WORKERS, BACKLOG, TIMEOUT_S = 10, 16, 5
"""The parameters that make the accept queue overflow: number of worker processes, number of connections that the kernel
queues for the workers, and seconds that a worker waits for a silent client. Each of the demo's long downloads may
occupy a worker; the other workers serve the load. The timeout is short because clients that gave up during an overload
would otherwise occupy workers long after it."""
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
"""The default backlog and timeout of Apache and nginx."""
KINDS = ("prefork", "event", "nginx")
"""Apache's multi-processing modules, and nginx."""
STRESS = ("stress", "--cpu", str(HOGS))
"""The command that loads a server. It runs in the server's own cgroup, so that it uses CPU time of that server only.

Ohta & Andou load disk and I/O in addition to the CPU. The lab uses only the CPU workers of `stress`, because
`stress --io` calls sync(2), which slows the whole machine instead of the cgroup alone."""


def write_files(directory: Path, share: float = 1.0) -> None:
    """Write the files that all servers serve; their content is the same in every run.

    `share`: factor for the sizes PAGE_BYTES and LONG_BYTES of the files PAGE and LONG.
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
    """Return Apache's configuration; all workers of the multi-processing module start together with the server."""
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
    """A web server, its number of workers, and the seconds after which it closes idle connections (0: it closes each
    connection after the answer)."""

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
        """Return nginx's configuration: a single process that serves all connections."""
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
    """Fetch a file within a server's own namespace; raise SetupError if it does not arrive completely and in time.

    A file that the server compresses must arrive with at least half of its size.
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
