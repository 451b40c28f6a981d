"""The lab of measured transfers: a server, the switch, and a client at several distances.

```
 server 10.0.2.1 --- 2 sluice 1 --- 10.0.1.1 client, 10.101.0.1, 10.102.0.1, ...
                                    drops some arriving segments; delays those it sends by distance
```
The switch has no controller: programs in the switch's namespace write table entries and read registers.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml
from finsy import P4TableAction, P4TableEntry, P4TableMatch
from finsy.proto import p4r
from sluice.addresses import from_text
from sluice.config.load import parse
from sluice.config.model import Config
from sluice.dataplane.connection import Connection
from sluice.dataplane.transfers import flow_index
from sluice.names import Action, Table
from sluice.switch.choice import program_for
from sluice.switch.programmer import Programmer
from sluice.switch.registers import open_registers
from sluice.switch.session import Session
from sluice.switch.transfers import Transfers
from sluice.switch.transfers import read as read_transfers

from topo.load.client import Receiver
from topo.load.program import Program, main
from topo.load.server import Sender
from topo.plan.network import CLIENT, FAR, SERVICE, VIP, WEB_PORT, HostPlan, service, switch_config
from topo.testbed.namespaces import tcp_counters
from topo.testbed.network import READY_S, SWITCH, NamespaceNetwork
from topo.testbed.processes import Process

SERVER = HostPlan("server", 2, 2)
KERNEL = ("TCPTimeouts", "TCPLossProbes", "TCPLossProbeRecovery", "TCPSackRecovery", "TCPRenoRecovery", "TCPDSACKRecv")
GRACE_S = 30.0
RATE = 600_000
"""Largest rate of a connection in bytes per second. The rate is limited because the delay line is a program in user
space."""


@dataclass(frozen=True, slots=True)
class Distance:
    """A client's address, the delay of its packets in seconds, and the number of its connections."""

    address: str
    delay_s: float
    connections: int


def configuration() -> dict[str, object]:
    """Return the switch's configuration: one service with one server."""
    routes = [{"to": FAR, "via": str(CLIENT.address)}]
    return switch_config((CLIENT, SERVER), [service(SERVICE, VIP, [SERVER])], routes=routes)


# -- programs in the switch's namespace


def _config() -> Config:
    """Return the parsed configuration; no process listens on its control socket."""
    return parse(yaml.safe_dump({**configuration(), "control": str(Path(tempfile.gettempdir()) / "transfers.sock")}))


async def _session() -> Session:
    at = _config().switch
    return Session(at.address, at.device_id, await program_for(at), 1 << 60)


@dataclass(frozen=True)
class MeasureTransfers:
    """The program that loads the pipeline, configures the service, and enables the measurement of its transfers."""

    def run(self) -> None:
        """Program the switch."""
        neighbours = {str(host.address): (host.port, host.mac) for host in (CLIENT, SERVER)}
        with Programmer(_config(), neighbours) as switch:
            number = switch.server(SERVICE, SERVER.name).id
        action = P4TableAction(Action.MANAGE, measured=1, sampling=0, closed=0, send_cap=0, receive_cap=0)
        asyncio.run(self._insert(P4TableEntry(Table.RESOURCES, match=P4TableMatch(server=number), action=action)))

    async def _insert(self, entry: P4TableEntry) -> None:
        async with await _session() as session:
            update = p4r.Update(type=p4r.Update.INSERT, entity=entry.encode(session.pipeline.schema))
            await session.write([update])


@dataclass(frozen=True)
class ReadTransfers:
    """The program that prints the values of all slots that measure a transfer, as JSON."""

    def run(self) -> None:
        """Read the switch's registers."""
        print(json.dumps(asyncio.run(self._slots())))

    async def _slots(self) -> list[dict[str, float]]:
        async with await _session() as session:
            columns = await read_transfers(await open_registers(session, None))
        names, slots = [field.name for field in fields(Transfers)], (columns.flow >= 0).nonzero()[0]
        rows = [{name: getattr(columns, name)[slot].item() for name in names} for slot in slots]
        return [{**row, "rtt_s": columns.rtt_s[int(row["flow"]) % columns.flow.size].item()} for row in rows]


# -- the lab


