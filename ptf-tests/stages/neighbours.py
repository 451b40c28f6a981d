"""Tests of neighbours that move: a controller runs during the test, and packets follow plausible ARP messages."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from contextlib import suppress
from typing import Any

from finsy import P4TableEntry
from harness import entries, plan
from harness.base import AWAIT_S, StageTest
from harness.flow import Flow
from harness.frames import ARP, BROADCAST, IP, TCP, Ether, Packet, layers, octets
from harness.plan import (
    CLIENT,
    CLIENT_GATEWAY,
    CLIENT_HOST,
    POOL_A,
    POOL_B,
    PORTS,
    S1,
    S1_HOST,
    S2_HOST,
    S3_HOST,
    UPLINK_HOST,
    WEB,
    Host,
    Port,
)
from harness.probes import plain
from harness.switch import differences
from sluice.config.load import parse
from sluice.controller import Controller
from sluice.features.balance.trace import Trace
from sluice.names import Meter, PuntReason, Register, Table

PROBE_S = 0.2
"""Seconds to wait for a probe; the switch drops a probe to an unknown neighbour, and the test sends another one."""

PLACES = [f"02:00:00:00:aa:{number:02x}" for number in range(64)]
"""MAC addresses for neighbours that move."""


def configuration(switch: Any, election_id: int) -> str:
    """Return a configuration with the plan's network, in which the controller does not refresh neighbours by itself."""
    at = switch.parameters
    interfaces = "".join(
        f'- {{port: {switch.number(port)}, mac: "{port.mac}", address: {port.address}/24}}\n' for port in PORTS
    )
    routes = "".join(f"- {{to: {to}, via: {via}}}\n" for to, via in plan.ROUTES if via)
    servers = "".join(
        f"  - {{name: s{server.id}, address: {server.host.address}, port: {server.port}}}\n" for server in WEB.servers
    )
    return (
        f'switch: {{address: "{at.address}", device_id: {at.device_id}, election_id: {election_id},'
        f' pipeline: "{at.pipeline}"{f", thrift: {at.thrift!r}" if at.thrift else ""}}}\n'
        f"interfaces:\n{interfaces}routes:\n{routes}"
        f"services:\n- name: web\n  address: {WEB.address}\n  port: {WEB.port}\n  servers:\n{servers}"
        "neighbours: {refresh_s: 3600, retry_s: 60}\n"
    )


class Running:
    """A controller in a thread of its own."""

    def __init__(self, text: str) -> None:
        self.messages: list[str] = []
        self.error: BaseException | None = None
        self._text = text
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="controller", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        async def main() -> None:
            controller = Controller(parse(self._text), "", Trace(None), self.messages.append)
            self._task = asyncio.create_task(controller.run())
            with suppress(asyncio.CancelledError):
                await self._task

        try:
            with self._runner:
                self._runner.run(main())
        except Exception as error:
            self.error = error

    def close(self) -> None:
        """Stop the controller, as Ctrl-C does."""
        if self._thread.is_alive() and self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(AWAIT_S)


class ControlledTest(StageTest):
    """Base class: a controller is the primary controller of the switch until the end of the test."""

    def setUp(self) -> None:
        super().setUp()
        client = self.switch.client
        self._places = iter(PLACES)
        self._probes = itertools.count()
        self.addCleanup(self._put_back)
        self.controller = Running(configuration(self.switch, client.election_id + 1))
        self.addCleanup(self._lead_again, client.election_id + 2)
        self._until(lambda: self.controller.messages or self.controller.error, "the controller to lead")
        self.assertIsNone(self.controller.error)
        self.assertIn("sluice: ready", self.controller.messages[0])

    def _lead_again(self, election_id: int) -> None:
        self.controller.close()
        self.switch.client.take_over(election_id)

    def _put_back(self) -> None:
        self.switch.restore()
        self.switch.modify([entries.unmetered(Meter.PUNT_LIMIT, reason) for reason in PuntReason if reason])

    def _until(self, condition: Any, what: str) -> None:
        deadline = time.monotonic() + AWAIT_S
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f"waited {AWAIT_S:g} s in vain for {what}")
            time.sleep(0.01)

    def place(self) -> str:
        """Return a MAC address that no neighbour has had before."""
        return next(self._places)

    def sends_arp(
        self, port: Port, address: str, mac: str, *, op: int = 1, to: str = BROADCAST, target: str = ""
    ) -> None:
        """Send an ARP message with this sender for the address `target`; without `target`, it is gratuitous."""
        sender = CLIENT_HOST.mac if port is CLIENT else S1_HOST.mac
        arp = ARP(op=op, hwsrc=mac, psrc=address, hwdst="00:00:00:00:00:00", pdst=target or address)
        self.inject(port, layers(Ether(dst=to, src=sender), arp))

    def goes_to(self, host: Host) -> str | None:
        """Return the MAC address to which the switch sends a packet for a host; None if the switch sends no packet.

        Each probe has a number, so that a late probe is not mistaken for the next one.
        """
        source = UPLINK_HOST if host.port is not UPLINK_HOST.port else CLIENT_HOST
        probe = b"probe %d of a place" % next(self._probes)
        frame = octets(plain(source, host.address, payload=probe))
        self.inject(source.port, frame)
        number, deadline = self.switch.number(host.port), time.monotonic() + PROBE_S
        while (remaining_s := deadline - time.monotonic()) > 0:
            polled = self.dataplane.poll(device_number=0, port_number=number, timeout=remaining_s)
            if polled.packet is not None:
                out: Packet = Ether(bytes(polled.packet))
                if IP in out and probe in bytes(out):
                    return str(out.dst)
        return None

    def followed(self, host: Host, mac: str) -> None:
        """Wait until the switch sends packets for a host to this MAC address."""
        self._until(lambda: self.goes_to(host) == mac, f"packets for {host.address} to go to {mac}")

    def known(self) -> set[str]:
        """Return the addresses of the switch's neighbour entries."""
        entities = self.switch.client.find([P4TableEntry(Table.NEIGHBOURS)])
        return {e.table_entry.metadata.decode() for e in entities}


