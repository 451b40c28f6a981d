"""The tasks for the switch's neighbours: ARP requests, learning from ARP, waiting packets, and ICMP time exceeded.

The switch answers ARP requests itself, and reports the sender of each ARP message: of replies, of requests for any
host, and of announcements (RFC 5227). The controller learns a sender's place (its port and MAC address) at once
(RFC 826) under two conditions. World.believable must accept the place. In addition, the sender's address must have an
entry in the NeighbourTable, or the sender must request one of the switch's addresses.

The switch sends the controller packets whose next hop it cannot resolve. Such a packet has passed the pipeline, so it
is already translated and counted. The controller queues it until ARP has resolved the next hop. It then sends the
packet through the next hop's port, with new MAC addresses and that port's VLAN tag.
"""

from __future__ import annotations

import asyncio

from finsy import P4PacketIn

from sluice.addresses import Address
from sluice.frames import addressed, arp_request, destination, time_exceeded
from sluice.log import logger
from sluice.names import PuntReason, Table
from sluice.switch.answers import Sender, senders
from sluice.switch.state import Neighbour
from sluice.tokenbucket import TokenBucket

from .link import Link
from .neighbourqueue import NeighbourQueue
from .world import World

_log = logger("neighbours")

TABLES = frozenset({Table.NEIGHBOURS, Table.ROUTES, Table.AGENTS})
"""The tables whose entries depend on the places of neighbours."""


class Neighbours:
    """Resolves next hops by ARP, sends the packets that wait for them, and answers packets whose TTL has expired."""

    def __init__(self, world: World, link: Link) -> None:
        self._world = world
        self._link = link
        self._wake = asyncio.Event()
        self._interfaces = {i.port: i for i in world.config.interfaces}
        self._waiting = NeighbourQueue[Address]()
        limit = world.config.punts.time_exceeded_per_s
        self._time_exceeded = TokenBucket(asyncio.get_running_loop().time(), limit, max(1.0, limit))

    async def ask(self) -> None:
        """Send the ARP requests that are due. Never returns. Raises SwitchError."""
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
        """Handle the packets that the switch sends to the controller. Never returns. Raises SwitchError."""
        while True:
            for packet in await self._link.session.next_packets():
                match packet["reason"]:
                    case PuntReason.TTL:
                        await self._answer(packet)
                    case PuntReason.NEIGHBOUR:
                        await self._unresolved(self._next_hop(packet), packet.payload)
                    case unknown:
                        _log.warning("packet with an unknown reason", extra={"reason": unknown})

    async def learn(self) -> None:
        """Learn the places of neighbours. Never returns. Raises SwitchError.

        All neighbours that are reported during a write are written together afterwards, because each write compares all
        neighbours.
        """
        while True:
            reported = senders(await self._link.session.next_digests())
            learned = [sender for sender in reported if self._is_new(sender)]
            if learned:
                for sender in learned:
                    await self._send_waiting(sender)
                await self._link.apply(self._world.state(), TABLES)
                for sender in learned:
                    fields = {"address": str(sender.address), "port": sender.place.port, "mac": sender.place.mac}
                    _log.info("neighbour learned", extra=fields)
                self._wake.set()

    async def _question(self, address: Address) -> None:
        for interface in self._world.plan.interfaces_towards(address):
            vlan = interface.vlan if isinstance(interface.vlan, int) else None
            frame = arp_request(interface.mac, interface.address.ip, address, vlan)
            await self._link.session.send_packet(frame, interface.port)

    def _is_new(self, sender: Sender) -> bool:
        """Learn the sender of an ARP message. Returns whether its place is new."""
        now = asyncio.get_running_loop().time()
        return self._world.believable(sender.address, sender.place) and self._world.neighbours.learn(
            sender.address, sender.place, now, asks_us=sender.asks_us
        )

    def _next_hop(self, packet: P4PacketIn) -> Address | None:
        """Return the address of an unresolved packet's next hop; None if the packet is too short, or if the next hop's
        number has been freed since the switch sent the packet."""
        number = packet["neighbour"]
        return self._world.neighbour_ids.address(number) if number else destination(packet.payload)

    async def _unresolved(self, address: Address | None, frame: bytes) -> None:
        """Resolve a frame's next hop, for which the switch has no entry. Send the frame once the next hop's place is
        known; drop it if no interface leads to the next hop."""
        if address is None or not self._world.plan.interfaces_towards(address):
            return
        now = asyncio.get_running_loop().time()
        place = self._world.neighbours.unresolved(address, now)
        self._wake.set()
        if place is None:
            self._waiting.put(address, frame, now)
        else:
            await self._send(frame, place)  # the place is known already; the switch's entry is being written

    async def _send_waiting(self, sender: Sender) -> None:
        frame = self._waiting.take(sender.address, asyncio.get_running_loop().time())
        if frame is not None:
            await self._send(frame, sender.place)

    async def _send(self, frame: bytes, place: Neighbour) -> None:
        """Send a neighbour a frame that has already passed the pipeline, as the switch would if it had the neighbour's
        entry."""
        interface = self._interfaces[place.port]
        sent = addressed(frame, interface.mac, place.mac, interface.vlan)
        if sent is not None:
            await self._link.session.send_packet(sent, place.port)

    async def _answer(self, packet: P4PacketIn) -> None:
        interface = self._interfaces.get(packet["ingress_port"])
        if interface is None or not self._time_exceeded.take(asyncio.get_running_loop().time()):
            return
        answer = time_exceeded(packet.payload, interface.mac, interface.address.ip)
        if answer is not None:
            await self._link.session.send_packet(answer, interface.port)
