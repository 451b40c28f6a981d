"""Apache on a lab server: its own small configuration, few workers, a short accept queue."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection, Sequence
from pathlib import Path

from topo.plan.network import WEB_PORT
from topo.testbed.errors import SetupError
from topo.testbed.namespaces import listening, socket_in
from topo.testbed.processes import Process

PAGE = "page"
PAGE_BYTES = 100_000
"""The file of Ohta & Andou, section 5."""

LONG = "long"
LONG_BYTES = 3_000_000
"""A file that a slow reader takes many balancing periods to download."""

WORK = "work"
WORK_BYTES = 36_000
HEAVY = "heavy"
HEAVY_BYTES = 21 * WORK_BYTES
"""Files that Apache compresses anew for everybody who asks: CPU time, in proportion to their size, for few packets.
zlib takes some 55 us for 1,000 bytes of hexadecimal digits, and makes half as many of them."""
COMPRESSED = (WORK, HEAVY)

SEND_BUFFER_BYTES = 1 << 17
"""The page fits, so a worker writes it at once.  With a smaller buffer a worker is woken several times for a page; once
it shares a CPU limit with `stress` each time costs it a turn, and what the server can do falls with the load itself."""

TIMEOUT_S = 5
"""How long a worker waits for a client to go on.  Clients that gave up while the server was overloaded would otherwise
keep workers busy long after."""

WORKERS, BACKLOG = 10, 16
"""What makes the accept queue overflow: worker processes, and connections the kernel queues for them.  Each of the
demo's long downloads may keep a worker; the others are for the load."""

APACHE = "/usr/sbin/apache2"

CONFIGURATION = """\
ServerRoot {directory}
ServerName {name}
PidFile {directory}/apache.pid
DefaultRuntimeDir {directory}
Mutex file:{directory}
ErrorLog {directory}/error.log
LogLevel warn
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule env_module /usr/lib/apache2/modules/mod_env.so
User www-data
Group www-data
Listen {address}:{port}
ListenBacklog {backlog}
SendBufferSize {send_buffer}
StartServers {workers}
MinSpareServers {workers}
MaxSpareServers {workers}
ServerLimit {workers}
MaxRequestWorkers {workers}
MaxConnectionsPerChild 0
{more}
Timeout {timeout_s}
DocumentRoot {files}
DeflateCompressionLevel 6
<LocationMatch "^/({compressed})$">
SetOutputFilter DEFLATE
SetEnv force-gzip 1
</LocationMatch>
"""


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


def start_apache(
    name: str,
    address: str,
    *,
    namespace_pid: int,
    cgroup_procs: Sequence[Path],
    cores: Collection[int],
    backlog: int,
    directory: Path,
    files: Path,
    more: str,
) -> Process:
    """Start Apache for server `name`, with `more` directives, and return once it listens."""
    directory.mkdir()
    configuration = directory / "apache.conf"
    configuration.write_text(
        CONFIGURATION.format(
            directory=directory,
            name=name,
            address=address,
            port=WEB_PORT,
            backlog=backlog,
            send_buffer=SEND_BUFFER_BYTES,
            timeout_s=TIMEOUT_S,
            workers=WORKERS,
            files=files,
            compressed="|".join(COMPRESSED),
            more=more.format(name=name),
        )
    )
    process = Process(
        f"apache of {name}",
        [APACHE, "-DFOREGROUND", "-f", str(configuration)],
        log=directory / "apache.out",
        namespace_pid=namespace_pid,
        cgroup_procs=cgroup_procs,
        cores=cores,
    )
    try:
        process.await_true(f"listens on {address}:{WEB_PORT}", lambda: listening(namespace_pid, WEB_PORT), 20.0)
    except BaseException:
        process.stop()
        raise
    return process


def request_locally(namespace_pid: int, address: str, timeout_s: float, file: Path) -> None:
    """Fetch one of the files from within a server's own namespace; raise SetupError if there is none in time, or less.

    Of a file that is compressed a half and more comes.
    """
    try:
        with socket_in(namespace_pid, socket.AF_INET, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect((address, WEB_PORT))
            connection.sendall(f"GET /{file.name} HTTP/1.0\r\n\r\n".encode())
            size = 0
            while more := connection.recv(1 << 16):
                size += len(more)
    except OSError as error:
        raise SetupError(f"the server at {address} does not answer: {error}") from error
    if size < file.stat().st_size // (2 if file.name in COMPRESSED else 1):
        raise SetupError(f"the server at {address} answered with {size} bytes only")