class ServerMoves(ControlledTest):
    """If a server's address moves to another MAC address, packets follow every kind of ARP message that reports it."""

    def runTest(self) -> None:
        self.followed(S1_HOST, S1_HOST.mac)
        for to in (BROADCAST, POOL_A.mac):
            for op in (1, 2):
                for target in ("", POOL_A.address, WEB.address, "10.0.2.77", S2_HOST.address):
                    mac = self.place()
                    self.sends_arp(POOL_A, S1_HOST.address, mac, op=op, to=to, target=target)
                    self.followed(S1_HOST, mac)


class ServerStays(ControlledTest):
    """The controller ignores ARP messages whose sender cannot be a neighbour: an address outside of the port's network,
    an address of the switch, no host's address, a group or zero MAC address."""

    def runTest(self) -> None:
        self.followed(S1_HOST, S1_HOST.mac)
        for port, address, mac in (
            (CLIENT, S1_HOST.address, self.place()),
            (POOL_B, S1_HOST.address, self.place()),
            (POOL_A, S1_HOST.address, BROADCAST),
            (POOL_A, S1_HOST.address, "01:00:5e:00:00:01"),
            (POOL_A, S1_HOST.address, "00:00:00:00:00:00"),
            (POOL_A, S1_HOST.address, POOL_A.mac),
            (POOL_A, S1_HOST.address, CLIENT.mac),
            (POOL_A, POOL_A.address, self.place()),
            (CLIENT, WEB.address, self.place()),
            (POOL_A, "10.0.2.255", self.place()),
            (POOL_A, "0.0.0.0", self.place()),
        ):
            for op in (1, 2):
                self.sends_arp(port, address, mac, op=op, target=port.address)
                self._behind(port)
                self.assertEqual(self.goes_to(S1_HOST), S1_HOST.mac, f"{address} at {mac} was believed")
        for op in (1, 2):
            # Neither message is for an address of the router, so the unknown sender is not learned.
            self.sends_arp(POOL_A, "10.0.2.77", self.place(), op=op)
            self._behind(POOL_A)
        self.assertEqual(self.known() & {POOL_A.address, WEB.address, "10.0.2.255", "0.0.0.0", "10.0.2.77"}, set())

    def _behind(self, port: Port) -> None:
        """Send a plausible ARP message by this port, and wait until packets are sent to its MAC address.

        The controller has then processed all earlier messages.
        """
        host = {CLIENT: CLIENT_GATEWAY, POOL_A: S2_HOST, POOL_B: S3_HOST}[port]
        mac = self.place()
        self.sends_arp(port, host.address, mac)
        self.followed(host, mac)


class AskerIsLearned(ControlledTest):
    """A host that requests an address of the router is learned without a request by the controller."""

    def runTest(self) -> None:
        for number, target in enumerate((CLIENT.address, WEB.address), start=77):
            client = Host(CLIENT, f"10.0.1.{number}", self.place())
            self.sends_arp(CLIENT, client.address, client.mac, target=target)
            self.followed(client, client.mac)


class AnswerWaitsForItsClient(ControlledTest):
    """The SYN-ACK to a client whose MAC address is unknown waits for the ARP reply, is then sent, and counts once."""

    def runTest(self) -> None:
        client = Host(CLIENT, "10.0.1.77", self.place())
        flow = Flow(WEB, S1, client.address)
        for host in (S1_HOST, S2_HOST, S3_HOST):
            self.followed(host, host.mac)
        before = self.switch.counts()
        self.inject(CLIENT, flow.syn())
        chosen = self._next(TCP, POOL_A, POOL_B)[IP].dst
        flow = flow.to(next(server for server in WEB.servers if server.host.address == chosen))
        answer = flow.syn_ack()
        self.inject(flow.server.host.port, answer)
        while (question := self._next(ARP, CLIENT)[ARP]).pdst != client.address:
            pass  # skips the requests that the controller sends at its start
        self.assertEqual(question.psrc, CLIENT.address)
        self.sends_arp(CLIENT, client.address, client.mac, op=2, to=CLIENT.mac, target=CLIENT.address)
        expected: Any = flow.at_client(answer)
        expected[Ether].dst = client.mac
        self.assertEqual(octets(self._next(TCP, CLIENT)).hex(" ", 2), self.padded(octets(expected)).hex(" ", 2))
        self.followed(client, client.mac)
        changes = differences(before, self.switch.counts())
        self.assertEqual(changes.get((Register.LEDGER_SYNACK, flow.server.id)), 1)
        self.assertNotIn((Register.LEDGER_SYNACK_AGAIN, flow.server.id), changes)

    def _next(self, layer: Any, *ports: Port) -> Any:
        """Return the next frame with this layer from any of these ports."""
        deadline = time.monotonic() + AWAIT_S
        frame: Packet = Ether()
        for port in itertools.cycle(ports):
            polled = self.dataplane.poll(device_number=0, port_number=self.switch.number(port), timeout=0.05)
            if polled.packet is not None and layer in (frame := Ether(bytes(polled.packet))):
                break
            if time.monotonic() > deadline:
                self.fail(f"waited {AWAIT_S:g} s in vain for a frame with {layer.__name__}")
        return frame
