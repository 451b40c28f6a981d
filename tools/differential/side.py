"""Runs one of the two compared switches: gives the switch writes and frames, and collects its output and state."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

from finsy.proto import p4i, p4r, rpc_code
from sluice.switch import bmv2thrift

from topo.testbed import captures
from topo.testbed.entities import Entities
from topo.testbed.errors import SetupError
from topo.testbed.p4runtime import Client, Refused
from topo.testbed.processes import Process
from topo.testbed.switches.piped import Pipes, await_quiet, start

QUIET_S = 120.0
"""Seconds after which a busy switch counts as stuck; normally a round takes a few seconds."""
LOOK_S = 0.1
END_S = 10.0
"""The longest time, in seconds, from a switch's last answer to the end of its process, core dump included."""
QUEUE_PACKETS = 1 << 20
THRIFT_S = 60.0


@dataclass(frozen=True)
class State:
    """A switch's final state by object name: registers and counters by cell, table entries as canonical text."""

    registers: dict[str, list[int]]
    counters: dict[str, dict[int, tuple[int, int]]]
    entries: dict[str, frozenset[str]]


class Side:
    """A running switch whose input ports are named pipes. Methods raise SetupError or Refused."""

    def __init__(self, name: str, binary: Path, folder: Path, ports: Sequence[int], cpu_port: int) -> None:
        self.name = name
        self._ports = ports
        folder.mkdir()
        self._pipes = Pipes({port: folder / f"p{port}_in.pcap" for port in ports}, captures.HEADER)
        self.switch = start(
            folder, binary, ["--no-p4"], ports, ["--cpu-port", str(cpu_port)], name=f"the switch '{name}'"
        )
        self._outputs: dict[int, captures.Tail] = {}
        self._clock = 0
        self._feeders: list[threading.Thread] = []
        self.client: Client | None = None

    def __enter__(self) -> Side:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipes.close()
        if self.client:
            self.client.close()
        self.switch.end()

    @property
    def process(self) -> Process:
        """The switch's process."""
        return self.switch.process

    def load(self, p4info: p4i.P4Info, program: bytes) -> None:
        """Wait until the switch serves, and load the program."""
        self.switch.await_ready()
        self.client = Client.primary(self.switch.address)
        self.client.push(p4info, program)
        enable_digests(self.client, p4info)
        if self.switch.thrift:
            # By default BMv2 drops packets silently if a queue already has 64 packets.
            service = bmv2thrift.connect(self.switch.thrift, "SimpleSwitch", THRIFT_S)
            service.set_all_egress_queue_depths(QUEUE_PACKETS)
            service.close()
        self._outputs = {port: captures.Tail(path) for port, path in self.switch.outputs.items()}

    def write(self, updates: Iterable[p4r.Update]) -> tuple[int, ...]:
        """Write updates; return the status code of each, or () if all were accepted. Raises Refused if the
        switch cannot be reached."""
        assert self.client
        return answer_to(self.client, updates)

    def send(self, frames: Sequence[tuple[int, bytes]], marker: bytes) -> None:
        """Send frames to the switch in this order, followed by the marker on every port.

        The switch processes the earliest frame of all ports once it has read each port's next frame. So after a round,
        one marker has been processed, and the others wait for the next round. Returns at once; `await_quiet` waits.
        """
        for port in self._ports:
            given = [(place, frame) for place, (to, frame) in enumerate(frames) if to == port]
            records = (
                captures.record(frame, *divmod(self._clock + place, 1_000_000))
                for place, frame in [*given, (len(frames), marker)]
            )
            # A pipe's buffer is 64 KiB, and the switch reads the ports' pipes one after another. So each pipe needs a
            # writer thread.
            feeder = threading.Thread(target=self._pipes.write, args=(port, b"".join(records)), daemon=True)
            feeder.start()
            self._feeders.append(feeder)
        self._clock += len(frames) + 1

    def await_quiet(self, watch: Callable[[], None]) -> None:
        """Wait until the switch is idle; call ``watch`` repeatedly during the wait (see `switches.piped`)."""
        deadline = time.monotonic() + QUIET_S
        while any(feeder.is_alive() for feeder in self._feeders) and time.monotonic() < deadline:
            watch()  # `watch` notices a dead switch, whose pipe would stay full.
            self._feeders[-1].join(LOOK_S)
            self._feeders = [feeder for feeder in self._feeders if feeder.is_alive()]
        self._feeders.clear()
        if not await_quiet(self.switch.process.pid, self._pipes.descriptors(), QUIET_S, watch):
            raise SetupError(f"{self.name} is still busy after {QUIET_S:g} s:\n{self.switch.process.tail()}")

    def came(self) -> dict[int | str, list[bytes]]:
        """Return the output since the previous call: frames by port, and messages to the controller."""
        assert self.client
        return {**{port: tail.more() for port, tail in self._outputs.items()}, **to_controller(self.client)}

    def state(self, p4info: p4i.P4Info) -> State:
        """Return the switch's registers, counters and table entries."""
        assert self.client
        return State(self._registers(p4info), counters_of(self.client, p4info), entries_of(self.client, p4info))

    def _registers(self, p4info: p4i.P4Info) -> dict[str, list[int]]:
        assert self.client
        registers: dict[str, list[int]] = {}
        if self.switch.thrift:
            service = bmv2thrift.connect(self.switch.thrift, "Standard", THRIFT_S)
            names = [register.preamble.name for register in p4info.registers]
            registers = {name: service.bm_register_read_all(0, name) for name in names}
            service.close()
            return registers
        return {register.preamble.name: cells_of(self.client, register) for register in p4info.registers}


