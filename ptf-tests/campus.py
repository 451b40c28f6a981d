"""Test the Tofino gateway on Tofino's model by a finsy program: `campus.py`, as root, with $SDE_INSTALL.

The gateway's test program is campus. The controller is a learning switch, like the example in finsy: a digest reports
each new host, and an idle timeout removes a silent host. The controller also uses a ternary table with direct counters,
a register, packet-ins and packet-outs.

``--shell PYTHON`` names an interpreter that has p4runtime-shell. campus_shell.py then makes the same requests with
p4runtime-shell.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "ptf-tests"
sys.path[:0] = [str(ROOT), str(ROOT / "controller"), str(HERE)]

import finsy as fy  # noqa: E402 (needs the path)
from harness import targets  # noqa: E402
from harness.frames import IP, UDP, Ether, octets  # noqa: E402

from topo.testbed import namespaces  # noqa: E402
from topo.testbed.errors import SetupError  # noqa: E402

CAMPUS = ROOT / "gateway/tests/campus"
LOGS = ROOT / "results/ptf/campus"
PORTS = [1, 2, 3]
FLOOD = 1
"""Number of the multicast group that contains all ports."""
SILENT_S = 2
"""Seconds without a frame after which the switch reports a host as idle."""
AWAIT_S = 20.0
ADA, BOB = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


class NoConfig:
    """An empty device configuration, because the driver has already loaded the program."""

    def __bytes__(self) -> bytes:
        return b""


class LearningSwitch:
    """A controller that stores the port of each host that a digest reported, and the packet-ins that it receives."""

    def __init__(self, switch: fy.Switch) -> None:
        self.switch = switch
        self.hosts: dict[int, int] = {}
        self.punted: asyncio.Queue[fy.P4PacketIn] = asyncio.Queue()

    async def run(self) -> None:
        """Write the first entries into the empty switch, and start the tasks that read from the switch."""
        for reader in (self._digests, self._timeouts, self._packets):
            self.switch.create_task(reader())
        flood = fy.P4TableAction("flood", group=FLOOD)
        await self.switch.write(
            [
                +fy.P4DigestEntry("new_host", max_list_size=1, ack_timeout_ns=10**9),
                +fy.P4MulticastGroupEntry(FLOOD, replicas=PORTS),
                ~fy.P4TableEntry("stations", action=flood, is_default_action=True),
            ]
        )

    async def _digests(self) -> None:
        async for digest in self.switch.read_digests("new_host"):
            for host in digest:
                new: Any = host
                source, port = int(new["source"]), int(new["port"])
                match = {"source": source, "ingress_port": port}
                known = fy.P4TableEntry(
                    "hosts", match=fy.Match(match), action=fy.Action("known"), idle_timeout_ns=SILENT_S * 10**9
                )
                await self.switch.write([+known, +self._station(source, port)])
                self.hosts[source] = port
            await self.switch.write([digest.ack()])

    async def _timeouts(self) -> None:
        async for silent in self.switch.read_idle_timeouts():
            for entry in silent:
                source, port = int(entry["source"]), int(entry["ingress_port"])
                match = fy.Match({"source": source, "ingress_port": port})
                await self.switch.write([-fy.P4TableEntry("hosts", match=match), -self._station(source, port)])
                del self.hosts[source]

    async def _packets(self) -> None:
        async for packet in self.switch.read_packets():
            await self.punted.put(packet)

    @staticmethod
    def _station(address: int, port: int) -> fy.P4TableEntry:
        match = fy.Match({"destination": address})
        return fy.P4TableEntry("stations", match=match, action=fy.Action("forward", port=port))


class Wires:
    """The test's ends of the cables that lead to the switch's ports."""

    def __init__(self, cables: list[namespaces.Cable]) -> None:
        self._sockets = {}
        for cable in cables:
            wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            wire.bind((cable.test_end, 0))
            wire.setblocking(False)
            self._sockets[cable.port] = wire

    def send(self, port: int, frame: bytes) -> None:
        """Send a frame to a port of the switch."""
        self._sockets[port].send(frame)

    async def receives(self, port: int, frame: bytes) -> None:
        """Wait until the switch sends this frame by the port."""
        async with asyncio.timeout(AWAIT_S):
            while not (await asyncio.get_running_loop().sock_recv(self._sockets[port], 2048)).startswith(frame):
                pass

    def is_silent(self, port: int, frame: bytes) -> bool:
        """Read the frames that the switch has sent by the port; return False if `frame` is one of them."""
        while True:
            try:
                if self._sockets[port].recv(2048).startswith(frame):
                    return False
            except BlockingIOError:
                return True


async def read(switch: fy.Switch, entities: Any) -> list[Any]:
    """Return all entries of the switch that match the given entities."""
    answers: Any = switch.read(entities)
    return [entry async for entry in answers]


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until the condition is true, then print the condition's description `what`."""
    async with asyncio.timeout(AWAIT_S):
        while not condition():  # noqa: ASYNC110 (kernel and switch change the state; no event here)
            await asyncio.sleep(0.1)
    print(f"ok: {what}", flush=True)


def station_frame(source: str, destination: str) -> bytes:
    """Return an Ethernet frame that contains no IPv4 packet."""
    return octets(Ether(src=source, dst=destination, type=0x88B5) / bytes(60))


