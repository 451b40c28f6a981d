"""A client that uses its ports again: connection after connection, ended in every way there is.

    python port_reuse.py ADDRESS PORT PORTS

Each way has PORTS ports.  Each port makes a connection to a `talker` over and over, in its way's period.  A line of
JSON on standard output for each connection: when it began (seconds, time.time()), its port, its way, the server's name,
and what went wrong, if anything did.
"""

from __future__ import annotations

import asyncio
import errno
import json
import resource
import socket
import struct
import sys
import time
from collections.abc import Sequence
from itertools import count

WAYS = {"client_fin": 1.25, "server_fin": 0.4, "client_reset": 0.4, "server_reset": 0.4, "forgotten": 1.25}
"""Who ends a connection, and how -> the seconds from one connection of a port's to the next.

A forgotten one ends without a packet, as when the client's machine loses power.  A client that closes first cannot use
its port for another second (tcp_tw_reuse); nor can one that forgets, whose first SYN the server takes for the old
connection's.
"""
FIRST_PORT = 10_000
TIMEOUT_S = 45.0
TCP_REPAIR = 19
"""include/uapi/linux/tcp.h: a socket in repair is closed without a packet."""
AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: close by RST."""


async def connect_once(address: tuple[str, int], port: int, way: str) -> str:
    """Make one whole connection from a port and return the server's name; raise OSError if it fails."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.setblocking(False)
        connection.bind(("", port))
        await loop.sock_connect(connection, address)
        await loop.sock_sendall(connection, b"name\n")
        name = await loop.sock_recv(connection, 64)
        if not name.endswith(b"\n"):
            raise ConnectionError(f"the server says {name!r} for its name")
        match way:
            case "client_fin":
                connection.shutdown(socket.SHUT_WR)
                await loop.sock_recv(connection, 1)
            case "server_fin":
                await loop.sock_sendall(connection, b"fin\n")
                await loop.sock_recv(connection, 1)
            case "client_reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            case "server_reset":
                await loop.sock_sendall(connection, b"reset\n")
                try:
                    await loop.sock_recv(connection, 1)
                except ConnectionResetError:
                    pass
                else:
                    raise ConnectionError("the server has not reset the connection")
            case _:
                # What has come is acknowledged first: else the server would send it again, and be answered by a RST.
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                connection.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    return name.decode().strip()


async def use(address: tuple[str, int], port: int, way: str, first_s: float) -> None:
    """Use a port again and again, for ever; `first_s` is when it begins, on time.monotonic()."""
    due = first_s
    while True:
        await asyncio.sleep(due - time.monotonic())
        due += WAYS[way]
        began, name, fault = time.time(), "", ""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                name = await connect_once(address, port, way)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:  # our own kernel's TIME-WAIT
                continue
            fault = repr(error)
        print(json.dumps([began, port, way, name, fault]), flush=True)
        due = max(due, time.monotonic())


async def use_all(address: tuple[str, int], ports: int) -> None:
    """Use all ports; each way's begin evenly over its period."""
    port, now = count(FIRST_PORT), time.monotonic()
    async with asyncio.TaskGroup() as group:
        for way, period_s in WAYS.items():
            for place in range(ports):
                group.create_task(use(address, next(port), way, now + period_s * place / ports))


def main(arguments: Sequence[str]) -> None:
    """Run from the command line, until it is ended."""
    address, port, ports = arguments
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(use_all((address, int(port)), int(ports)))


if __name__ == "__main__":
    main(sys.argv[1:])
