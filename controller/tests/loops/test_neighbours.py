"""Tests of ARP requests and replies, and of ICMP time exceeded; the frames are compared with those of scapy."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from configs import web
from fakeswitch import FakeSwitch
from finsy import P4DigestList
from live import WriteConfig, running, until
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from sluice.addresses import IPV4_BITS, Address, from_number, from_text
from sluice.config.load import parse
from sluice.features import world_of
from sluice.loops.link import Link
from sluice.loops.neighbourqueue import NeighbourQueue
from sluice.loops.neighbours import Neighbours
from sluice.loops.neighbourtable import NeighbourTable
from sluice.names import PuntReason
from sluice.switch.state import Neighbour, State
from virtual import in_virtual_time

SERVER, OTHER = "02:aa:00:00:00:02", "02:aa:00:00:00:03"


async def _out(switch: FakeSwitch) -> tuple[int, Any]:
    async with asyncio.timeout(60):
        packet = await switch.packets_out.get()
    return int.from_bytes(packet.metadata[0].value, "big"), Ether(packet.payload)


async def _asked_for(switch: FakeSwitch, address: str) -> None:
    async with asyncio.timeout(60):
        while ARP not in (frame := (await _out(switch))[1]) or frame[ARP].pdst != address:
            pass


def _mac(switch: FakeSwitch, address: str) -> str | None:
    """Return a neighbour's MAC address in the switch's table; None if the neighbour has no entry."""
    for entry in switch.entries("neighbours"):
        if entry.metadata.decode() == address:
            return entry.action.action.params[2].value.rjust(6, b"\0").hex(":")
    return None


def _asking_once(config: Path) -> Path:
    """Disable repeated ARP requests, so that the controller learns changes only from reported ARP messages."""
    config.write_text(config.read_text().replace("refresh_s: 1", "refresh_s: 3600"))
    return config


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
        switch.arp(2, "10.0.2.2", SERVER)
        await until(lambda: switch.entries("neighbours"), "the neighbour entry")
        entry = switch.entries("neighbours")[0]
        values = [p.value.rjust(6, b"\0").hex(":") for p in entry.action.action.params]
        assert values[1:] == ["02:00:00:00:00:02", SERVER]


async def test_restarted_controller_keeps_neighbours(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    async with running(config):
        switch.arp(2, "10.0.2.2", SERVER)
        await until(lambda: switch.entries("neighbours"), "the neighbour entry")
    async with running(config) as again:
        assert "updates=0" in again.lines[0]
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
        switch.arp(2, "10.0.2.2", SERVER)
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


async def test_server_that_moves_to_another_mac_address_is_followed_at_once(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    async with running(_asking_once(write_config())):
        switch.arp(2, "10.0.2.2", SERVER)
        await until(lambda: _mac(switch, "10.0.2.2") == SERVER, "the server's place")
        for mac in (OTHER, SERVER, OTHER):
            switch.arp(2, "10.0.2.2", mac)
            await until(lambda mac=mac: _mac(switch, "10.0.2.2") == mac, "the server's new place")


@pytest.mark.parametrize(
    ("port", "address", "mac"),
    [
        pytest.param(1, "10.0.2.2", OTHER, id="a client that takes a server's place"),
        pytest.param(3, "10.0.2.2", OTHER, id="another server's port"),
        pytest.param(9, "10.0.2.2", OTHER, id="a port that is not configured"),
        pytest.param(2, "10.0.2.2", "ff:ff:ff:ff:ff:ff", id="broadcast"),
        pytest.param(2, "10.0.2.2", "01:00:5e:00:00:01", id="multicast"),
        pytest.param(2, "10.0.2.2", "03:aa:00:00:00:02", id="a group's, locally administered"),
        pytest.param(2, "10.0.2.2", "00:00:00:00:00:00", id="none"),
        pytest.param(2, "10.0.2.2", "02:00:00:00:00:02", id="the router's own"),
        pytest.param(2, "10.0.2.2", "02:00:00:00:00:01", id="the router's own on another port"),
        pytest.param(2, "10.0.2.1", OTHER, id="the router's address"),
        pytest.param(1, "10.0.0.100", OTHER, id="a service's address"),
        pytest.param(2, "10.0.2.255", OTHER, id="the subnet's broadcast address"),
        pytest.param(2, "10.0.2.0", OTHER, id="the subnet's own address"),
        pytest.param(2, "0.0.0.0", OTHER, id="a host that has no address yet"),
        pytest.param(2, "224.0.0.1", OTHER, id="a group's address"),
        pytest.param(2, "255.255.255.255", OTHER, id="everybody's address"),
        pytest.param(2, "10.0.2.77", OTHER, id="somebody nobody asked for"),
    ],
)
async def test_what_cannot_be_is_not_believed(
    switch: FakeSwitch, write_config: WriteConfig, port: int, address: str, mac: str
) -> None:
    async with running(_asking_once(write_config())):
        switch.arp(2, "10.0.2.2", SERVER)
        await until(lambda: _mac(switch, "10.0.2.2"), "the server's place")
        switch.arp(port, address, mac)
        switch.arp(1, "10.0.1.9", OTHER)  # a valid message, processed after the invalid one
        await until(lambda: _mac(switch, "10.0.1.9"), "the gateway's place")
        assert _mac(switch, "10.0.2.2") == SERVER
        assert len(switch.entries("neighbours")) == 2


@pytest.mark.parametrize("address", ["10.0.2.1", "10.0.0.100", "10.0.2.255", "10.0.2.0"])
async def test_no_address_of_our_own_is_asked_for_nor_one_that_no_host_has(
    switch: FakeSwitch, write_config: WriteConfig, address: str
) -> None:
    text = _asking_once(write_config()).read_text().replace("address: 10.0.0.100", "address: 10.0.2.100")
    config = write_config()
    config.write_text(text)
    address = address.replace("10.0.0.100", "10.0.2.100")
    async with running(config):
        for hop in (address, "10.0.2.77"):
            _unresolved(switch, hop)
        asked: list[str] = []
        async with asyncio.timeout(60):
            while "10.0.2.77" not in asked:
                asked.append((await _out(switch))[1][ARP].pdst)
        assert address not in asked


@pytest.mark.parametrize("mac", ["ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "02:00:00:00:00:02"])
async def test_place_that_cannot_be_is_not_adopted_from_the_switch(
    switch: FakeSwitch, write_config: WriteConfig, mac: str
) -> None:
    config = _asking_once(write_config())
    async with running(config):
        switch.arp(2, "10.0.2.2", SERVER)
        await until(lambda: _mac(switch, "10.0.2.2"), "the server's place")
    (entry,) = switch.entries("neighbours")
    entry.action.action.params[2].value = bytes.fromhex(mac.replace(":", ""))
    async with running(config):
        assert not switch.entries("neighbours")


async def test_host_that_is_no_server_is_asked_for_on_demand(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()):
        _unresolved(switch, "10.0.2.77")
        await _asked_for(switch, "10.0.2.77")
        switch.arp(2, "10.0.2.77", SERVER)
        await until(lambda: switch.entries("neighbours"), "the neighbour entry")


async def test_host_that_asks_for_one_of_our_addresses_is_learned_at_once(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    async with running(_asking_once(write_config())):
        switch.arp(1, "10.0.1.77", OTHER)  # an ARP request for another host: its sender is not learned
        switch.arp(1, "10.0.1.50", SERVER, answered_by="10.0.1.1")
        switch.arp(1, "10.0.1.51", SERVER, answered_by="10.0.0.100")
        await until(lambda: _mac(switch, "10.0.1.50") and _mac(switch, "10.0.1.51"), "the clients' places")
        assert _mac(switch, "10.0.1.77") is None


@pytest.mark.parametrize(
    ("port", "address", "mac"),
    [
        pytest.param(2, "10.0.1.50", OTHER, id="of another port's subnet"),
        pytest.param(1, "10.0.1.50", "01:00:5e:00:00:01", id="multicast"),
        pytest.param(1, "0.0.0.0", OTHER, id="a host that probes for its own address"),
        pytest.param(1, "10.0.1.255", OTHER, id="the subnet's broadcast address"),
    ],
)
async def test_asker_that_cannot_be_there_is_not_learned(
    switch: FakeSwitch, write_config: WriteConfig, port: int, address: str, mac: str
) -> None:
    async with running(_asking_once(write_config())):
        switch.arp(port, address, mac, answered_by="10.0.0.100")
        switch.arp(1, "10.0.1.9", OTHER)  # a valid message, processed after the invalid one
        await until(lambda: _mac(switch, "10.0.1.9"), "the gateway's place")
        assert len(switch.entries("neighbours")) == 1


HELD = Ether(src=SERVER, dst="02:00:00:00:00:02") / IP(src="10.0.0.100", dst="10.0.1.50") / TCP(flags="SA") / bytes(20)


def _unresolved(switch: FakeSwitch, address: str, frame: Any = HELD, neighbour: int = 0) -> None:
    """Send the controller a packet to `address`, because the MAC address of its next hop is unknown.

    `neighbour`: the next hop's id; 0: the address itself is the next hop.
    """
    packet = frame.copy()
    packet[IP].dst = address
    del packet[IP].chksum
    switch.packet_in(bytes(packet), ingress_port=2, reason=PuntReason.NEIGHBOUR, neighbour=neighbour)


async def _next(switch: FakeSwitch, layer: Any) -> tuple[int, Any]:
    """Return port and frame of the controller's next packet-out that contains this scapy layer."""
    async with asyncio.timeout(60):
        while layer not in (out := await _out(switch))[1]:
            pass
    return out