def datagram(source: str, ttl: int = 64) -> bytes:
    """Return an Ethernet frame with an IPv4 datagram of 90 bytes, a length that a rule of `filters` matches."""
    return octets(Ether(src=ADA, dst=BOB) / IP(src=source, dst="10.2.0.1", ttl=ttl) / UDP(sport=1, dport=2) / bytes(62))


async def learns_and_forgets(app: LearningSwitch, wires: Wires) -> None:
    """Check that a digest reports a new host, and that an idle timeout removes a silent host.

    In between, frames to the host leave only by the host's port.
    """
    ada, bob = (int(address.replace(":", ""), 16) for address in (ADA, BOB))
    first = station_frame(ADA, BOB)
    wires.send(1, first)
    for port in (2, 3):
        await wires.receives(port, first)
    await until(lambda: app.hosts == {ada: 1}, "a new host's digest; its frame went to all ports")
    answer = station_frame(BOB, ADA)
    wires.send(2, answer)
    await wires.receives(1, answer)
    await until(lambda: bob in app.hosts, "the host that answers is learned")
    assert wires.is_silent(3, answer), "a frame for a known host went to all ports"
    await until(lambda: not app.hosts, "silent hosts are forgotten by their idle timeouts")
    assert not await read(app.switch, fy.P4TableEntry("stations"))


async def filters(app: LearningSwitch, wires: Wires) -> None:
    """Check that of two matching ternary entries, the entry with the higher priority applies and counts.

    Also check that a datagram without a matching entry follows its route, and that a register counts arrivals.
    """

    def rule(source: str, priority: int, action: str, **more: object) -> fy.P4TableEntry:
        match = fy.Match({"source": source, **more})
        return fy.P4TableEntry("acl", match=match, action=fy.Action(action), priority=priority)

    wide, narrow = (
        rule("10.1.0.0/16", 10, "deny"),
        rule("10.1.1.1", 20, "punt", **{"total_length": "60...200"}),
    )
    await app.switch.write([+wide, +narrow])
    send_to_3 = fy.P4IndirectAction([1 * fy.Action("send", port=3)])
    route = fy.P4TableEntry("routes", match=fy.Match({"destination": "10.2.0.0/16"}), action=send_to_3)
    await app.switch.write([+route])
    denied, punted, passed = datagram("10.1.2.3"), datagram("10.1.1.1"), datagram("10.9.9.9")
    for frame in (denied, punted, passed):
        wires.send(1, frame)
    await wires.receives(3, passed)
    packet = await asyncio.wait_for(app.punted.get(), AWAIT_S)
    assert packet["ingress_port"] == 1 and packet.payload.startswith(punted), packet
    print("ok: a ternary entry punts, with its port", flush=True)
    assert wires.is_silent(3, denied), "a denied datagram left"
    counted = [
        fy.P4TableEntry("acl", match=each.match, priority=each.priority, counter_data=fy.P4CounterData())
        for each in (wide, narrow)
    ]
    counts = {entry.priority: entry.counter_data.packet_count for entry in await read(app.switch, counted)}
    assert counts == {10: 1, 20: 1}, counts
    print(f"ok: direct counters of both entries, {counts}", flush=True)
    (arrivals,) = await read(app.switch, fy.P4RegisterEntry("arrivals", index=1))
    assert arrivals.data >= 4, arrivals
    print(f"ok: a register counts arrivals, {arrivals.data}", flush=True)
    await app.switch.delete([wide, narrow, route])


async def sends(app: LearningSwitch, wires: Wires) -> None:
    """Check that the switch sends a packet-out by the port in the packet-out's header."""
    frame = station_frame(BOB, ADA)
    await app.switch.write([fy.P4PacketOut(frame, egress_port=2, unused=0)])
    await wires.receives(2, frame)
    print("ok: a packet-out leaves by its port", flush=True)


async def program(address: str, cables: list[namespaces.Cable]) -> None:
    """Install the program campus, run the learning switch, send frames to the switch, and delete all entries."""
    options = fy.SwitchOptions(p4info=CAMPUS / "campus.p4info.txtpb", p4blob=NoConfig(), p4force=True)
    async with fy.Switch("campus", address, options) as switch:
        app, wires = LearningSwitch(switch), Wires(cables)
        await app.run()
        await learns_and_forgets(app, wires)
        await filters(app, wires)
        await sends(app, wires)
        await switch.delete_all()


def main() -> int:
    """Start the gateway and run the checks; return the exit status."""
    parser = argparse.ArgumentParser(prog="ptf-tests/campus.py", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--shell", metavar="PYTHON", help="an interpreter that has p4runtime-shell")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    namespaces.enter_new()
    cables = namespaces.lay(PORTS)
    LOGS.mkdir(parents=True, exist_ok=True)
    with targets.running("tofino", cables, LOGS / "switch.log", CAMPUS) as switch:
        asyncio.run(program(switch.address, cables))
        if options.shell:
            words = [options.shell, str(HERE / "campus_shell.py"), switch.address, str(CAMPUS), cables[0].test_end]
            return subprocess.run(words, check=False, env={**os.environ, "PYTHONPATH": ""}).returncode
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SetupError as error:
        sys.exit(f"ptf-tests/campus.py: {error}")
