"""Tests of ONOS's `basic` pipeline: they write entries in the same way as ONOS, and check how packets are forwarded."""

from __future__ import annotations

from collections.abc import Callable

from finsy.proto import p4r
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from topo.testbed.entities import canonical
from topo.testbed.p4runtime import Client, NotPrimary

from .errors import UnmetError, expect
from .onos_controller import ELECTION_ID, Onos, clone_session, matched, multicast_group
from .wired import CPU_PORT, FED, comes

OTHERS = (2, 3, 4)
"""Output ports of the frames."""
IPV4 = 0x0800
PUNTED = {"LLDP": 0x88CC, "BDDP": 0x8942, "ARP": 0x0806}
"""EtherTypes of frames that ONOS's discovery and ARP proxy redirect to the controller."""
TABLE, WCMP = "ingress.table0_control.table0", "ingress.wcmp_control.wcmp_table"
TYPE, PORT = "hdr.ethernet.ether_type", "standard_metadata.ingress_port"
OUTPUT, PUNT, HOP = "table0_control.set_egress_port", "send_to_cpu", "set_next_hop_id"
INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
MAC = 0x02_00_00_00_00_01
FLOWS = 256


def mastership(onos: Onos) -> None:
    """Check that only the first instance of a cluster is the master, and that a second instance becomes the master when
    the first one's session ends."""
    expect(onos.client.is_primary, "the first instance is not the master")
    update = p4r.Update(type=INSERT, entity=multicast_group(9, (2,)))
    standby = Client(onos.switch.address, election_id=ELECTION_ID - 1)
    try:
        expect(not standby.is_primary, "an instance with a lower election id is the master")
        try:
            standby.write([update])
        except NotPrimary:
            pass
        else:
            raise UnmetError("a standby instance may write")
        onos.client.close()
        standby.take_over(ELECTION_ID + 1)
        standby.write([update])
    finally:
        standby.close()


def flows(onos: Onos) -> None:
    """Check that flows can be inserted, replaced by DELETE and INSERT in one request, read back with their packet
    counts, and removed."""
    punts = [_flow(onos, TYPE, kind, PUNT) for kind in PUNTED.values()]
    first, second = (_flow(onos, PORT, FED, OUTPUT, port=port) for port in (2, 3))
    onos.write(INSERT, *punts, first)
    onos.client.write([p4r.Update(type=DELETE, entity=first), p4r.Update(type=INSERT, entity=second)])
    frames = [_frame(number) for number in range(5)]
    received = onos.switch.send(frames)
    expect(received[3] == frames and not received[2], "frames do not follow the flow that replaced another one")
    read = onos.flows(TABLE)
    written = {matched(entity.table_entry) for entity in (*punts, second)}
    expect(read.keys() == written, f"{len(read)} flows are read, other ones than the {len(written)} that were written")
    counted = read[matched(second.table_entry)].counter_data
    sizes = (len(frames), sum(map(len, frames)))
    counts = (counted.packet_count, counted.byte_count)
    expect(counts == sizes, f"the flow counts {counts} packets and bytes, not {sizes}")
    number = next(
        counter.preamble.id for counter in onos.entities.p4info.counters if counter.preamble.name.startswith("ingress")
    )
    cells = onos.client.read([p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=number))])
    packets = {cell.counter_entry.index.index: cell.counter_entry.data.packet_count for cell in cells}
    expect(packets[FED] == len(frames), f"the port counts {packets[FED]} packets, not {len(frames)}")
    onos.write(DELETE, *punts, second)
    expect(not onos.flows(TABLE), "flows are left after their removal")
    expect(not any(onos.switch.send(frames).values()), "frames pass without a flow")


def packet_io(onos: Onos) -> None:
    """Check that frames for the controller reach ONOS with their input port, and that packet-outs leave by the
    specified port."""
    onos.write(INSERT, *(_flow(onos, TYPE, kind, PUNT) for kind in PUNTED.values()))
    frames = [_frame(number, kind) for number, kind in enumerate(PUNTED.values())]
    onos.switch.send(frames)
    packet_ins: list[p4r.PacketIn] = []

    def all_came() -> bool:
        packet_ins.extend(onos.client.packets())
        return len(packet_ins) >= len(frames)

    expect(comes(all_came), f"{len(packet_ins)} of {len(frames)} packet-ins have come")
    expect(
        [packet.payload for packet in packet_ins] == frames, "the packet-ins are other frames than those that were sent"
    )
    fields = [field for packet in packet_ins for field in packet.metadata if field.metadata_id == 1]
    ports = [int.from_bytes(field.value, "big") for field in fields]
    expect(ports == [FED] * len(frames), f"the packet-ins name the ports {ports}")
    received: dict[int, list[bytes]] = {port: [] for port in OTHERS}
    for port in OTHERS:  # ONOS floods a frame by one packet-out per port.
        onos.packet_out(frames[0], port)

    def all_left() -> bool:
        outputs = onos.switch.left()
        for port in OTHERS:
            received[port] += outputs[port]
        return all(received.values())

    if not comes(all_left):
        said = "; ".join(sorted(set(onos.client.stream_errors())))
        raise UnmetError(
            f"packet-outs left by {[port for port in OTHERS if received[port]]} only. The switch says: {said}"
        )
    expect(all(received[port] == [frames[0]] for port in OTHERS), "other frames leave than those that were sent")


