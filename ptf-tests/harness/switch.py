"""The switch under test, as the whole run shares it: its session, its ports, its counters and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import ptf
from finsy import P4CounterEntry, P4TableAction, P4TableEntry
from finsy.p4schema import P4UpdateType
from finsy.proto import p4r
from ptf import testutils
from sluice.names import Counter, DropReason, PuntReason, Register, Table
from sluice.switch.pipeline import load
from sluice.switch.targets import TARGETS, TOFINO

from . import entries, plan
from .client import Client, Readable
from .pins import pin_table
from .registers import P4RuntimeRegisters, Registers, ThriftRegisters
from .slots import Tuple5, connection_of

Cell = tuple[Counter | Register, int]
"""One count: a counter or a counting register, and an index."""

ELECTION_ID = 1
CONNECTION_COUNTERS = (
    Counter.OFFERED,
    Counter.REFUSED,
    Counter.CLAIMED,
    Counter.UNPINNED_NEW,
    Counter.UNPINNED_MID,
    Counter.MOVED,
    Counter.DISOWNED,
)
LEDGER = (
    Register.LEDGER_SYN,
    Register.LEDGER_SYNACK,
    Register.LEDGER_SYNACK_AGAIN,
    Register.LEDGER_COMPLETED,
    Register.LEDGER_RESET,
)
REQUESTS = (
    Register.REQUESTS_OFFERED,
    Register.REQUESTS_ADMITTED,
    Register.REQUESTS_REFUSED,
    Register.REQUESTS_RETURNING,
)
COUNT_WRAP = 1 << 32
LEAST_FRAME = 60
"""Of Ethernet, without the checksum (IEEE 802.3, 3.2.8)."""
FRAME_CHECKSUM = 4
"""Of Ethernet, behind each frame (IEEE 802.3, 3.2.9)."""
FEW = 1000
"""Connections whose slots are freed one by one; a whole register takes Tofino's driver some seconds."""
KEYS = (Register.PIN_KEY_1, Register.PIN_KEY_2, Register.CANDIDATE_KEY)
SETTINGS = (Table.TIMERS, Table.SAMPLING, Table.RATE_SETTINGS)
"""Tables without a key: parameters of a default action."""


@dataclass(frozen=True)
class Parameters:
    """What ptf is told by --test-params; everything is about the target."""

    address: str
    device_id: int
    pipeline: Path
    thrift: str | None
    target: str | None
    """The profile's name (sluice.switch.targets); none: one that runs the program's architecture."""
    ports: tuple[int, ...]
    """The switch's ports in the order of the plan; none: sorted by their numbers."""

    @classmethod
    def given(cls) -> Parameters:
        """The parameters of this run. Raises ValueError naming the one that is missing."""
        params: dict[str, Any] = cast(Any, testutils).test_params_get(default={}) or {}
        missing = [name for name in ("address", "pipeline") if name not in params]
        if missing:
            raise ValueError(f"--test-params lacks {', '.join(missing)}; ptf-tests/run.py gives them all")
        return cls(
            address=params["address"],
            device_id=int(params.get("device_id", 1)),
            pipeline=Path(params["pipeline"]),
            thrift=params.get("thrift"),
            target=params.get("target"),
            ports=tuple(params.get("ports", ())),
        )


def _count_cells() -> list[Cell]:
    cells: list[Cell] = [(Counter.VERDICTS, reason) for reason in DropReason]
    cells += [(counter, reason) for counter in (Counter.PUNTS, Counter.PUNTS_LIMITED) for reason in PuntReason]
    services = [0, *(service.id for service in plan.SERVICES)]
    cells += [(counter, service) for counter in CONNECTION_COUNTERS for service in services]
    return cells


def _register_cells() -> list[tuple[Register, int]]:
    """Cell 0 of the requests, whatever has no entry, is left to the test that is about it: every SYN counts there."""
    servers = [0, *(server.id for server in plan.SERVERS)]
    cells = [(register, server) for register in LEDGER for server in servers]
    return cells + [(register, destination) for register in REQUESTS for destination in plan.DESTINATIONS]


