"""Executes the statements of a test over P4Runtime."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

from finsy.proto import p4d, p4i, p4r

from topo.testbed.entities import canonical
from topo.testbed.p4runtime import Client

from .entries import Entries, find
from .statements import Add, CheckCounter, Command, SetDefault, StfError, number

_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}

_FCS_BYTES = 4
"""The length in bytes of the frame check sequence. Byte counts in the p4c corpus include it; captures lack it."""


class Control:
    """A switch's control plane, with the state that simple_switch_CLI maintains: multicast nodes and groups."""

    def __init__(self, client: Client, p4info: p4i.P4Info) -> None:
        self._client = client
        self._p4info = p4info
        self._entries = Entries(p4info)
        self._labelled: dict[str, p4r.TableEntry] = {}
        self._nodes: list[tuple[int, list[int]]] = []
        self._groups: dict[int, list[int]] = {}

    def carry_out(self, statement: Add | SetDefault | Command) -> str | None:
        """Execute a statement; return its output in simple_switch_CLI's format, or None if it has no output.

        Raises StfError, Refused if the switch refuses the request, or ValueError if a command or an action has an
        argument that is not a number.
        """
        match statement:
            case Add():
                update = self._entries.insert(statement)
                self._client.write([update])
                if statement.label is not None:
                    self._labelled[statement.label] = update.entity.table_entry
            case SetDefault():
                self._client.write([self._entries.set_default(statement)])
            case Command(name=name, words=words):
                command: Callable[..., str | None] = getattr(self, f"do_{name}")
                try:
                    inspect.signature(command).bind(*words)
                except TypeError as error:
                    raise StfError(f"{name}: {error}") from None
                return command(*words)
        return None

    def check(self, statement: CheckCounter) -> str | None:
        """Compare a counter with the expected value; return a message unless the statement's relation holds, else None.
        Raises StfError, or Refused if the switch refuses the read."""
        data = self._counted(statement)
        octets = data.byte_count + _FCS_BYTES * data.packet_count
        value = octets if statement.unit == "bytes" else data.packet_count
        if _RELATIONS[statement.relation](value, statement.number):
            return None
        expected = f"{statement.relation} {statement.number}"
        return (
            f"line {statement.line}: {statement.counter}({statement.index}) is {value} {statement.unit}, not {expected}"
        )

    def _counted(self, statement: CheckCounter) -> p4r.CounterData:
        """Read a counter's cell or, for an index `$LABEL`, the direct counter of the entry with that label."""
        if not statement.index.startswith("$"):
            (entity,) = self._client.read([p4r.Entity(counter_entry=self._counter(statement.counter, statement.index))])
            return entity.counter_entry.data
        counters = self._p4info.direct_counters
        counter = find("direct counter", statement.counter, counters, lambda counter: counter.preamble.name)
        entry = self._labelled.get(statement.index[1:])
        if entry is None or entry.table_id != counter.direct_table_id:
            raise StfError(f"{statement.counter}: its table has no entry with the label {statement.index}")
        key = p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)
        pattern = p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=key))
        (entity,) = self._client.read([pattern])
        return entity.direct_counter_entry.data

    # -- commands of simple_switch_CLI

    def _modify(self, entity: p4r.Entity) -> None:
        self._client.write([p4r.Update(type=p4r.Update.MODIFY, entity=entity)])

    def _replicate(self, kind: p4r.Update.Type.ValueType, **entry: Any) -> None:
        entity = p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(**entry))
        self._client.write([p4r.Update(type=kind, entity=entity)])

    def do_mc_mgrp_create(self, group: str) -> None:
        self._groups[number(group)] = []
        entry = p4r.MulticastGroupEntry(multicast_group_id=number(group))
        self._replicate(p4r.Update.INSERT, multicast_group_entry=entry)

    def do_mc_node_create(self, instance: str, *ports: str) -> str:
        self._nodes.append((number(instance), [number(port) for port in ports if port != "|"]))
        return f"node was created with handle {len(self._nodes) - 1}"

    def do_mc_node_update(self, node: str, *ports: str) -> None:
        instance, _ = self._known(number(node))
        self._nodes[number(node)] = (instance, [number(port) for port in ports if port != "|"])
        for group, nodes in self._groups.items():
            if number(node) in nodes:
                self._write_group(group)

    def do_mc_node_associate(self, group: str, node: str) -> None:
        self._known(number(node))
        if number(group) not in self._groups:
            raise StfError(f"multicast group {group} was not created")
        self._groups[number(group)].append(number(node))
        self._write_group(number(group))

    def _known(self, node: int) -> tuple[int, list[int]]:
        if node >= len(self._nodes):
            raise StfError(f"multicast node {node} was not created")
        return self._nodes[node]

    def _replicas(self, group: int) -> list[p4r.Replica]:
        nodes = (self._nodes[node] for node in self._groups.get(group, []))
        return [p4r.Replica(egress_port=port, instance=instance) for instance, ports in nodes for port in ports]

    def _write_group(self, group: int) -> None:
        entry = p4r.MulticastGroupEntry(multicast_group_id=group, replicas=self._replicas(group))
        self._replicate(p4r.Update.MODIFY, multicast_group_entry=entry)

    def _session(self, session: str, replicas: list[p4r.Replica]) -> None:
        entry = p4r.CloneSessionEntry(session_id=number(session), replicas=replicas)
        self._replicate(p4r.Update.INSERT, clone_session_entry=entry)

    def do_mirroring_add(self, session: str, port: str) -> None:
        # The replica has instance 0, as in BMv2's own mirroring; P4Runtime allows 0.
        self._session(session, [p4r.Replica(egress_port=number(port), instance=0)])

    def do_mirroring_add_mc(self, session: str, group: str) -> None:
        self._session(session, self._replicas(number(group)))

    def do_mirroring_delete(self, session: str) -> None:
        self._replicate(p4r.Update.DELETE, clone_session_entry=p4r.CloneSessionEntry(session_id=number(session)))

    def do_mirroring_get(self, *_words: str) -> None:
        """Do nothing: the command only prints a session, and later statements of the test use that session anyway."""

    def _register(self, name: str, index: int | None) -> p4r.RegisterEntry:
        register = find("register", name, self._p4info.registers, lambda register: register.preamble.name)
        entry = p4r.RegisterEntry(register_id=register.preamble.id)
        if index is not None:
            entry.index.index = index
        return entry

    def do_register_read(self, name: str, index: str) -> str:
        (entity,) = self._client.read([p4r.Entity(register_entry=self._register(name, number(index)))])
        return f"{name}[{index}]= {int.from_bytes(entity.register_entry.data.bitstring)}"

    def do_register_write(self, name: str, index: str, value: str) -> None:
        entry = self._register(name, number(index))
        entry.data.CopyFrom(p4d.P4Data(bitstring=canonical(number(value))))
        self._modify(p4r.Entity(register_entry=entry))

    def do_register_reset(self, name: str) -> None:
        entry = self._register(name, None)
        entry.data.CopyFrom(p4d.P4Data(bitstring=b"\0"))
        self._modify(p4r.Entity(register_entry=entry))

    def _counter(self, name: str, index: str) -> p4r.CounterEntry:
        counter = find("counter", name, self._p4info.counters, lambda counter: counter.preamble.name)
        return p4r.CounterEntry(counter_id=counter.preamble.id, index=p4r.Index(index=number(index)))

    def do_counter_read(self, name: str, index: str) -> str:
        (entity,) = self._client.read([p4r.Entity(counter_entry=self._counter(name, index))])
        data = entity.counter_entry.data
        return f"{name}[{index}]= ({data.byte_count} bytes, {data.packet_count} packets)"

    def do_counter_write(self, name: str, index: str, packets: str, octets: str) -> None:
        entry = self._counter(name, index)
        entry.data.packet_count, entry.data.byte_count = number(packets), number(octets)
        self._modify(p4r.Entity(counter_entry=entry))

    def _meter(self, name: str) -> p4i.Meter:
        return find("meter", name, self._p4info.meters, lambda meter: meter.preamble.name)

    def do_meter_get_rates(self, name: str, index: str) -> str:
        entry = p4r.MeterEntry(meter_id=self._meter(name).preamble.id, index=p4r.Index(index=number(index)))
        (entity,) = self._client.read([p4r.Entity(meter_entry=entry)])
        config = entity.meter_entry.config
        rates = ((config.cir, config.cburst), (config.pir, config.pburst))
        lines = (f"{at}: info rate = {rate / 1e6}, burst size = {burst}" for at, (rate, burst) in enumerate(rates))
        return "\n".join(lines)

    def do_meter_set_rates(self, name: str, index: str, *rates: str) -> None:
        meter = self._meter(name)
        entry = p4r.MeterEntry(meter_id=meter.preamble.id, index=p4r.Index(index=number(index)))
        entry.config.CopyFrom(_meter_config(rates))
        self._modify(p4r.Entity(meter_entry=entry))

    def do_meter_array_set_rates(self, name: str, *rates: str) -> None:
        for index in range(self._meter(name).size):
            self.do_meter_set_rates(name, str(index), *rates)


def _meter_config(rates: tuple[str, ...]) -> p4r.MeterConfig:
    """Return a meter's configuration from two `RATE:BURST` pairs of simple_switch_CLI, lower rate first.

    A rate is in bytes or packets per microsecond; P4Runtime's are per second. Raises StfError.
    """
    try:
        (low, low_burst), (high, high_burst) = (rate.split(":") for rate in rates)
        cir, pir = round(float(low) * 1e6), round(float(high) * 1e6)
        return p4r.MeterConfig(cir=cir, cburst=number(low_burst), pir=pir, pburst=number(high_burst))
    except ValueError:
        raise StfError(f"two RATE:BURST are expected, not {' '.join(rates)}") from None
