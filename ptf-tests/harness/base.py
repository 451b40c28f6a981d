"""The base class of the packet tests: it follows every frame to its end, and checks every count that a frame changes.

`forwards`, `drops`, `punts` and `reports_sender` each send one frame and check all of its effects: the exact frames
that leave the switch, and the exact changes of all counters and of the registers that count per server. To wait for the
effect of a frame, they send an echo request (a fence) to the router on every port. When the echo replies have arrived,
the switch has processed the frame.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import ptf
from finsy import P4MeterEntry, P4PacketIn, P4TableEntry
from ptf.base_tests import BaseTest
from scapy.utils import checksum
from sluice.addresses import from_text
from sluice.dataplane.table import STAMP_BITS
from sluice.names import TICK_US, Counter, DropReason, Meter, PinState, PuntReason, Register, Table
from sluice.switch.answers import Sender
from sluice.switch.state import Neighbour

from . import entries, exclusions, plan
from .client import Readable
from .collisions import Crowd
from .flow import Flow
from .frames import ARP, ICMP, IP, Ether, Packet, explained, layers, octets
from .pins import Pin
from .plan import Server, Service
from .results import recorded
from .slots import Tuple5
from .switch import Cell, Switch, differences, switch

AWAIT_S = 60.0
"""Seconds after which a missing frame, packet-in or count is a failure."""

WINDOW = 32
"""Number of frames in flight: half of the 64 frames for which BMv2's egress queue has room on each port."""

BY_DIGEST = (PuntReason.ARP, PuntReason.SENDER)
"""Reasons for which the switch sends the controller a digest; for all other reasons it sends the packet itself."""

_FENCE_HOST = 250
_CLOCK_PORT = 39_999
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Outcome:
    """All effects of the frames that a test has sent: frames out, packet-ins, and changed counts."""

    frames: list[tuple[int, bytes]]
    """The frames that left the switch, each with the number of its port, in the order of arrival on each port."""
    packets: list[P4PacketIn]
    changes: dict[Cell, int]


def new(service: Service, server: Server) -> list[Cell]:
    """Return the counts changed by a SYN that the switch pins to a server (writes into the connection table)."""
    return [(Counter.OFFERED, service.id), (Counter.CLAIMED, service.id), (Register.LEDGER_SYN, server.id)]


def again(service: Service, server: Server) -> list[Cell]:
    """Return the counts changed by a SYN whose connection already has a pin (an entry in the connection table)."""
    return [(Counter.OFFERED, service.id), (Register.LEDGER_SYN, server.id)]


def unpinned(service: Service, server: Server) -> list[Cell]:
    """Return the counts changed by a SYN whose connection finds both of its slots occupied."""
    return [
        (Counter.OFFERED, service.id),
        (Counter.UNPINNED_NEW, service.id),
        (Register.LEDGER_SYN, server.id),
    ]


def unpinned_mid(service: Service) -> Cell:
    """Return the count changed by a packet in mid-connection whose connection has no pin."""
    return (Counter.UNPINNED_MID, service.id)


def moved(service: Service) -> Cell:
    """Return the count changed by a repeated SYN that the switch sends to another server than before."""
    return (Counter.MOVED, service.id)


def disowned(service: Service) -> Cell:
    """Return the count changed by an RST of a server to which the connection is not pinned."""
    return (Counter.DISOWNED, service.id)


def first_answer(server: Server) -> Cell:
    """Return the count changed by the first SYN-ACK of a handshake."""
    return (Register.LEDGER_SYNACK, server.id)


def repeated_answer(server: Server) -> Cell:
    """Return the count changed by a repeated SYN-ACK."""
    return (Register.LEDGER_SYNACK_AGAIN, server.id)


def completed(server: Server) -> Cell:
    """Return the count changed by a completed handshake."""
    return (Register.LEDGER_COMPLETED, server.id)


def was_reset(server: Server) -> Cell:
    """Return the count changed by a server's RST."""
    return (Register.LEDGER_RESET, server.id)


def admitted(destination: int) -> list[Cell]:
    """Return the counts changed by an admitted connection to a destination."""
    return [*repeated(destination), (Register.REQUESTS_ADMITTED, destination)]


def repeated(destination: int) -> list[Cell]:
    """Return the count changed by a SYN that repeats the SYN of an admitted connection."""
    return [(Register.REQUESTS_OFFERED, destination)]