class Switch:
    """A loaded, programmed switch."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.target = TARGETS[parameters.target] if parameters.target else None
        self.pipeline = load(parameters.pipeline, self.target)
        self.schema = self.pipeline.schema
        port_map = cast(dict[tuple[int, int], str], cast(Any, ptf).config["port_map"])
        numbers = list(parameters.ports) or sorted(number for _, number in port_map)
        needed = plan.SPARE_PLACE + 1
        if len(numbers) < needed:
            raise ValueError(f"the tests need {needed} ports (--interface NUMBER@NAME), got {len(numbers)}")
        self.numbers = numbers
        self.client = self.session(ELECTION_ID)
        self.client.push_pipeline()
        self.registers = self._registers()
        self.pins = pin_table(self.schema, self.registers)
        self.least_frame = LEAST_FRAME if self.pipeline.target is TOFINO else 0
        """Bytes; the target pads what it sends to that."""
        self.counted_checksum = FRAME_CHECKSUM if self.pipeline.target is TOFINO else 0
        """Bytes; counters of bytes have it, and the parser takes it for the frame's last bytes."""
        self.empty_without_rate = self.pipeline.target is TOFINO
        """A meter without a rate has no tokens: the chip fills its bucket at the rate only."""
        self._frees_slots = self.pipeline.target is TOFINO
        self.touched: set[Tuple5] = set()
        """Connections of the test under way, where a register is not cleared as a whole."""
        self.insert(self._base())
        known = [counter for counter in Counter if self.schema.counters.get(counter) is not None]
        self._counters = [
            (P4CounterEntry(counter, index=index), (counter, index))
            for counter, index in _count_cells()
            if counter in known
        ]
        self._counter_keys = {self.schema.counters[counter].id: counter for counter in known}
        self.baseline = self.state()
        self.times = self._times()

    def session(self, election_id: int) -> Client:
        """Another session with the same switch."""
        return Client(self.parameters.address, self.parameters.device_id, self.pipeline, election_id)

    def reconnect(self, election_id: int) -> None:
        """Take the place of a session that was closed."""
        self.client = self.session(election_id)
        self.registers = self._registers()
        self.pins = pin_table(self.schema, self.registers)

    def _registers(self) -> Registers:
        thrift = self.parameters.thrift
        return ThriftRegisters(thrift) if thrift else P4RuntimeRegisters(self.client)

    def number(self, port: plan.Port | int) -> int:
        """The target's number for a port of the plan, or for a place in its sorted list of ports."""
        return self.numbers[port.place if isinstance(port, plan.Port) else port]

    # -- tables

    def _base(self) -> list[P4TableEntry]:
        """Everything in the plan."""
        base = [entries.port(self.number(port), port.mac, port.inside) for port in plan.PORTS]
        base += [entries.owned(address) for address in plan.OWNED]
        base += [entries.route(prefix, next_hop) for prefix, next_hop in plan.ROUTES]
        base += [self.neighbour(host) for host in plan.HOSTS]
        for service in plan.SERVICES:
            base.append(entries.service(service))
            for server in service.servers:
                base += [
                    entries.deny_direct(service, server),
                    entries.origin(service, server),
                    entries.server(server),
                ]
        base += [entries.ratios(service, weights) for service, weights in plan.RATIOS.items()]
        base += [entries.capacities(service, weights) for service, weights in plan.CAPACITIES.items()]
        return base

    def neighbour(self, host: plan.Host) -> P4TableEntry:
        """The entry that makes a host reachable."""
        return entries.neighbour(host.address, self.number(host.port), host.port.mac, host.mac)

    def insert(self, items: Iterable[P4TableEntry]) -> None:
        """Add entries, in one request."""
        self._write(P4UpdateType.INSERT, items)

    def modify(self, items: Iterable[Readable]) -> None:
        """Change entries, default actions or meters, in one request."""
        self._write(P4UpdateType.MODIFY, items)

    def delete(self, items: Iterable[P4TableEntry]) -> None:
        """Remove entries, in one request."""
        self._write(P4UpdateType.DELETE, items)

    def _write(self, kind: P4UpdateType, items: Iterable[Readable]) -> None:
        self.client.write(p4r.Update(type=kind.vt(), entity=item.encode(self.schema)) for item in items)

    def state(self, client: Client | None = None) -> dict[str, p4r.TableEntry]:
        """All that a controller may write into tables: each entry's key, and the entry, in a canonical order."""
        wanted = [
            P4TableEntry(table, is_default_action=table in SETTINGS) for table in Table if self.schema.tables.get(table)
        ]
        state: dict[str, p4r.TableEntry] = {}
        for entity in (client or self.client).find(wanted):
            entry = entity.table_entry
            fields = sorted(entry.match, key=lambda field: field.field_id)
            entry.ClearField("match")
            entry.match.extend(fields)
            group = entry.action.action_profile_action_set
            ordered = sorted(
                group.action_profile_actions, key=lambda member: member.SerializeToString(deterministic=True)
            )
            if ordered:
                # A field that was cleared is another one than before.
                group.ClearField("action_profile_actions")
                group.action_profile_actions.extend(ordered)
            key = f"{self.schema.tables[entry.table_id].alias} {' '.join(str(f).replace(chr(10), ' ') for f in fields)}"
            state[key] = entry
        return state

    def restore(self) -> None:
        """Bring the tables back to what they were at the beginning of the run, whatever a failed test did."""
        state = self.state()
        updates: list[p4r.Update] = []
        for key in state.keys() | self.baseline.keys():
            kind = p4r.Update.MODIFY
            if key not in self.baseline:
                kind = p4r.Update.DELETE
            elif key not in state:
                kind = p4r.Update.INSERT
            elif state[key] == self.baseline[key]:
                continue
            updates.append(p4r.Update(type=kind, entity=p4r.Entity(table_entry=self.baseline.get(key) or state[key])))
        self.client.write(updates)

    def _times(self) -> dict[str, int]:
        """The times of the connection table that the program starts with, in ticks, by parameter."""
        (entity,) = self.client.find([P4TableEntry(Table.TIMERS, is_default_action=True)])
        action = P4TableEntry.decode(entity, self.schema).action
        assert isinstance(action, P4TableAction)
        return {name: int(value) for name, value in action.args.items()}

    # -- counts

    def counts(self) -> dict[Cell, int]:
        """Every count that a packet may change. Read while packets flow it is not one instant's."""
        counts: dict[Cell, int] = {}
        for entity in self.client.find(entry for entry, _ in self._counters):
            entry = entity.counter_entry
            counts[self._counter_keys[entry.counter_id], entry.index.index] = entry.data.packet_count
        cells = _register_cells()
        counts.update(zip(cells, self.registers.read(cells), strict=True))
        return counts

    def bytes_of(self, counter: Counter, index: int) -> int:
        """What a counter has of bytes."""
        (entity,) = self.client.find([P4CounterEntry(counter, index=index)])
        return entity.counter_entry.data.byte_count

    def has(self, register: Register) -> bool:
        """Whether the program has a register."""
        return self.schema.registers.get(register) is not None

    def present(self, registers: Iterable[Register]) -> list[Register]:
        """Those of the registers that the program has."""
        return [register for register in registers if self.has(register)]

    def touch(self, frame: bytes) -> None:
        """Note the connection that a frame may claim a slot for."""
        if self._frees_slots and (key := connection_of(frame)) is not None:
            self.touched.add(key)

    def clear_connections(self) -> None:
        """Free the slots of the connection table, and every candidate's place: all, where that costs no seconds, or
        those of the connections that the test has touched."""
        if self._frees_slots and len(self.touched) < FEW:
            for key in self.touched:
                self.pins.free(1, key.slot_1)
                self.pins.free(2, key.slot_2)
        else:
            for register in self.present(KEYS):
                self.registers.clear(register)
        self.touched.clear()


def differences(before: Mapping[Cell, int], after: Mapping[Cell, int]) -> dict[Cell, int]:
    """What changed; register cells wrap."""
    return {cell: (value - before[cell]) % COUNT_WRAP for cell, value in after.items() if value != before[cell]}


@cache
def switch() -> Switch:
    """The switch of this run, loaded and programmed by the first test that asks."""
    return Switch(Parameters.given())
