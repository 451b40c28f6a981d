"""Test with invalid bytes: each frame has exactly one verdict, and every frame that leaves is valid."""

from __future__ import annotations

import random

from harness import bulk
from harness.base import StageTest
from harness.flow import Flow
from harness.frames import ICMP, IP, Packet, layers, octets, tagged
from harness.plan import CLIENT, CLIENT_HOST, D1, DNS, S1, UPLINK_HOST, WEB
from harness.probes import arp_reply, arp_request, ether, plain
from scapy.layers.inet import IPOption_NOP
from sluice.names import Counter, DropReason, PuntReason

FRAMES = 2000
SHORTEST = 22
"""Length in bytes of the shortest truncated frame: Linux drops a shorter frame if it cannot remove the frame's tag."""


def seeds() -> list[Packet]:
    """Return valid frames of every kind that the parser accepts."""
    flow, dns = Flow(WEB, S1), Flow(DNS, D1)
    quoted = octets(flow.at_client(flow.reply(b"x" * 40, flags="A")))[14:]
    return [
        flow.syn(),
        flow.data(),
        flow.request(b"data", ip={"options": [IPOption_NOP()] * 12}, flags="PA", options=[("NOP", None)] * 12),
        tagged(flow.ack(), 42, 3),
        dns.request(b"question"),
        plain(CLIENT_HOST, UPLINK_HOST.address),
        plain(CLIENT_HOST, UPLINK_HOST.address, ttl=1),
        layers(ether(CLIENT_HOST), IP(src=CLIENT_HOST.address, dst=CLIENT.address), ICMP(type=8), b"echo"),
        layers(ether(CLIENT_HOST), IP(src=CLIENT_HOST.address, dst=WEB.address), ICMP(type=3, code=4), quoted),
        arp_request(CLIENT_HOST, CLIENT.address),
        arp_reply(),
    ]


def mutated(source: random.Random, frame: bytes) -> bytes:
    """Return the frame with one to four changed bytes, usually in the headers; some frames are truncated or padded."""
    data = bytearray(frame)
    for _ in range(source.randint(1, 4)):
        data[source.randrange(min(len(data), 80))] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
    match source.randrange(6):
        case 0:
            del data[source.randrange(SHORTEST, len(data)) :]
        case 1:
            data += source.randbytes(source.randrange(1, 64))
        case _:
            pass
    return bytes(data)


class OneVerdictEach(StageTest):
    """Mutations of valid frames, the same in every run, cause one verdict each.

    As many frames leave as the verdicts require, each with a valid IPv4 header checksum, and the switch still works
    afterwards.
    """

    def runTest(self) -> None:
        source = random.Random(11)
        frames = [octets(frame) for frame in seeds()]
        outcome = self.burst(CLIENT, (mutated(source, source.choice(frames)) for _ in range(FRAMES)))
        verdicts = {index: number for (name, index), number in outcome.changes.items() if name is Counter.VERDICTS}
        self.assertEqual(sum(verdicts.values()), FRAMES)
        answered = outcome.changes.get((Counter.PUNTS, PuntReason.ARP), 0)
        self.assertEqual(len(outcome.frames) + answered, verdicts[DropReason.NONE])
        self.assertGreater(len(verdicts), 8, "the mutations should reach many of the reasons")
        for _, frame in outcome.frames:
            self.assertTrue(bulk.has_sound_ipv4_header(frame), frame.hex(" ", 2))
        self.opens(Flow(WEB, S1, client_port=39999))
