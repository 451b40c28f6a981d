"""A delay line for kernels without netem: it delays the packets from clients to servers.

The router in front of the clients, or the clients' host, routes the clients' packets into a TUN device. This program
reads the packets, waits and writes them back to the device, and the kernel forwards them. Packets from the servers are
not delayed, so a round trip becomes longer by the delay of one direction. Packets of the same network of clients stay
in order.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network

from topo.load.program import main

TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
"""Constants of include/uapi/linux/if_tun.h."""
READS_AT_ONCE = 64
MTU_MAX = 2048


class DelayLine:
    """Queues of packets, one for each /16 network of source addresses that has a delay in seconds. Packets of other
    sources are not delayed."""

    def __init__(self, delays_s: Mapping[str, float]) -> None:
        """``delays_s``: delay in seconds by network. Raises ValueError for a network with another prefix length than
        16."""
        self._delays = {_prefix(network): delay_s for network, delay_s in delays_s.items()}
        self._queues: dict[bytes, deque[tuple[float, bytes]]] = {prefix: deque() for prefix in self._delays}

    def take(self, packet: bytes, now: float) -> bool:
        """Queue a packet; return False if its source has no delay."""
        prefix = packet[12:14]
        queue = self._queues.get(prefix)
        if queue is None:
            return False
        queue.append((now + self._delays[prefix], packet))
        return True

    def next(self) -> float | None:
        """Return the time at which the next packet is due; None if no packet is queued."""
        return min((queue[0][0] for queue in self._queues.values() if queue), default=None)

    def due(self, now: float) -> list[bytes]:
        """Remove and return the packets that are due."""
        packets: list[bytes] = []
        for queue in self._queues.values():
            while queue and queue[0][0] <= now:
                packets.append(queue.popleft()[1])
        return packets


def _prefix(network: str) -> bytes:
    prefix = IPv4Network(network)
    if prefix.prefixlen != 16:
        raise ValueError(f"{network!r} is no /16")
    return prefix.network_address.packed[:2]


def open_tun(name: str) -> int:
    """Create the TUN device `name` and return its file descriptor; the device disappears when this process ends."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def pass_on(tun: int, line: DelayLine) -> None:
    """Delay and forward packets, without end."""
    while True:
        wake = line.next()
        wait = None if wake is None else max(0.0, wake - time.monotonic())
        # select(2) has a timeout in microseconds, epoll_wait(2) only in milliseconds.
        if select.select([tun], [], [], wait)[0]:
            for _ in range(READS_AT_ONCE):
                try:
                    packet = os.read(tun, MTU_MAX)
                except BlockingIOError:
                    break
                if not line.take(packet, time.monotonic()):
                    os.write(tun, packet)
        for packet in line.due(time.monotonic()):
            os.write(tun, packet)


@dataclass(frozen=True)
class Delay:
    """The program that runs a delay line on the TUN device `device`; `delays_s` maps networks of source addresses
    (A.B.0.0/16) to seconds."""

    device: str
    delays_s: dict[str, float]

    def run(self) -> None:
        """Delay packets until the process ends; print a line with `ready` once the device exists."""
        tun = open_tun(self.device)
        print("delay line ready", flush=True)
        pass_on(tun, DelayLine(self.delays_s))


if __name__ == "__main__":
    main(globals())