def groups(onos: Onos) -> None:
    """Check that the flows of a WCMP group go to the members that `crc16` and the weights select, whatever the order in
    which members are written."""
    hop, group = 5, 100
    action = "ingress.wcmp_control.set_egress_port"
    onos.write(INSERT, *(onos.member(number, action, port) for number, port in enumerate(OTHERS, 1)))
    onos.write(INSERT, onos.group(group, {3: 1, 1: 2, 2: 1}))
    entry = p4r.TableEntry(table_id=onos.entities.table(WCMP).preamble.id)
    entry.match.add(field_id=1, exact=p4r.FieldMatch.Exact(value=canonical(hop)))
    entry.action.action_profile_group_id = group
    onos.write(INSERT, p4r.Entity(table_entry=entry))
    onos.write(INSERT, _flow(onos, TYPE, IPV4, HOP, next_hop_id=hop))
    _follow(onos, [2, 3, 4, 2])  # in the order of the members' creation; a weight of 2 adds one more
    onos.write(MODIFY, onos.group(group, {3: 1, 2: 1}))
    _follow(onos, [3, 4])
    pattern = p4r.ActionProfileGroup(action_profile_id=onos.profile())
    read = [entity.action_profile_group for entity in onos.client.read([p4r.Entity(action_profile_group=pattern)])]
    weights = {
        group_entry.group_id: {member.member_id: member.weight for member in group_entry.members}
        for group_entry in read
    }
    expect(weights == {group: {2: 1, 3: 1}}, f"groups are read with these members and weights: {weights}")


def _follow(onos: Onos, slots: list[int]) -> None:
    """Check that each of many flows leaves by the port `slots[h % len(slots)]`; `h` is the CRC-16 of the 5-tuple."""
    frames = [_frame(number) for number in range(FLOWS)]
    outputs = onos.switch.send(frames)
    taken = {frame: port for port, port_frames in outputs.items() for frame in port_frames}
    wrong = [frame for frame in frames if taken.get(frame) != slots[crc16(_five_tuple(frame)) % len(slots)]]
    expect(not wrong, f"{len(wrong)} of {FLOWS} flows do not leave by the port that their hash has in {slots}")


def meters(onos: Onos) -> None:
    """Check that a red meter of a port or a host drops all frames, and that a reset meter passes all frames."""
    onos.write(INSERT, _flow(onos, TYPE, IPV4, OUTPUT, port=2))
    host = onos.entities.entry("host_meter_table", {"hdr.ethernet.src_addr": (MAC, 48)}, "read_meter", {})
    onos.write(INSERT, host)
    host.table_entry.ClearField("action")
    # The ingress port's meter is not tested: it marks a frame to be dropped, but the flow's action, which runs later,
    # sets an output port and so undoes the drop.
    port = next(meter.preamble.id for meter in onos.entities.p4info.meters if meter.preamble.name.startswith("egress"))
    # At 1 byte/s the meter is red from the first frame to the end of the test.
    tight = p4r.MeterConfig(cir=1, cburst=1, pir=1, pburst=1)
    frames = [_frame(number) for number in range(8)]
    for how, config, wanted in (("red", tight, []), ("reset", None, frames)):
        cell = p4r.MeterEntry(meter_id=port, index=p4r.Index(index=2), config=config)
        onos.write(MODIFY, p4r.Entity(meter_entry=cell))
        _pass(onos, frames, wanted, f"the port's meter, {how}")
    for how, config, wanted in (("red", tight, []), ("reset", None, frames)):
        direct = p4r.DirectMeterEntry(table_entry=host.table_entry, config=config)
        onos.write(MODIFY, p4r.Entity(direct_meter_entry=direct))
        _pass(onos, frames, wanted, f"the host's meter, {how}")


def _pass(onos: Onos, frames: list[bytes], wanted: list[bytes], what: str) -> None:
    passed = onos.switch.send(frames)[2]
    expect(passed == wanted, f"{len(passed)} frames pass {what}, not {len(wanted)}")


def replication(onos: Onos) -> None:
    """Check that multicast groups and clone sessions can be written, read all at once, changed and removed."""
    for entry, number, before, after in ((multicast_group, 1, (2, 3), (3, 4)), (clone_session, 511, (CPU_PORT,), (2,))):
        first, second = entry(number, before), entry(number, after)
        for kind, written, wanted in ((INSERT, first, [first]), (MODIFY, second, [second]), (DELETE, second, [])):
            onos.write(kind, written)
            read = onos.client.read([entry(0)])
            expect(read == wanted, f"{entry.__name__}: after {p4r.Update.Type.Name(kind)} this is read:\n{read}")


BASIC: tuple[Callable[[Onos], None], ...] = (mastership, flows, packet_io, groups, meters, replication)


def crc16(data: bytes) -> int:
    """Return CRC-16/ARC, which is v1model's `crc16`."""
    value = 0
    for octet in data:
        value ^= octet
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
    return value


def _flow(onos: Onos, field: str, value: int, action: str, **args: int) -> p4r.Entity:
    """Return a flow of table0 that matches a single field."""
    mask = {TYPE: 0xFFFF, PORT: 0x1FF}[field]
    return onos.entities.entry(TABLE, {field: (value, mask)}, action, args, priority=40_000)


def _frame(number: int, kind: int = IPV4) -> bytes:
    """Return a frame whose flow depends on `number`; for the EtherType IPv4, the frame is a UDP packet."""
    octets = MAC.to_bytes(6, "big")
    head = Ether(src=octets.hex(":"), dst="02:00:00:00:00:02", type=kind)
    if kind != IPV4:
        return bytes(head) + bytes([number] * 46)
    packet = IP(src=f"10.0.0.{number % 250 + 1}", dst="10.0.1.1") / UDP(sport=1024 + number * 7, dport=80)
    return bytes(head / packet) + bytes(18)


def _five_tuple(frame: bytes) -> bytes:
    """Return the selector's input from a UDP frame: addresses, protocol, ports."""
    return frame[26:34] + frame[23:24] + frame[34:38]
