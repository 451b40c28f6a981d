"""Make campus.py's requests with p4runtime-shell instead of finsy: `campus_shell.py ADDRESS FOLDER INTERFACE`.

p4runtime-shell requires an older protobuf than sluice, and therefore a Python environment of its own. The gateway at
ADDRESS drives the program campus in FOLDER; INTERFACE is the test's end of the cable to port 1 of the switch.
"""
# pyright: reportMissingImports=false

import os
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

import p4runtime_sh.shell as sh
from p4runtime_sh.shell import (
    ActionProfileGroup,
    ActionProfileMember,
    CloneSessionEntry,
    DigestEntry,
    DigestList,
    FwdPipeConfig,
    IdleTimeoutNotification,
    MulticastGroupEntry,
    PacketOut,
    TableEntry,
)

HOST, STATION = "02:00:00:00:00:0c", "02:00:00:00:00:0d"
FRAME = bytes.fromhex("02000000000d02000000000c88b5") + bytes(60)
AWAIT_S = 20.0
ALL_PROTOCOLS = 3
"""ETH_P_ALL of linux/if_ether.h: frames of all protocols."""
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
"""Socket option of linux/socket.h and linux/if_packet.h: do not receive outgoing frames."""


def tables() -> list[Any]:
    """Write a ternary entry, and a route that uses a group; check that the switch returns the entry and the group.

    Return all written entities in the order in which to delete them.
    """
    rule = TableEntry("Ingress.acl")(action="Ingress.deny", priority=7)
    rule.match["hdr.ipv4.source"] = "10.1.0.0&&&255.255.0.0"
    rule.match["hdr.ipv4.total_length"] = "60..200"
    rule.insert()
    (read_back,) = list(TableEntry("Ingress.acl").read())
    assert read_back.priority == 7 and "10" in str(read_back), read_back
    print("ok: a ternary entry, read back")

    member = ActionProfileMember("Ingress.ports")(member_id=1, action="Ingress.send")
    member.action["port"] = "2"
    member.insert()
    group = ActionProfileGroup("Ingress.ports")(group_id=1)
    group.add(1, 3)
    group.insert()
    route = TableEntry("Ingress.routes")(group_id=1)
    route.match["hdr.ipv4.destination"] = "10.2.0.0/16"
    route.insert()
    (read_back,) = list(ActionProfileGroup("Ingress.ports").read())
    print(f"ok: a group of one member, {len(read_back.members)}")
    return [route, group, member, rule]


def copies() -> list[Any]:
    """Write a multicast group and a clone session; return both entities."""
    entities = [MulticastGroupEntry(2).add(1).add(2), CloneSessionEntry(9).add(3)]
    for each in entities:
        each.insert()
    print("ok: a multicast group and a clone session")
    return entities


def notifications(wire: socket.socket) -> list[Any]:
    """Check the digest of a new host and the notification of an idle entry; return the written entities."""
    digest = DigestEntry("new_host")
    digest.max_list_size, digest.ack_timeout_ns = 1, 10**9
    digest.insert()
    idle, digests = IdleTimeoutNotification(), DigestList()
    known = TableEntry("Ingress.hosts")(action="Ingress.known", idle_timeout_ns=10**9)
    known.match["hdr.ethernet.source"], known.match["meta.ingress_port"] = STATION, "1"
    known.insert()
    wire.send(FRAME)
    (message,) = list(digests.sniff(timeout=3))[:1]
    assert message.digest.data[0].struct.members[0].bitstring.lstrip(b"\0") == bytes.fromhex("02000000000c"), message
    print("ok: the digest of a new host")
    (silent,) = list(idle.sniff(timeout=5))[:1]
    assert silent.idle_timeout_notification.table_entry, silent
    print("ok: an idle entry is notified")
    return [known, digest]


def packet_out(wire: socket.socket) -> None:
    """Check that the switch sends a packet-out by the port in the packet-out's header."""
    out = PacketOut(FRAME)
    out.metadata["egress_port"] = "1"
    out.metadata["unused"] = "0"
    out.send()
    while not wire.recv(2048).startswith(FRAME):
        pass
    print("ok: a packet-out leaves by its port")


def main() -> None:
    """Write the entities, check digest, idle timeout and packet-out, and delete the entities again."""
    address, folder, interface = sys.argv[1:]
    program = FwdPipeConfig(str(Path(folder) / "campus.p4info.txtpb"), os.devnull)
    sh.setup(1, address, (0, 1000), config=program, verbose=False)
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    wire.bind((interface, 0))
    wire.settimeout(AWAIT_S)
    wire.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    entities = [*tables(), *copies(), *notifications(wire)]
    packet_out(wire)
    for each in entities:
        each.delete()
    assert not list(TableEntry("Ingress.acl").read())
    print("ok: everything deleted")
    sh.teardown()


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # the threads of p4runtime-shell never end, so the interpreter would not end by itself
    os._exit(0)
