"""A delay line for kernels without netem: packets towards the servers wait for the delay of their client.

The router in front of the clients routes what comes from them into a TUN device.  This program reads it, waits and
writes it back, and the kernel routes it on.  What comes from the servers goes straight through: a round trip is longer
by the whole delay.  Order is kept within a network of clients.
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
"""include/uapi/linux/if_tun.h"""
READS_AT_ONCE = 64
MTU_MAX = 2048


class DelayLine:
    """A queue for each /16 of sources with a delay in seconds; packets of other sources are not delayed."""

    def __init__(self, delays_s: Mapping[str, float]) -> None:
        """Raises ValueError for a network that is no /16."""
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
        """Return the time at which the next packet is due; None without a packet."""
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
    """Make the TUN device `name` and return its descriptor; it goes with this process."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def pass_on(tun: int, line: DelayLine) -> None:
    """Delay and forward packets for ever."""
    while True:
        wake = line.next()
        wait = None if wake is None else max(0.0, wake - time.monotonic())
        # select(2) counts in microseconds, epoll_wait(2) in milliseconds.
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
    """The program: a TUN device of this name, and seconds by network of sources (A.B.0.0/16)."""

    device: str
    delays_s: dict[str, float]

    def run(self) -> None:
        """Delay packets until the process ends; print a line with `ready` once the device exists."""
        tun = open_tun(self.device)
        print("delay line ready", flush=True)
        pass_on(tun, DelayLine(self.delays_s))


if __name__ == "__main__":
    main(globals())
