"""The switch under test, which all tests of a run share: its session, ports, counters and tables."""

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
"""A count: a counter or a register that counts, and an index."""

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
"""Bytes of Ethernet's shortest frame without its checksum (IEEE 802.3, 3.2.8)."""
FRAME_CHECKSUM = 4
"""Bytes of the checksum at the end of each Ethernet frame (IEEE 802.3, 3.2.9)."""
FREED_SINGLY = 1000
"""Number of connections below which a test's slots are freed one by one.

From that number on, the complete registers are cleared, which takes Tofino's driver some seconds.
"""
KEYS = (Register.PIN_KEY_1, Register.PIN_KEY_2, Register.CANDIDATE_KEY)
SETTINGS = (Table.TIMERS, Table.SAMPLING, Table.RATE_SETTINGS)
"""Tables without a key, whose default action has the parameters of a stage."""


@dataclass(frozen=True)
class Parameters:
    """Parameters of the target, which ptf passes by `--test-params`."""

    address: str
    device_id: int
    pipeline: Path
    thrift: str | None
    target: str | None
    """Name of the target's profile (sluice.switch.targets); None: the profile for the program's architecture."""
    ports: tuple[int, ...]
    """The switch's ports in the order of the plan; empty: all ports, sorted by number."""

    @classmethod
    def given(cls) -> Parameters:
        """Return the parameters of this run; raise ValueError with the name of a missing parameter."""
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
    """Return the register cells that every test checks.

    Cell 0 of the registers of requests is omitted, because every SYN to an address without an entry changes it; a
    separate test checks it.
    """
    servers = [0, *(server.id for server in plan.SERVERS)]
    cells = [(register, server) for register in LEDGER for server in servers]
    return cells + [(register, destination) for register in REQUESTS for destination in plan.DESTINATIONS]


class Switch:
    """A switch on which the program is installed and the entries of the plan are written."""

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
        """Bytes to which the target pads the frames that it sends; 0: the target does not pad."""
        self.counted_checksum = FRAME_CHECKSUM if self.pipeline.target is TOFINO else 0
        """Bytes of the frame checksum that the target's byte counters include and its parser treats as payload."""
        self.empty_without_rate = self.pipeline.target is TOFINO
        """Whether a bucket without a refill rate is empty from the start: the chip fills buckets only at that rate."""
        self._frees_slots = self.pipeline.target is TOFINO
        self.touched: set[Tuple5] = set()
        """Connections of the current test, on a target on which the slots of single connections are freed."""
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
        """Open another session with the switch."""
        return Client(self.parameters.address, self.parameters.device_id, self.pipeline, election_id)

    def reconnect(self, election_id: int) -> None:
        """Open a new session in place of a closed one."""
        self.client = self.session(election_id)
        self.registers = self._registers()
        self.pins = pin_table(self.schema, self.registers)

    def _registers(self) -> Registers:
        thrift = self.parameters.thrift
        return ThriftRegisters(thrift) if thrift else P4RuntimeRegisters(self.client)

    def number(self, port: plan.Port | int) -> int:
        """Return the target's number of a port of the plan, or of the port at an index of the sorted list of ports."""
        return self.numbers[port.place if isinstance(port, plan.Port) else port]

    # -- Tables

    def _base(self) -> list[P4TableEntry]:
        """Return all entries of the plan."""
        base = [entries.port(self.number(port), port.mac, port.inside) for port in plan.PORTS]
        base += [entries.owned(address) for address in plan.OWNED]
        base += [entries.route(prefix, next_hop) for prefix, next_hop in plan.ROUTES]
        base += [self.neighbour(host) for host in plan.HOSTS]
        base += [entries.host_route(host.address) for host in plan.HOSTS]
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
        """Return the entry of a host as a next hop, to which the host's own route refers."""
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
        """Return all table entries that a controller may write, in a canonical form, by table and key as text."""
        entities = [
            P4TableEntry(table, is_default_action=table in SETTINGS) for table in Table if self.schema.tables.get(table)
        ]
        state: dict[str, p4r.TableEntry] = {}
        for entity in (client or self.client).find(entities):
            entry = entity.table_entry
            fields = sorted(entry.match, key=lambda field: field.field_id)
            entry.ClearField("match")
            entry.match.extend(fields)
            group = entry.action.action_profile_action_set
            ordered = sorted(
                group.action_profile_actions, key=lambda member: member.SerializeToString(deterministic=True)
            )
            if ordered:
                # Without this condition, ClearField would add an empty group to entries without a group.
                group.ClearField("action_profile_actions")
                group.action_profile_actions.extend(ordered)
            key = f"{self.schema.tables[entry.table_id].alias} {' '.join(str(f).replace(chr(10), ' ') for f in fields)}"
            state[key] = entry
        return state

    def restore(self) -> None:
        """Reset the tables to their state at the start of the run, after a test that has not undone its changes."""
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
        """Return the initial timeouts of the connection table, in ticks, by the name of the action's parameter."""
        (entity,) = self.client.find([P4TableEntry(Table.TIMERS, is_default_action=True)])
        action = P4TableEntry.decode(entity, self.schema).action
        assert isinstance(action, P4TableAction)
        return {name: int(value) for name, value in action.args.items()}

    # -- Counts

    def counts(self) -> dict[Cell, int]:
        """Return every count that a packet may change; while packets flow, counts may be of different moments."""
        counts: dict[Cell, int] = {}
        for entity in self.client.find(entry for entry, _ in self._counters):
            entry = entity.counter_entry
            counts[self._counter_keys[entry.counter_id], entry.index.index] = entry.data.packet_count
        cells = _register_cells()
        counts.update(zip(cells, self.registers.read(cells), strict=True))
        return counts

    def bytes_of(self, counter: Counter, index: int) -> int:
        """Return the number of bytes that a counter has counted."""
        (entity,) = self.client.find([P4CounterEntry(counter, index=index)])
        return entity.counter_entry.data.byte_count

    def has(self, register: Register) -> bool:
        """Return whether the program has a register."""
        return self.schema.registers.get(register) is not None

    def available(self, registers: Iterable[Register]) -> list[Register]:
        """Return the registers among these that the program has."""
        return [register for register in registers if self.has(register)]

    def touch(self, frame: bytes) -> None:
        """If the target frees slots one by one, record a frame's connection, because the frame may claim a slot."""
        if self._frees_slots and (key := connection_of(frame)) is not None:
            self.touched.add(key)

    def clear_connections(self) -> None:
        """Free the slots that the test's connections occupy.

        If the target clears registers slowly, and the test has used few connections, only their slots are freed.
        Otherwise all slots of the connection table and all cells of candidates are freed.
        """
        if self._frees_slots and len(self.touched) < FREED_SINGLY:
            for key in self.touched:
                self.pins.free(1, key.slot_1)
                self.pins.free(2, key.slot_2)
        else:
            self.registers.clear(*self.available(KEYS))
        self.touched.clear()


def differences(before: Mapping[Cell, int], after: Mapping[Cell, int]) -> dict[Cell, int]:
    """Return the counts that have changed, with the increase modulo 2^32, because register cells wrap."""
    return {cell: (value - before[cell]) % COUNT_WRAP for cell, value in after.items() if value != before[cell]}


@cache
def switch() -> Switch:
    """Return the switch of this run; the first call installs the program and writes the entries."""
    return Switch(Parameters.given())
