"""Network namespaces: creating an unnamed namespace, opening sockets in another process's namespace, and reading its
counters."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import threading
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from topo.testbed.errors import SetupError
from topo.testbed.processes import run_in

CLONE_NEWNET = 0x40000000
"""Flag of setns(2) and unshare(2) for a network namespace (include/uapi/linux/sched.h)."""
OFFLOADS = ("tx", "rx", "tso", "gso", "gro", "sg", "txvlan", "rxvlan")
"""Offloads that are disabled at both ends of a cable, so that frames arrive as the test sends them, with their
checksums and VLAN tag."""
PACKAGES = {"ip": "iproute2", "ethtool": "ethtool"}

TCP_LISTEN = "0A"
"""State of a listening socket in /proc/net/tcp (include/net/tcp_states.h)."""
UNIX_LISTEN = "00010000"
"""Flags of a listening socket in /proc/net/unix: __SO_ACCEPTCON (include/linux/net.h)."""


@dataclass(frozen=True)
class Cable:
    """A veth pair: the switch uses one end, the test the other end."""

    port: int
    switch_end: str
    test_end: str


def enter_new() -> None:
    """Move this process and its future children into a new network namespace, which exists until the last of these
    processes ends."""
    for command, package in PACKAGES.items():
        if shutil.which(command) is None:
            raise SetupError(f"{command} is missing: apt-get install {package}")
    try:
        _checked("unshare", CLONE_NEWNET)
    except OSError as error:
        raise SetupError(f"cannot make a network namespace: {error.strerror}; run as root (sudo)") from error
    for scope in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if setting.exists():  # a kernel without IPv6 has no such setting and sends no router solicitations
            setting.write_text("1")
    run_in(None, ["ip", "link", "set", "lo", "up"])


def lay(ports: Iterable[int], namespace_pid: int | None = None) -> list[Cable]:
    """Create a cable for each port number. The cables are up, have no offloads, and the kernel sends no packets of its
    own on them.

    Both ends are in the namespace of process ``namespace_pid``; None: in the namespace of this process.
    """
    cables = [Cable(port, f"sw{port}", f"pt{port}") for port in ports]
    for cable in cables:
        run_in(namespace_pid, ["ip", "link", "add", cable.switch_end, "type", "veth", "peer", "name", cable.test_end])
        for end in (cable.switch_end, cable.test_end):
            run_in(namespace_pid, ["ip", "link", "set", end, "arp", "off", "mtu", "9000", "up"])
            for offload in OFFLOADS:
                with suppress(SetupError) if offload.endswith("vlan") else nullcontext():
                    run_in(namespace_pid, ["ethtool", "-K", end, offload, "off"])
    return cables


def _checked(function: str, *arguments: int) -> None:
    """Call a function of libc. Raises OSError if the function fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc[function](*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def socket_in(pid: int, family: int, kind: int, protocol: int = 0) -> socket.socket:
    """Open a socket in the network namespace of process `pid`.

    A temporary thread enters the namespace and opens the socket; the socket stays in that namespace. Raises SetupError
    if the namespace cannot be entered.
    """
    opened: list[socket.socket] = []
    failures: list[OSError] = []

    def enter_and_open() -> None:
        try:
            with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
                _checked("setns", namespace.fileno(), CLONE_NEWNET)
            opened.append(socket.socket(family, kind, protocol))
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=enter_and_open, name="netns")
    thread.start()
    thread.join()
    if failures:
        raise SetupError(f"cannot open a socket in the namespace of process {pid}: {failures[0]}") from failures[0]
    return opened[0]


def connect_in(
    pid: int,
    to: tuple[str, int],
    timeout_s: float,
    *,
    source: tuple[str, int] | None = None,
    receive_buffer: int | None = None,
) -> socket.socket:
    """Return a TCP connection from the network namespace of process `pid`; ``timeout_s`` is the timeout of the socket's
    operations.

    ``source``: local address and port; ``receive_buffer``: bytes of SO_RCVBUF. Raises OSError if the connection fails.
    """
    made = socket_in(pid, socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.settimeout(timeout_s)
        if receive_buffer is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(source)
        made.connect(to)
    except BaseException:
        made.close()
        raise
    return made


def listening(pid: int, where: int | str) -> bool:
    """Return whether a program listens in the network namespace of process `pid`.

    ``where``: a TCP port, or an address as gRPC writes it.
    """
    if isinstance(where, str) and where.startswith("unix:"):
        path = where.removeprefix("unix:")
        return any(socket[3] == UNIX_LISTEN and socket[-1] == path for socket in _sockets(pid, "unix"))
    port = int(str(where).rsplit(":", 1)[-1])
    sockets = [*_sockets(pid, "tcp"), *_sockets(pid, "tcp6")]
    return any(socket[3] == TCP_LISTEN and int(socket[1].rsplit(":", 1)[1], 16) == port for socket in sockets)


def _sockets(pid: int, table: str) -> list[list[str]]:
    """Return the fields of each line of /proc/PID/net/TABLE; no lines if the process has ended or the kernel lacks the
    protocol."""
    try:
        return [line.split() for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]]
    except OSError:
        return []


def tcp_counters(pid: int) -> dict[str, int]:
    """Return the counters of TCP's extensions (`TcpExt`, as `nstat` names them) in the namespace of process `pid`."""
    lines = Path(f"/proc/{pid}/net/netstat").read_text().splitlines()
    names, values = (line.split()[1:] for line in lines if line.startswith("TcpExt:"))
    return dict(zip(names, map(int, values), strict=True))


def interface_packets(pid: int) -> dict[str, tuple[int, int, int]]:
    """Return interface -> (packets received, sent, dropped) in the namespace of process `pid`.

    The drops are the interface's drops of both directions together (columns of /proc/net/dev).
    """
    counts: dict[str, tuple[int, int, int]] = {}
    for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]:
        name, _, rest = line.partition(":")
        column = [int(value) for value in rest.split()]
        counts[name.strip()] = (column[1], column[9], column[3] + column[11])
    return counts


def free_port(wanted: int = 0, host: str = "127.0.0.1") -> int:
    """Return the wanted TCP port if it is free, else any free port; 0: any free port. Raises OSError if no port is
    free."""
    if wanted:
        try:
            with socket.create_server((host, wanted)):
                return wanted
        except OSError:
            pass
    with socket.create_server((host, 0)) as listener:
        return int(listener.getsockname()[1])