async def test_packet_waits_for_its_neighbour_and_leaves_unchanged_but_for_its_link(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    async with running(_asking_once(write_config())):
        _unresolved(switch, "10.0.1.50")
        await _asked_for(switch, "10.0.1.50")
        switch.arp(1, "10.0.1.50", OTHER)
        port, frame = await _next(switch, IP)
        assert (port, frame.src, frame.dst) == (1, "02:00:00:00:00:01", OTHER)
        assert bytes(frame)[12:] == bytes(HELD)[12:]
        await until(lambda: _mac(switch, "10.0.1.50") == OTHER, "the client's place")


async def test_packet_for_a_gateway_waits_for_the_gateway(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(_asking_once(write_config())):
        (route,) = (entry for entry in switch.entries("routes") if entry.metadata == b"10.0.1.9")
        _unresolved(switch, "99.0.0.1", neighbour=int.from_bytes(route.action.action.params[0].value))
        switch.arp(1, "10.0.1.9", OTHER)
        port, frame = await _next(switch, IP)
        assert (port, frame.dst, frame[IP].dst) == (1, OTHER, "99.0.0.1")


@pytest.mark.parametrize("frame", [b"", bytes(20), b"\0" * 12 + b"\x08\x00" + b"\x45"])
async def test_packet_of_an_unknown_or_no_neighbour_is_dropped(
    switch: FakeSwitch, write_config: WriteConfig, frame: bytes
) -> None:
    async with running(_asking_once(write_config())):
        for neighbour in (0, 999, 0xFFFF):
            switch.packet_in(frame, ingress_port=2, reason=PuntReason.NEIGHBOUR, neighbour=neighbour)
        _unresolved(switch, "10.0.2.77")
        await _asked_for(switch, "10.0.2.77")


async def test_packet_that_overtakes_the_entry_of_its_neighbour_is_sent_at_once(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    async with running(_asking_once(write_config())):
        switch.arp(1, "10.0.1.50", OTHER, answered_by="10.0.0.100")
        await until(lambda: _mac(switch, "10.0.1.50") == OTHER, "the client's place")
        _unresolved(switch, "10.0.1.50")
        assert (await _next(switch, IP))[1].dst == OTHER


@pytest.mark.parametrize(
    ("tag", "out", "prio"),
    [(None, 7, 0), (Dot1Q(vlan=42, prio=5), 7, 5)],
)
async def test_packet_that_waited_leaves_with_the_tag_of_its_port(
    switch: FakeSwitch, write_config: WriteConfig, tag: Any, out: int, prio: int
) -> None:
    frame = HELD.copy()
    frame[IP].dst = "10.0.3.77"
    if tag is not None:
        frame = Ether(bytes(Ether(src=SERVER, dst="02:00:00:00:00:02") / tag / frame[IP]))
    async with running(_asking_once(write_config())):
        _unresolved(switch, "10.0.3.77", frame)
        switch.arp(3, "10.0.3.77", OTHER)
        port, sent = await _next(switch, IP)
        assert (port, sent.dst, sent[Dot1Q].vlan, sent[Dot1Q].prio) == (3, OTHER, out, prio)
        assert bytes(sent[IP]) == bytes(frame[IP])


async def test_answers_that_come_together_are_written_together(switch: FakeSwitch, write_config: WriteConfig) -> None:
    hosts = [from_text("10.0.2.100") + number for number in range(100)]
    async with running(write_config()):
        for host in hosts:
            _unresolved(switch, str(host))
        unasked = {str(host) for host in hosts}
        async with asyncio.timeout(60):
            while unasked:
                unasked.discard((await _out(switch))[1][ARP].pdst)
        before = len(switch.writes)
        for host in hosts:
            switch.arp(2, str(host), SERVER)
        await until(lambda: len(switch.entries("neighbours")) == len(hosts), "every neighbour's entry")
        assert len(switch.writes) - before < len(hosts) / 2


async def test_time_exceeded_is_answered(switch: FakeSwitch, write_config: WriteConfig) -> None:
    probe = Ether(src=SERVER, dst="02:00:00:00:00:01") / IP(src="10.0.1.50", dst="10.0.2.2", ttl=1)
    probe = Ether(bytes(probe / UDP(sport=4000, dport=33434) / b"traceroute"))
    async with running(write_config()):
        switch.packet_in(bytes(probe), ingress_port=1, reason=PuntReason.TTL, neighbour=0)
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
    assert time_exceeded(frame, "02:00:00:00:00:01", from_text("10.0.1.1")) is None


class Wire:
    """A stand-in for the controller's link and session; it records packets and writes with their virtual time."""

    def __init__(self) -> None:
        self.session = self
        self.asked: list[tuple[float, str]] = []
        self.written: list[tuple[float, dict[Address, Neighbour]]] = []
        self._told: asyncio.Queue[P4DigestList] = asyncio.Queue()

    def arp(self, port: int, address: str, mac: str) -> None:
        """Report the sender of an ARP message to the controller."""
        sender = int(from_text(address))
        said: Any = {
            "ingress_port": port,
            "address": sender,
            "mac": int(mac.replace(":", ""), 16),
            "answered_by": sender,
        }
        self._told.put_nowait(P4DigestList("arp_sender_t", list_id=1, timestamp=0, data=[said]))

    async def next_digests(self) -> list[P4DigestList]:
        return [await self._told.get()]

    async def send_packet(self, frame: bytes, _port: int) -> None:
        self.asked.append((asyncio.get_running_loop().time(), Ether(frame)[ARP].pdst))

    async def apply(self, state: State, _tables: object) -> int:
        self.written.append((asyncio.get_running_loop().time(), dict(state.neighbours)))
        return 1


def test_move_is_written_when_it_is_reported_and_asked_for_a_refresh_later() -> None:
    wire, world = Wire(), world_of(parse(web().replace("refresh_s: 1", "refresh_s: 30")))
    server = from_text("10.0.2.2")

    async def scene() -> None:
        neighbours = Neighbours(world, cast(Link, wire))
        tasks = [asyncio.create_task(task) for task in (neighbours.ask(), neighbours.learn())]
        for at_s, mac in ((1, SERVER), (11, OTHER), (12, OTHER), (13, "ff:ff:ff:ff:ff:ff"), (60, OTHER)):
            await asyncio.sleep(at_s - asyncio.get_running_loop().time())
            wire.arp(2, str(server), mac)
        for task in tasks:
            task.cancel()

    in_virtual_time(scene())
    assert [(at_s, known[server].mac) for at_s, known in wire.written] == [(1, SERVER), (11, OTHER)]
    assert next(at_s for at_s, address in wire.asked if address == str(server) and at_s > 1) == 12 + 30


A, B = from_text("10.0.2.2"), from_text("10.0.2.77")


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
    assert not table.learn(B, place, 0), "nobody asked"
    table.unresolved(B, 0)
    assert table.due(0) == [B]
    assert table.learn(B, place, 0.1)
    assert not table.learn(B, place, 0.2), "nothing new"
    assert table.due(29) == []
    asked = [second for second in range(30, 100) if table.due(second)]
    assert asked[0] in (30, 31)
    assert table.known == {B: place}
    assert table.forget()
    assert table.known == {}


def test_unknown_hop_is_asked_for_at_once_but_no_more_often_than_the_pause() -> None:
    table = NeighbourTable(refresh_s=30, retry_s=1, forget_after=9, capacity=10)
    table.want([A])
    asked = [second for second in range(20) if table.due(second)]
    assert asked == [0, 1, 3, 7, 15]
    assert table.unresolved(A, 20.0) is None
    assert table.due(20.0) == [A]
    for _ in range(100):
        table.unresolved(A, 20.5)
    assert table.due(20.9) == []
    assert table.due(21.0) == [A]


def test_place_that_is_known_is_given_to_what_finds_no_entry() -> None:
    table = NeighbourTable(refresh_s=30, retry_s=1, forget_after=2, capacity=10)
    assert table.learn(B, Neighbour(2, SERVER), 0, asks_us=True)
    assert table.unresolved(B, 1) == Neighbour(2, SERVER)


def test_flood_of_askers_is_bounded_and_forgotten() -> None:
    table = NeighbourTable(refresh_s=30, retry_s=1, forget_after=2, capacity=4)
    for number in range(100):
        table.learn(from_number(number, IPV4_BITS), Neighbour(2, SERVER), 0, asks_us=True)
    assert len(table.known) == 4
    for second in range(200):
        table.due(second)
    assert table.forget()
    assert table.known == {}


def test_newest_packet_of_each_neighbour_waits() -> None:
    queue = NeighbourQueue[str](capacity=3, lifetime_s=1.0)
    queue.put("a", b"1", 0.0)
    queue.put("a", b"2", 0.1)
    queue.put("b", b"3", 0.2)
    assert queue.take("a", 0.3) == b"2"
    assert queue.take("a", 0.3) is None
    assert queue.take("b", 1.2) == b"3"
    assert queue.take("c", 1.2) is None


def test_packets_wait_no_longer_than_their_lifetime() -> None:
    queue = NeighbourQueue[str](capacity=3, lifetime_s=1.0)
    queue.put("a", b"1", 0.0)
    assert queue.take("a", 1.1) is None


def test_oldest_packet_makes_room() -> None:
    queue = NeighbourQueue[int](capacity=3)
    for number in range(5):
        queue.put(number, b"%d" % number, number / 100)
    queue.put(2, b"again", 0.06)
    assert len(queue) == 3
    assert [queue.take(number, 0.1) for number in range(5)] == [None, None, b"again", b"3", b"4"]


def test_flood_of_unknown_hops_is_bounded() -> None:
    table = NeighbourTable(refresh_s=30, retry_s=1, forget_after=2, capacity=4)
    table.want([A])
    for number in range(100):
        table.unresolved(from_number(number, IPV4_BITS), 0)
    assert len(table.due(0)) == 4


def test_configured_hops_displace_the_silent_neighbours_of_a_full_table() -> None:
    table = NeighbourTable(refresh_s=30, retry_s=1, forget_after=9, capacity=4)
    strangers = [from_number(number, IPV4_BITS) for number in range(5)]
    for address in strangers[:4]:
        table.learn(address, Neighbour(2, SERVER), 0, asks_us=True)
    assert len(table.due(30)) == 4
    for address in strangers[1:3]:
        table.learn(address, Neighbour(2, SERVER), 30, asks_us=True)
    table.want([A, B])
    table.adopt(strangers[4], Neighbour(2, SERVER))
    assert (set(table.known), set(table.missing)) == (set(strangers[1:3]), {A, B})
