"""A delay line for kernels without netem: packets towards the servers are held for the time their client is away.

    python -m topo.load.delay --device delay0 --class 10.101.0.0/16=0.010 --class 10.102.0.0/16=0.020

The router in front of the clients routes what comes from them into a TUN device.  This program reads it, waits and
writes it back, and the kernel routes it on.  What comes from the servers goes straight through: a round trip is longer
by the whole delay.  Order is kept within a class.
"""

from __future__ import annotations

import argparse
import fcntl
import ipaddress
import os
import select
import struct
import sys
import time
from collections import deque
from collections.abc import Sequence

TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
"""include/uapi/linux/if_tun.h"""
READS_AT_ONCE = 64
MTU_MAX = 2048


class DelayLine:
    """One queue for each class, which is a /16 of sources; others are not held."""

    def __init__(self, classes: dict[bytes, float]) -> None:
        self._delays = classes
        self._held: dict[bytes, deque[tuple[float, bytes]]] = {prefix: deque() for prefix in classes}

    def take(self, packet: bytes, now: float) -> bool:
        """Hold a packet; False if it is of no class."""
        prefix = packet[12:14]
        queue = self._held.get(prefix)
        if queue is None:
            return False
        queue.append((now + self._delays[prefix], packet))
        return True

    def next(self) -> float | None:
        """Return when the next packet is to go."""
        return min((queue[0][0] for queue in self._held.values() if queue), default=None)

    def due(self, now: float) -> list[bytes]:
        """Return the packets whose time has come, and forget them."""
        packets: list[bytes] = []
        for queue in self._held.values():
            while queue and queue[0][0] <= now:
                packets.append(queue.popleft()[1])
        return packets


def open_tun(name: str) -> int:
    """Make the TUN device `name` and return its descriptor; it goes with this process."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def run(tun: int, line: DelayLine) -> None:
    """Hold and pass on packets for ever."""
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


def parse_class(text: str) -> tuple[bytes, float]:
    """Read PREFIX/16=SECONDS."""
    network, _, delay = text.partition("=")
    prefix = ipaddress.IPv4Network(network)
    if prefix.prefixlen != 16:
        raise argparse.ArgumentTypeError(f"{text!r}: a class is a /16")
    return prefix.network_address.packed[:2], float(delay)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m topo.load.delay", description="Hold packets for a time.")
    parser.add_argument("--device", required=True)
    parser.add_argument("--class", dest="classes", type=parse_class, action="append", default=[])
    options = parser.parse_args(arguments)
    tun = open_tun(options.device)
    print("delay line ready", flush=True)
    run(tun, DelayLine(dict(options.classes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
