"""Sockets that live in the network namespace of another process."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from pathlib import Path

from topo.errors import LabError

CLONE_NEWNET = 0x40000000
"""setns(2): the descriptor names a network namespace (include/uapi/linux/sched.h)."""

TCP_LISTEN = "0A"
"""State of a listening socket in /proc/net/tcp (include/net/tcp_states.h)."""


def socket_in(pid: int, family: int, kind: int, protocol: int = 0) -> socket.socket:
    """Open a socket in the network namespace of process `pid`.

    A socket stays in the namespace it was opened in, so a thread that enters it, opens the socket and ends is
    enough.  Raises LabError if the namespace cannot be entered.
    """
    opened: list[socket.socket] = []
    failures: list[OSError] = []

    def enter_and_open() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
                if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                    code = ctypes.get_errno()
                    raise OSError(code, os.strerror(code))
            opened.append(socket.socket(family, kind, protocol))
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=enter_and_open, name="netns")
    thread.start()
    thread.join()
    if failures:
        raise LabError(f"cannot open a socket in the namespace of process {pid}: {failures[0]}") from failures[0]
    return opened[0]


def listening(pid: int, port: int) -> bool:
    """Say whether anything listens on TCP `port` in the network namespace of process `pid`."""
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == TCP_LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
                return True
    return False


def interface_packets(pid: int) -> dict[str, tuple[int, int, int]]:
    """Return interface -> (packets received, sent, dropped) in the namespace of process `pid`.

    Drops are those of the interface itself, both directions (columns of /proc/net/dev).
    """
    counts: dict[str, tuple[int, int, int]] = {}
    for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]:
        name, _, rest = line.partition(":")
        column = [int(value) for value in rest.split()]
        counts[name.strip()] = (column[1], column[9], column[3] + column[11])
    return counts
