"""The tasks that talk to the switch's neighbours: ARP both ways, and ICMP time exceeded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from ipaddress import IPv4Address

from finsy import P4PacketIn

from sluice.frames import Arp, arp_request, mac_text, time_exceeded
from sluice.log import logger
from sluice.names import PuntReason, Table
from sluice.switch.state import Neighbour
from sluice.tokenbucket import TokenBucket

from .link import Link
from .world import World

_log = logger("neighbours")

TABLES = frozenset({Table.NEIGHBOURS})


class Neighbours:
    """Asks for next hops, learns them from the answers, and answers packets whose TTL ran out."""

    def __init__(self, world: World, link: Link) -> None:
        self._world = world
        self._link = link
        self._wake = asyncio.Event()
        self._interfaces = {i.port: i for i in world.config.interfaces}
        limit = world.config.punts.time_exceeded_per_s
        self._time_exceeded = TokenBucket(asyncio.get_running_loop().time(), limit, max(1.0, limit))

    async def ask(self) -> None:
        """Send the questions that are due. Never returns; raises SwitchError."""
        table, loop = self._world.neighbours, asyncio.get_running_loop()
        while True:
            for address in table.due(loop.time()):
                await self._question(address)
            if table.forget():
                await self._link.apply(self._world.state(), TABLES)
            due = table.next_time()
            self._wake.clear()
            try:
                async with asyncio.timeout(None if due is None else max(0.0, due - loop.time())):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def listen(self) -> None:
        """Take in the switch's packets. Never returns; raises SwitchError.

        Answers that came while others were written are written together: each writing compares all neighbours.
        """
        while True:
            learned: dict[IPv4Address, Neighbour] = {}
            for packet in await self._link.session.next_packets():
                match packet["reason"]:
                    case PuntReason.ARP:
                        learned |= self._heard(packet)
                    case PuntReason.TTL:
                        await self._answer(packet)
                    case PuntReason.NEIGHBOUR:
                        self._unresolved(IPv4Address(packet["next_hop"]))
                    case other:
                        _log.warning("packet with an unknown reason", extra={"reason": other})
            if learned:
                await self._write(learned)

    async def _question(self, address: IPv4Address) -> None:
        for interface in self._world.plan.interfaces_towards(address):
            vlan = interface.vlan if isinstance(interface.vlan, int) else None
            frame = arp_request(interface.mac, interface.address.ip, address, vlan)
            await self._link.session.send_packet(frame, interface.port)

    def _heard(self, packet: P4PacketIn) -> dict[IPv4Address, Neighbour]:
        """What an ARP packet tells that is new."""
        arp = Arp.parse(packet.payload)
        interface = self._interfaces.get(packet["ingress_port"])
        if arp is None or interface is None or not arp.is_reply:
            return {}
        if arp.sender not in interface.address.network or arp.sender_mac[0] & 1:
            # Not an address of that subnet, or not the MAC address of one host: whoever sends this is mistaken.
            return {}
        neighbour = Neighbour(interface.port, mac_text(arp.sender_mac))
        now = asyncio.get_running_loop().time()
        return {arp.sender: neighbour} if self._world.neighbours.heard(arp.sender, neighbour, now) else {}

    async def _write(self, learned: Mapping[IPv4Address, Neighbour]) -> None:
        await self._link.apply(self._world.state(), TABLES)
        for address, neighbour in learned.items():
            fields = {"address": str(address), "port": neighbour.port, "mac": neighbour.mac}
            _log.info("neighbour learned", extra=fields)
        self._wake.set()

    def _unresolved(self, address: IPv4Address) -> None:
        if self._world.plan.interfaces_towards(address):
            self._world.neighbours.unresolved(address, asyncio.get_running_loop().time())
            self._wake.set()

    async def _answer(self, packet: P4PacketIn) -> None:
        interface = self._interfaces.get(packet["ingress_port"])
        if interface is None or not self._time_exceeded.take(asyncio.get_running_loop().time()):
            return
        answer = time_exceeded(packet.payload, interface.mac, interface.address.ip)
        if answer is not None:
            await self._link.session.send_packet(answer, interface.port)
