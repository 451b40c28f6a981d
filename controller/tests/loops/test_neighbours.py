"""ARP both ways and time exceeded, frames compared with scapy's."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from ipaddress import IPv4Address
from typing import Any

import pytest
from fakeswitch import FakeSwitch
from live import WriteConfig, running, until
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from sluice.loops.neighbourtable import NeighbourTable
from sluice.names import PuntReason
from sluice.switch.state import Neighbour

SERVER = "02:aa:00:00:00:02"


async def _out(switch: FakeSwitch) -> tuple[int, Any]:
    async with asyncio.timeout(60):
        packet = await switch.packets_out.get()
    return int.from_bytes(packet.metadata[0].value, "big"), Ether(packet.payload)


def _reply(sender: str, target: str) -> bytes:
    return bytes(Ether(src=SERVER) / ARP(op=2, hwsrc=SERVER, psrc=sender, pdst=target))


async def test_next_hops_are_asked_for_and_learned(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()):
        asked = {}
        for _ in range(3):
            port, frame = await _out(switch)
            asked[frame[ARP].pdst] = (port, frame)
        assert set(asked) == {"10.0.1.9", "10.0.2.2", "10.0.3.2"}
        port, frame = asked["10.0.2.2"]
        assert (port, frame.dst, frame[ARP].psrc, frame[ARP].hwsrc) == (
            2,
            "ff:ff:ff:ff:ff:ff",
            "10.0.2.1",
            "02:00:00:00:00:02",
        )
        assert asked["10.0.3.2"][1][Dot1Q].vlan == 7
        switch.packet_in(_reply("10.0.2.2", "10.0.2.1"), ingress_port=2, reason=PuntReason.ARP, next_hop=0)
        await until(lambda: switch.entries("neighbours"), "the neighbour entry")
        entry = switch.entries("neighbours")[0]
        values = [p.value.rjust(6, b"\0").hex(":") for p in entry.action.action.params]
        assert values[1:] == ["02:00:00:00:00:02", SERVER]


async def test_restarted_controller_keeps_neighbours(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    async with running(config):
        switch.packet_in(_reply("10.0.2.2", "10.0.2.1"), ingress_port=2, reason=PuntReason.ARP, next_hop=0)
        await until(lambda: switch.entries("neighbours"), "the neighbour entry")
    async with running(config) as again:
        assert "updates=0" in again.said[0]
        assert len(switch.entries("neighbours")) == 1


@pytest.mark.parametrize("how", ["reload", "restart"])
async def test_neighbours_whose_subnet_moved_to_another_port_are_asked_for_there(
    switch: FakeSwitch, write_config: WriteConfig, how: str
) -> None:
    config = write_config()
    text = config.read_text().replace("refresh_s: 1", "refresh_s: 3600")
    config.write_text(text)
    async with AsyncExitStack() as stack:
        it = await stack.enter_async_context(running(config))
        switch.packet_in(_reply("10.0.2.2", "10.0.2.1"), ingress_port=2, reason=PuntReason.ARP, next_hop=0)
        await until(lambda: switch.entries("neighbours"), "the neighbour entry")
        for old, new in (("10.0.3.1/24", "?"), ("10.0.2.1/24", "10.0.3.1/24"), ("?", "10.0.2.1/24")):
            text = text.replace(old, new)
        config.write_text(text)
        if how == "reload":
            await it.controller.reload()
        else:
            await stack.aclose()
            await stack.enter_async_context(running(config))
        assert not switch.entries("neighbours")
        async with asyncio.timeout(60):
            while (asked := await _out(switch))[0] != 3 or asked[1][ARP].pdst != "10.0.2.2":
                pass


async def test_claims_for_another_subnet_are_not_believed(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()):
        switch.packet_in(_reply("10.0.2.2", "10.0.1.1"), ingress_port=1, reason=PuntReason.ARP, next_hop=0)
        switch.packet_in(b"short", ingress_port=1, reason=PuntReason.ARP, next_hop=0)
        switch.packet_in(_reply("10.0.1.9", "10.0.1.1"), ingress_port=1, reason=PuntReason.ARP, next_hop=0)
        await until(lambda: switch.entries("neighbours"), "the believable neighbour")
        assert len(switch.entries("neighbours")) == 1


async def test_host_that_is_no_server_is_asked_for_on_demand(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()):
        switch.packet_in(
            b"\0" * 60, ingress_port=1, reason=PuntReason.NEIGHBOUR, next_hop=int(IPv4Address("10.0.2.77"))
        )
        async with asyncio.timeout(60):
            while (await _out(switch))[1][ARP].pdst != "10.0.2.77":
                pass
        switch.packet_in(_reply("10.0.2.77", "10.0.2.1"), ingress_port=2, reason=PuntReason.ARP, next_hop=0)
        await until(lambda: switch.entries("neighbours"), "the neighbour entry")


async def test_answers_that_come_together_are_written_together(switch: FakeSwitch, write_config: WriteConfig) -> None:
    hosts = [IPv4Address("10.0.2.100") + number for number in range(100)]
    async with running(write_config()):
        for host in hosts:
            switch.packet_in(b"\0" * 60, ingress_port=1, reason=PuntReason.NEIGHBOUR, next_hop=int(host))
        unasked = {str(host) for host in hosts}
        async with asyncio.timeout(60):
            while unasked:
                unasked.discard((await _out(switch))[1][ARP].pdst)
        before = len(switch.writes)
        for host in hosts:
            switch.packet_in(_reply(str(host), "10.0.2.1"), ingress_port=2, reason=PuntReason.ARP, next_hop=0)
        await until(lambda: len(switch.entries("neighbours")) == len(hosts), "every neighbour's entry")
        assert len(switch.writes) - before < len(hosts) / 2


async def test_time_exceeded_is_answered(switch: FakeSwitch, write_config: WriteConfig) -> None:
    probe = Ether(src=SERVER, dst="02:00:00:00:00:01") / IP(src="10.0.1.50", dst="10.0.2.2", ttl=1)
    probe = Ether(bytes(probe / UDP(sport=4000, dport=33434) / b"traceroute"))
    async with running(write_config()):
        switch.packet_in(bytes(probe), ingress_port=1, reason=PuntReason.TTL, next_hop=0)
        async with asyncio.timeout(60):
            while True:
                port, frame = await _out(switch)
                if ICMP in frame:
                    break
    assert (port, frame.dst, frame.src) == (1, SERVER, "02:00:00:00:00:01")
    assert (frame[IP].src, frame[IP].dst) == ("10.0.1.1", "10.0.1.50")
    assert (frame[ICMP].type, frame[ICMP].code) == (11, 0)
    quoted = bytes(frame[ICMP].payload)[:28]
    assert quoted == bytes(probe[IP])[:28]
    again = frame.copy()
    del again[IP].chksum, again[ICMP].chksum
    assert bytes(Ether(bytes(again))) == bytes(frame), "checksums are scapy's"


@pytest.mark.parametrize(
    "packet",
    [
        Ether() / IP(src="10.0.1.50", dst="10.0.2.2", ttl=1) / ICMP(type=11) / b"12345678",
        Ether() / IP(src="10.0.1.50", dst="10.0.2.2", ttl=1, frag=100) / b"12345678",
        Ether() / IP(src="224.0.0.1", dst="10.0.2.2", ttl=1) / UDP() / b"x",
        Ether(dst="ff:ff:ff:ff:ff:ff") / IP(src="10.0.1.50", dst="10.0.2.2", ttl=1) / TCP(),
    ],
)
def test_no_error_about_errors_fragments_or_groups(packet: Any) -> None:
    from sluice.frames import time_exceeded

    frame = bytes(Ether(bytes(packet)))
    assert time_exceeded(frame, "02:00:00:00:00:01", IPv4Address("10.0.1.1")) is None


A, B = IPv4Address("10.0.2.2"), IPv4Address("10.0.2.77")


def test_questions_back_off_and_go_on_for_configured_hops() -> None:
    table = NeighbourTable(refresh_s=30, retry_s=1, forget_after=3, capacity=10)
    table.want([A])
    asked = [second for second in range(200) if table.due(second)]
    assert asked[:6] == [0, 1, 3, 7, 15, 31]
    assert asked[-1] > 150
    assert not table.forget()


def test_known_neighbour_is_refreshed_and_a_stranger_forgotten() -> None:
    table = NeighbourTable(refresh_s=30, retry_s=1, forget_after=2, capacity=10)
    place = Neighbour(2, SERVER)
    assert not table.heard(B, place, 0), "nobody asked"
    table.unresolved(B, 0)
    assert table.due(0) == [B]
    assert table.heard(B, place, 0.1)
    assert not table.heard(B, place, 0.2), "nothing new"
    assert table.due(29) == []
    asked = [second for second in range(30, 100) if table.due(second)]
    assert asked[0] in (30, 31)
    assert table.known == {B: place}
    assert table.forget()
    assert table.known == {}


def test_flood_of_unknown_hops_is_bounded() -> None:
    table = NeighbourTable(refresh_s=30, retry_s=1, forget_after=2, capacity=4)
    table.want([A])
    for number in range(100):
        table.unresolved(IPv4Address(number), 0)
    assert len(table.due(0)) == 4
