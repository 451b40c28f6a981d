"""A program that sends delayed copies of the TCP segments which leave an interface, as a network may (without netem).

The interface's segmentation offload has to be off, as hosts of the lab have it: a frame above the MTU cannot be sent
again.
"""

from __future__ import annotations

import heapq
import random
import select
import socket
import time
from collections import Counter
from dataclasses import dataclass

from topo.load.program import main

ETH_P_ALL = 0x0003
PACKET_OUTGOING = 4
"""include/uapi/linux/if_packet.h"""
COPIES = 2
LATEST_S = 0.004
RECEIVE_BUFFER = 1 << 24


def is_tcp(frame: bytes) -> bool:
    """Whether a frame is IPv4 and TCP, without a VLAN tag."""
    return frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_TCP


def copy(packets: socket.socket, sender: socket.socket, draws: random.Random) -> None:
    """Copy the segments that leave an interface, for ever."""
    waiting: list[tuple[float, bytes]] = []
    copies: Counter[bytes] = Counter()
    while True:
        wait_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([packets], [], [], wait_s)[0]:
            frame, (_, _, kind, *_) = packets.recvfrom(1 << 16)
            if kind == PACKET_OUTGOING and is_tcp(frame):
                if frame in copies:
                    copies -= Counter([frame])
                else:
                    for _ in range(COPIES):
                        heapq.heappush(waiting, (time.monotonic() + LATEST_S * draws.random(), frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, frame = heapq.heappop(waiting)
            copies[frame] += 1
            sender.send(frame)


@dataclass(frozen=True)
class LateCopies:
    """The program for an interface; it prints a line once it copies."""

    interface: str
    seed: int = 1

    def run(self) -> None:
        """Copy until the process ends. Copies leave the interface too: they are counted, and none is copied again."""
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as packets:
            packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            packets.bind((self.interface, 0))
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
                sender.bind((self.interface, 0))
                print("copying", flush=True)
                copy(packets, sender, random.Random(self.seed))


if __name__ == "__main__":
    main(globals())