class TransfersLab(NamespaceNetwork):
    """A switch between a server and a client."""

    names: Sequence[str] = (SWITCH, CLIENT.name, SERVER.name)
    """Names of the hosts; the second host is the switch's neighbour at the client's port."""
    loses: tuple[str, str] = (CLIENT.name, "INPUT")
    """Host, and chain of the host's packet filter, that drops segments from the server."""

    def __init__(self, distances: Sequence[Distance]) -> None:
        super().__init__()
        self.distances = distances

    # -- building

    def build(self) -> None:
        """Connect the hosts to the switch, start delay line and switch, and program the switch."""
        self.hosts(self.names)
        self.attach(CLIENT, inside=self.names[1], knows_gateway=True)
        self.attach(SERVER, knows_gateway=True)
        self._far()
        self.serve((CLIENT.port, SERVER.port))
        self._control()

    def _far(self) -> None:
        """Set up the path between the switch's neighbour and the client's addresses. Here the neighbour is the client
        itself, so the path is only a delay for each address; a subclass may add links."""
        self.delay(CLIENT.name, {distance.address: distance.delay_s for distance in self.distances})

    def _control(self) -> None:
        """Program the switch."""
        self._in_switch(MeasureTransfers())

    def _in_switch(self, program: Program) -> str:
        """Run a program in the switch's namespace, and return its output."""
        process = self.start_program(program, SWITCH)
        if process.wait(READY_S):
            process.require_running()
        return process.output()

    # -- running

    def sent(self, congestion: str, loss: float, seconds: float) -> dict[str, Any]:
        """Make transfers for ``seconds``, while the share ``loss`` of the server's segments is dropped.

        Return, for every connection, the measurements of the switch and of the sender's kernel, and the kernel's
        counters for all connections. ``congestion``: the sender's congestion control.
        """
        before = self.kernel()
        host, chain = self.loses
        rule = f"-p tcp --sport {WEB_PORT} -m statistic --mode random --probability {loss} -j DROP".split()
        connections = {distance.address: distance.connections for distance in self.distances}
        with ExitStack() as ends:
            if loss:
                self.call(host, "iptables", "-A", chain, *rule)
                ends.callback(self.call, host, "iptables", "-D", chain, *rule)
            sender = self.transfer(ends, connections, congestion=congestion, rate=RATE, seconds=seconds)
            sender.wait(seconds + GRACE_S)
            columns = self.seen()
        reported = sender.result(0)
        transfers = [{**row, "switch": slot_of(columns, row["client"], row["port"])} for row in reported]
        return {"transfers": transfers, "kernel": {name: now - before[name] for name, now in self.kernel().items()}}

    def transfer(self, ends: ExitStack, connections: Mapping[str, int], **options: Any) -> Process:
        """Start sender and receiver, with a number of connections for each client address; return the sender.

        Sender and receiver end when ``ends`` is closed. ``options`` are those of `Sender`.
        """
        sender = self.start_program(Sender(WEB_PORT, sum(connections.values()), **options), SERVER.name)
        ends.callback(sender.stop)
        sender.await_output("listening", READY_S)
        receiver = self.start_program(Receiver(f"{VIP}:{WEB_PORT}", dict(connections)), CLIENT.name)
        ends.callback(receiver.stop)
        return sender

    def seen(self) -> Sequence[Mapping[str, Any]]:
        """Return the values of all slots of the switch that measure a transfer, as a mapping per slot."""
        return json.loads(self._in_switch(ReadTransfers()).splitlines()[-1])

    def kernel(self) -> dict[str, int]:
        """Return those TCP counters of the server's kernel that KERNEL names."""
        counts = tcp_counters(self.pid(SERVER.name))
        return {name: counts[name] for name in KERNEL}


def slot_of(columns: Sequence[Mapping[str, Any]], client: str, port: int) -> Mapping[str, Any] | None:
    """Return the switch's measurements of a connection; None if no slot measures it, for example because another
    connection occupies its slot."""
    place = Connection(from_text(client).packed, port, VIP.packed, WEB_PORT).place
    numbers = {flow_index(0, place.slot_1), flow_index(1, place.slot_2)}
    return next(
        (column for column in columns if column["fingerprint"] == place.fingerprint and column["flow"] in numbers), None
    )


if __name__ == "__main__":
    main(globals())