def refused(destination: int) -> list[Cell]:
    """Return the counts changed by a refused request to a destination."""
    return [(Register.REQUESTS_OFFERED, destination), (Register.REQUESTS_REFUSED, destination)]


def returned(destination: int) -> list[Cell]:
    """Return the counts changed by a connection that is admitted because the switch remembers its client."""
    return [*admitted(destination), (Register.REQUESTS_RETURNING, destination)]


Changes = Cell | Iterable[Cell]


class StageTest(BaseTest):
    """Base class of all packet tests.

    A test registers a cleanup for each change of the switch; `tearDown` checks that all changes are undone.
    """

    maxDiff = None

    NEEDS: tuple[Table | Register, ...] = ()
    """Tables and registers that the test needs, besides those of its bases; it is skipped if the program lacks one."""

    @property
    def switch(self) -> Switch:
        """The switch under test, which all tests share."""
        return switch()

    def setUp(self) -> None:
        super().setUp()
        if (reason := exclusions.reason(self.switch.pipeline.target.name, str(self))) is not None:
            self.skipTest(f"{exclusions.BY_DESIGN}{reason}")
        self.needs(*(need for base in type(self).__mro__ for need in vars(base).get("NEEDS", ())))
        self.dataplane: Any = cast(Any, ptf).dataplane_instance
        self._flush()
        self._unspent: dict[tuple[Meter, int], P4MeterEntry] = {}
        self._counts = self.switch.counts()

    def needs(self, *needs: Table | Register) -> None:
        """Skip the test if the program is compiled without one of these tables and registers."""
        for need in needs:
            is_table = isinstance(need, Table)
            if self.switch.schema.tables.get(need) is None if is_table else not self.switch.has(need):
                self.skipTest(f"this program has no {'table' if is_table else 'register'} {need.rsplit('.', 1)[-1]}")

    def tearDown(self) -> None:
        self.doCleanups()
        self.switch.clear_connections()
        state, baseline = self.switch.state(), self.switch.baseline
        changed_keys = sorted(key for key in state.keys() | baseline.keys() if state.get(key) != baseline.get(key))
        if changed_keys:
            self.switch.restore()
        self.assertEqual(changed_keys, [], "the test has not restored these tables' entries")
        self.assertIsNone(self.switch.client.packet_in(0), "the controller got an unexpected packet")
        self._flush()
        super().tearDown()

    def run(self, result: Any = None) -> Any:
        with recorded(self, result):
            return super().run(result)

    # -- Frames in, frames out

    def _flush(self) -> None:
        self.dataplane.flush()
        while self.switch.client.packet_in(0) or self.switch.client.senders(0):
            pass

    def inject(self, port: plan.Port | int, frame: Packet | bytes) -> None:
        """Send a frame to a port of the switch."""
        wire = octets(frame)
        self.switch.touch(wire)
        self.dataplane.send(0, self.switch.number(port), wire)

    def _fence(self, ports: Iterable[plan.Port], frames: list[tuple[int, bytes]]) -> int:
        """Wait until the ports have sent all earlier frames; append these to `frames`; return the number of fences."""
        tokens: dict[plan.Port, bytes] = {}
        for port in ports:
            tokens[port] = b"sluice fence %016x" % next(_numbers)
            head, icmp = _echo(port)
            message = icmp + tokens[port]
            self.inject(port, head + message[:2] + checksum(message).to_bytes(2, "big") + message[4:])
        for port, token in tokens.items():
            number = self.switch.number(port)
            while True:
                polled = self.dataplane.poll(device_number=0, port_number=number, timeout=AWAIT_S)
                if polled.packet is None:
                    self.fail(f"the switch answers no echo request on port {number}: is it stuck?")
                if token in polled.packet:
                    break
                frames.append((number, bytes(polled.packet)))
        return len(tokens)

    def settle(self, sent_on: plan.Port | int | None = None, sent: int = 1) -> Outcome:
        """Wait until `sent` frames have had their effects; return all effects since the last call.

        `sent_on`: the port to which the test has sent the frames; it is fenced first. None: no port of the plan.
        """
        return self._settle(sent_on, sent, [], 0)

    def _settle(
        self, sent_on: plan.Port | int | None, sent: int, frames: list[tuple[int, bytes]], fences: int
    ) -> Outcome:
        if isinstance(sent_on, plan.Port):
            fences += self._fence([sent_on], frames)
        fences += self._fence([port for port in plan.PORTS if port is not sent_on], frames)
        deadline = time.monotonic() + AWAIT_S
        while True:
            changes = differences(self._counts, counts := self.switch.counts())
            verdicts = sum(number for (name, _), number in changes.items() if name is Counter.VERDICTS)
            if verdicts >= fences + sent:
                break
            if time.monotonic() > deadline:
                self.fail(f"{fences + sent} frames went in, {verdicts} verdicts came out: {self._named(changes)}")
        self._counts = counts
        forwarded: Cell = (Counter.VERDICTS, DropReason.NONE)
        changes[forwarded] = changes.get(forwarded, 0) - fences
        if not changes[forwarded]:
            del changes[forwarded]
        return Outcome(frames, self._packets_in(changes), changes)

    def _packets_in(self, changes: Mapping[Cell, int]) -> list[P4PacketIn]:
        packets: list[P4PacketIn] = []
        for _ in range(
            sum(
                number
                for (name, reason), number in changes.items()
                if name is Counter.PUNTS and reason not in BY_DIGEST
            )
        ):
            packet = self.switch.client.packet_in(AWAIT_S)
            if packet is None:
                self.fail("a packet was counted as punted and did not reach the controller")
            packets.append(packet)
        return packets

    def exchange(self, port: plan.Port | int, frame: Packet | bytes) -> Outcome:
        """Send one frame and wait until the frame has had its effects; return these effects."""
        self.inject(port, frame)
        return self.settle(port)

    def burst(self, port: plan.Port, frames: Iterable[bytes]) -> Outcome:
        """Send many frames, at most WINDOW at a time, and wait for their effects; return all effects."""
        out: list[tuple[int, bytes]] = []
        fences = sent = 0
        for window in batched(frames, WINDOW):
            for frame in window:
                self.inject(port, frame)
            sent += len(window)
            fences += self._fence([port], out)
            fences += self._fence([other for other in plan.PORTS if other is not port], out)
        return self._settle(port, sent, out, fences)

    def flood(self, port: plan.Port, frames: Iterable[bytes]) -> dict[Cell, int]:
        """Send very many frames, at most WINDOW at a time; return only the changes of the counts.

        Unlike `burst`, wait after each WINDOW only for the port `port`, and discard the frames that leave the switch.
        """
        fences = sent = 0
        for window in batched(frames, WINDOW):
            for frame in window:
                self.inject(port, frame)
            sent += len(window)
            fences += self._fence([port], [])
        return self._settle(port, sent, [], fences).changes

    # -- The effects of one frame

    def forwards(
        self,
        port: plan.Port | int,
        frame: Packet | bytes,
        out: plan.Port,
        expected: Packet | bytes,
        *changes: Changes,
    ) -> None:
        """Send a frame; assert that only `expected` leaves, by `out`, and that only the counts in `changes` change."""
        outcome = self.exchange(port, frame)
        self._sent(outcome, [(self.switch.number(out), octets(expected))])
        self._counted(outcome, {(Counter.VERDICTS, DropReason.NONE): 1}, changes)

    def drops(self, port: plan.Port | int, frame: Packet | bytes, reason: DropReason, *changes: Changes) -> None:
        """Send a frame; assert that it is dropped for `reason`, and that only the counts in `changes` change."""
        outcome = self.exchange(port, frame)
        self._sent(outcome, [])
        self._counted(outcome, {(Counter.VERDICTS, reason): 1}, changes)

    def answers(
        self, port: plan.Port | int, frame: Packet | bytes, expected: bytes, reason: DropReason, *changes: Changes
    ) -> None:
        """Send a frame; assert that its verdict is `reason`, and that `expected` is sent back by the same port.

        Also assert that only the counts in `changes` change besides.
        """
        outcome = self.exchange(port, frame)
        self._sent(outcome, [(self.switch.number(port), expected)])
        self._counted(outcome, {(Counter.VERDICTS, reason): 1}, changes)

    def punts(
        self,
        port: plan.Port | int,
        frame: Packet | bytes,
        reason: PuntReason,
        expected: Packet | bytes,
        *changes: Changes,
        drop: DropReason = DropReason.NONE,
        next_hop: str | None = None,
    ) -> None:
        """Send a frame; assert that the controller receives `expected` for `reason`, and that no port sends a frame.

        Also assert that the frame's verdict is `drop`, and that only the counts in `changes` change besides.
        `next_hop`: the unresolved next hop whose id the controller receives; None: id 0.
        """
        outcome = self.exchange(port, frame)
        self._sent(outcome, [])
        self._counted(outcome, {(Counter.VERDICTS, drop): 1, (Counter.PUNTS, reason): 1}, changes)
        (packet,) = outcome.packets
        self.assertEqual(packet.payload.hex(" ", 2), self.padded(octets(expected)).hex(" ", 2))
        self.assertEqual(packet["ingress_port"], self.switch.number(port))
        self.assertEqual(packet["reason"], reason)
        self.assertEqual(packet["neighbour"], 0 if next_hop is None else entries.neighbour_id(next_hop))

    def reports_sender(
        self,
        port: plan.Port | int,
        frame: Packet,
        reason: PuntReason,
        *,
        answer: Packet | bytes | None = None,
        drop: DropReason = DropReason.NONE,
    ) -> None:
        """Send an ARP message; assert that the switch reports its sender and port, and whether the switch answered it.

        `answer`: the frame that the switch must send back; None: no frame. `drop`: the verdict on the message.
        """
        self._flush()
        outcome = self.exchange(port, frame)
        self._sent(outcome, [] if answer is None else [(self.switch.number(port), octets(answer))])
        self._counted(outcome, {(Counter.VERDICTS, drop): 1, (Counter.PUNTS, reason): 1}, ())
        sender: Any = frame[ARP]
        place = Neighbour(self.switch.number(port), sender.hwsrc)
        reported = Sender(from_text(sender.psrc), place, answer is not None)
        self.assertEqual(self.switch.client.senders(AWAIT_S), [reported])
        self.assertEqual(self.switch.client.senders(0), [], "the sender was reported twice")

    def padded(self, frame: bytes) -> bytes:
        """Return the frame as the target sends it: padded, if the target pads frames to Ethernet's minimum."""
        return frame.ljust(self.switch.least_frame, b"\0")

    def _sent(self, outcome: Outcome, expected: list[tuple[int, bytes]]) -> None:
        expected = [(port, self.padded(frame)) for port, frame in expected]
        if outcome.frames != expected:
            self.fail(
                f"frames out are not what they must be\n  expected\n{_listed(expected)}\n  got\n"
                f"{_listed(outcome.frames)}\n  counted {self._named(outcome.changes)}"
            )

    def _counted(self, outcome: Outcome, expected: Mapping[Cell, int], changes: Iterable[Changes]) -> None:
        tally: Tally[Cell] = Tally(expected)
        for change in changes:
            cells = [cast(Cell, change)] if isinstance(change, tuple) else change
            tally.update(cell for cell in cells if not exclusions.lacks(self.switch.pipeline.target.name, cell[0]))
        self.assertEqual(self._named(outcome.changes), self._named(tally), "other counts than expected")

    @staticmethod
    def _named(changes: Mapping[Cell, int]) -> dict[str, int]:
        names: dict[str, int] = {}
        for (name, index), number in sorted(changes.items()):
            label = name.rsplit(".", 1)[-1]
            if name is Counter.VERDICTS:
                names[f"{label}[{DropReason(index).name}]"] = number
            elif name in (Counter.PUNTS, Counter.PUNTS_LIMITED):
                names[f"{label}[{PuntReason(index).name}]"] = number
            else:
                names[f"{label}[{index}]"] = number
        return names

    # -- Connections

    def client_sends(self, flow: Flow, frame: Packet, *changes: Changes) -> None:
        """Send a client's frame; assert that the flow's server receives the translated frame."""
        self.forwards(plan.CLIENT, frame, flow.server.host.port, flow.at_server(frame), *changes)

    def server_sends(self, flow: Flow, frame: Packet, *changes: Changes) -> None:
        """Send a server's frame; assert that the flow's client receives the translated frame."""
        self.forwards(flow.server.host.port, frame, plan.CLIENT, flow.at_client(frame), *changes)

    def draws_again(self, service: Service, server: Server) -> list[Cell]:
        """Return the counts changed by a SYN whose connection is pinned to a draining server.

        On Tofino the SYN counts as new, on other targets as repeated.
        """
        lacks = exclusions.lacks(self.switch.pipeline.target.name, Counter.MOVED)
        return new(service, server) if lacks else again(service, server)

    def opens(self, flow: Flow) -> Flow:
        """Send a SYN; assert that the connection is pinned to the flow's server; return the flow."""
        self.client_sends(flow, flow.syn(), new(flow.service, flow.server))
        return flow

    def half_opens(self, flow: Flow) -> Flow:
        """Send a SYN and the server's SYN-ACK; return the flow."""
        self.opens(flow)
        self.server_sends(flow, flow.syn_ack(), first_answer(flow.server))
        return flow

    def completes(self, flow: Flow) -> None:
        """Send the server's SYN-ACK, and the client's ACK."""
        self.server_sends(flow, flow.syn_ack(), first_answer(flow.server))
        self.client_sends(flow, flow.ack(), completed(flow.server))

    def establishes(self, flow: Flow) -> Flow:
        """Perform a complete handshake; return the flow."""
        self.opens(flow)
        self.completes(flow)
        return flow

    def pins(self, key: Tuple5) -> list[Pin]:
        """Return a connection's pins: in way 1 (the slot of its first hash), in way 2 (its second), in both or none."""
        return self.switch.pins.find(key)

    def fills_both_ways(self, flows: Crowd) -> Crowd:
        """Establish `first` and `second`, which occupy both slots of the crowd's `late` flows; return the crowd."""
        self.establishes(flows.first)
        self.establishes(flows.second)
        return flows

    def put_pin(self, flow: Flow, state: PinState, age: int, way: int = 1) -> Flow:
        """Write the flow's pin with its server, `state`, and a time stamp of `age` ticks ago; return the flow.

        The test reads the switch's current time from the pin of an additional SYN.
        """
        probe = Flow(flow.service, flow.server, client_port=_CLOCK_PORT)
        self.exchange(plan.CLIENT, probe.syn())
        (pin,) = self.pins(probe.key)
        self.switch.touched.add(flow.key)
        self.switch.pins.put([(flow.key, Pin(way, flow.server.id, state, pin.stamp - age))])
        for place, (slot, own) in enumerate(
            ((probe.key.slot_1, flow.key.slot_1), (probe.key.slot_2, flow.key.slot_2)), 1
        ):
            if slot != own:
                self.switch.pins.free(place, slot)
        return flow

    def assertPinned(self, flow: Flow, state: PinState, way: int = 1) -> Pin:
        """Assert that the connection has a pin in way `way`, with the flow's server and `state`; return the pin."""
        pins = [pin for pin in self.pins(flow.key) if pin.way == way]
        self.assertTrue(pins, f"{flow.key} is not in way {way}; {self.pins(flow.key)}")
        self.assertEqual((pins[0].server, pins[0].state), (flow.server.id, self.switch.pins.stored(state)))
        return pins[0]

    def assertNotPinned(self, key: Tuple5) -> None:
        """Assert that the connection has no pin."""
        self.assertEqual(self.pins(key), [])

    # -- Changes that last until the end of the test

    def insert(self, *items: P4TableEntry) -> None:
        """Add table entries until the end of the test."""
        self.switch.insert(items)
        self.addCleanup(self.switch.delete, items)

    def delete(self, *items: P4TableEntry) -> None:
        """Remove table entries of the plan until the end of the test."""
        self.switch.delete(items)
        self.addCleanup(self.switch.insert, items)

    def replace(self, entry: Readable, afterwards: Readable) -> None:
        """Replace an existing entry by `entry`; at the end of the test, replace it by `afterwards`."""
        self.switch.modify([entry])
        self.addCleanup(self.switch.modify, [afterwards])

    def weigh(self, service: Service, weights: Mapping[Server, int]) -> None:
        """Set the weights by which servers are drawn for a service's new connections, until the end of the test.

        In operation, the controller derives these weights from R (the balancing metric).
        """
        self.replace(entries.ratios(service, weights), entries.ratios(service, plan.RATIOS[service]))

    def weigh_capacity(self, service: Service, weights: Mapping[Server, int]) -> None:
        """Set the weights by which servers are drawn for connections without a pin, until the end of the test.

        In operation, these weights are the servers' capacities.
        """
        self.replace(entries.capacities(service, weights), entries.capacities(service, plan.CAPACITIES[service]))

    def drain(self, server: Server) -> None:
        """Mark a server as draining until the end of the test, as for an ejected, drained or removed server."""
        self.replace(entries.server(server, draining=True), entries.server(server))

    def drains(self) -> None:
        """Let S1 drain, and let new connections be sent to S2, until the end of the test."""
        self.drain(plan.S1)
        self.weigh(plan.WEB, {plan.S2: 1})

    def set_timers(self, **times: int) -> None:
        """Set timeouts of the connection table until the end of the test: idle, pending, answered, half_closed, linger.

        The unit is ticks. With a negative timeout, every slot in its state has expired. Timeouts that are not given
        have the values with which the program starts.
        """
        changed = {f"{name}_time": ticks % (1 << STAMP_BITS) for name, ticks in times.items()}
        self.replace(entries.timers({**self.switch.times, **changed}), entries.timers(self.switch.times))

    def meter(self, name: Meter, index: int, *, cir: int, cburst: int, pir: int, pburst: int) -> None:
        """Configure a token bucket (rates in packets per second, bursts in packets) until the end of the test.

        On v1model a bucket without a refill rate starts full. On Tofino it would start empty, so the bucket stays
        unconfigured, which means unlimited, until `spent` is called.
        """
        config = entries.meter(name, index, cir=cir, cburst=cburst, pir=pir, pburst=pburst)
        if not pir and self.switch.empty_without_rate:
            self._unspent[name, index] = config
            config = entries.unmetered(name, index)
        self.replace(config, entries.unmetered(name, index))

    def spent(self, *names: Meter) -> None:
        """Empty the buckets that are never refilled, after the test has used up their tokens.

        `names`: the meters of these buckets; if none is given, all meters.
        """
        now = [cell for cell in self._unspent if not names or cell[0] in names]
        if now:
            self.switch.modify([self._unspent.pop(cell) for cell in now])

    def watch(self, address: str, number: int, answer_reset: bool = False, remember: int = 0) -> None:
        """Count and limit the requests to an address as destination `number` until the end of the test.

        `answer_reset`: refused SYNs are answered by an RST. `remember`: ticks for which clients are remembered.
        """
        self.insert(entries.destination(address, number, answer_reset, remember))

    def sample(self, packets: int) -> None:
        """Sample the destinations of `packets` in 65,536 packets until the end of the test; the ring starts empty."""
        self.switch.registers.clear(Register.SAMPLE_NEXT, Register.SAMPLE_RING)
        self.replace(entries.sampling(packets), entries.sampling(0))

    def measure_rates(self, step: int, mask: int = 0) -> None:
        """Measure response rates until the end of the test, starting with free slots.

        `step` is the length of a time step in units of the rate clock; `mask` selects the responses (0: all).
        """
        self.switch.registers.clear(Register.RATE_FLOW, Register.RATE_BYTES)
        self.replace(entries.rate_settings(step, mask), entries.rate_settings(0, 0))

    def pass_ticks(self, ticks: int) -> None:
        """Wait until at least `ticks` ticks of the connection table's clock have passed."""
        time.sleep((ticks + 1) * TICK_US / 1e6)


@cache
def _echo(port: plan.Port) -> tuple[bytes, bytes]:
    """Return a fence without its token: the Ethernet and IPv4 headers, and an ICMP message with a checksum of 0."""
    host = port.address.rsplit(".", 1)[0] + f".{_FENCE_HOST}"
    token = b"sluice fence %016x" % 0
    frame = octets(layers(Ether(dst=port.mac, src="02:00:00:00:00:fe"), IP(src=host, dst=port.address), ICMP(), token))
    head, icmp = frame[: -len(token) - 8], frame[-len(token) - 8 : -len(token)]
    return head, icmp[:2] + bytes(2) + icmp[4:]


def batched(items: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    """Yield the items in order, in lists of at most `size` items."""
    rest = iter(items)
    while window := list(itertools.islice(rest, size)):
        yield window


def _listed(frames: list[tuple[int, bytes]]) -> str:
    return "\n".join(f"    port {number}: {explained(frame)}" for number, frame in frames) or "    nothing"