def enable_digests(client: Client, p4info: p4i.P4Info) -> None:
    """Enable all digests of a program; each digest is sent at once."""
    digests = (Entities(p4info).digest(digest.preamble.name) for digest in p4info.digests)
    client.write(p4r.Update(type=p4r.Update.INSERT, entity=entity) for entity in digests)


def answer_to(client: Client, updates: Iterable[p4r.Update]) -> tuple[int, ...]:
    """Write updates; return the status code of each, or () if all were accepted. Raises Refused if the switch
    cannot be reached."""
    try:
        client.write(updates)
    except Refused as refused:
        if refused.codes == (rpc_code.UNAVAILABLE,):
            raise
        return refused.codes
    return ()


def to_controller(client: Client) -> dict[int | str, list[bytes]]:
    """Return the packet-ins (in wire form) and the digests that were received since the previous call.

    All digests are acknowledged. Equal digests are returned once, because BMv2 sends a digest a second time only after
    the first has been acknowledged.
    """
    messages = (data for digest in client.digests() for data in digest.data)
    return {
        "controller": [_packet_in(packet) for packet in client.packets()],
        "digests": sorted({data.SerializeToString(deterministic=True) for data in messages}),
    }


def counters_of(client: Client, p4info: p4i.P4Info) -> dict[str, dict[int, tuple[int, int]]]:
    """Return packets and bytes of the non-zero cells, by the counter's name and the cell's index."""
    counters: dict[str, dict[int, tuple[int, int]]] = {}
    for counter in p4info.counters:
        pattern = p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id))
        cells = (entity.counter_entry for entity in client.read([pattern]))
        counters[counter.preamble.name] = {
            cell.index.index: (cell.data.packet_count, cell.data.byte_count)
            for cell in cells
            if cell.data.packet_count or cell.data.byte_count
        }
    return counters


def entries_of(client: Client, p4info: p4i.P4Info) -> dict[str, frozenset[str]]:
    """Return table entries as canonical text, by the table's name."""
    entries: dict[str, frozenset[str]] = {}
    for table in p4info.tables:
        pattern = p4r.Entity(table_entry=p4r.TableEntry(table_id=table.preamble.id))
        read = client.read([pattern])
        entries[table.preamble.name] = frozenset(_canonical(entity.table_entry) for entity in read)
    return entries


def cells_of(client: Client, register: p4i.Register) -> list[int]:
    """Return all cells of a register whose cells are numbers, not structs."""
    pattern = p4r.Entity(register_entry=p4r.RegisterEntry(register_id=register.preamble.id))
    cells = {
        entity.register_entry.index.index: int.from_bytes(entity.register_entry.data.bitstring, "big")
        for entity in client.read([pattern])
    }
    return [cells[index] for index in range(register.size)]


class Runs(Protocol):
    """An object that runs a switch or gateway as a process."""

    @property
    def process(self) -> Process:
        """The process of the switch or gateway."""
        ...


def require_running(sides: Iterable[Runs]) -> None:
    """Raise SetupError if a switch has ended; the error quotes the last output of the switch."""
    for side in sides:
        side.process.require_running()


@contextmanager
def last_words(sides: Sequence[Runs]) -> Generator[None]:
    """If one of the switches has ended, convert a refusal within the block to SetupError with that switch's last
    output."""
    try:
        yield
    except Refused as refused:
        deadline = time.monotonic() + (END_S if refused.codes == (rpc_code.UNAVAILABLE,) else 0.0)
        require_running(sides)
        while time.monotonic() < deadline:
            time.sleep(LOOK_S)
            require_running(sides)
        raise


def _packet_in(packet: p4r.PacketIn) -> bytes:
    fields = sorted((field.metadata_id, field.value.lstrip(b"\0")) for field in packet.metadata)
    return b"".join(bytes([number, len(value)]) + value for number, value in fields) + packet.payload


def _canonical(entry: p4r.TableEntry) -> str:
    fields = sorted(entry.match, key=lambda field: field.field_id)
    entry.ClearField("match")
    entry.match.extend(fields)
    members = sorted(
        entry.action.action_profile_action_set.action_profile_actions,
        key=lambda member: member.SerializeToString(deterministic=True),
    )
    if members:
        entry.action.action_profile_action_set.ClearField("action_profile_actions")
        entry.action.action_profile_action_set.action_profile_actions.extend(members)
    return str(entry)
