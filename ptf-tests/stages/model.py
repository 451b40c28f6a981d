"""Compare the model of the data plane (sluice.dataplane) with the program: random packets, one by one.

Packets, weights, drains and pauses are drawn from a seed. After each packet the frame, every count, and every cell of
the connections must equal those of the model. For a pause, the test sets back the stamps in the switch's cells, so it
does not wait. Timeouts end halfway between two pauses, so that the seconds of a run make no difference.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from harness import bulk, entries, plan
from harness.base import StageTest
from harness.collisions import crowd
from harness.flow import ANSWER, FIRST, Flow
from harness.frames import TCP, Packet
from harness.plan import S1, S2, S3, WEB, Server
from harness.switch import CONNECTION_COUNTERS, LEDGER, Cell
from sluice.balance.looks import sought_idle
from sluice.dataplane.dataplane import DataPlane, Outcome, Service
from sluice.dataplane.dataplane import Packet as Segment
from sluice.dataplane.draws import Draws, Group
from sluice.dataplane.idle import PLACES
from sluice.dataplane.memory import Memory
from sluice.dataplane.pins import LIFETIMES, Event, event
from sluice.dataplane.table import LOADS, REFUSING, STALE
from sluice.names import CANDIDATES, DropReason, Meter, PinState, Register
from sluice.names import SERVERS as NUMBERED

PACKETS = 700
HALF = 1 << 13
"""Half of a pause in ticks: 9 minutes, which is longer than a run."""
PAUSE = 2 * HALF
TIMES = {"pending": HALF, "answered": 3 * HALF, "idle": 5 * HALF, "half_closed": 3 * HALF, "linger": HALF}
WEIGHTS: tuple[dict[Server, int], ...] = ({S1: 5, S2: 2, S3: 1}, {S1: 1, S2: 1, S3: 6}, {S2: 3, S3: 5}, {S1: 8}, {})
SHARES = 8
CAPACITIES: tuple[dict[Server, int], ...] = ({S3: 1}, {S1: 2, S2: 1}, {})
NUMBERS = (ANSWER, ANSWER + 70_000)
"""Sequence numbers of SYN-ACKs. A random ACK acknowledges one of them, possibly one that no SYN-ACK of its flow had."""
FLAGS = ("S", "S", "SA", "A", "PA", "FA", "R", "RA", "SF", "FPU")
KEYS = (Register.PIN_KEY_1, Register.PIN_KEY_2, Register.CANDIDATE_KEY)
SERVERS = (Register.PIN_SERVER_1, Register.PIN_SERVER_2)
COUNTS = (*LOADS, *REFUSING, Register.LOAD_EVICTED)
TICKETS = (Register.IDLE_TICKET_FIRST, Register.IDLE_TICKET_HEAD)
IDLE = (Register.IDLE_ENDS, Register.IDLE_QUEUE, *TICKETS)
OTHERS = (Register.CANDIDATE_PIN, *STALE, Register.STALE_IDLE, *IDLE, Register.DRAW_POINT)
STAMP = (1 << 32) - 1
DROPS = {DropReason.NONE, DropReason.NO_SERVER, DropReason.ADMISSION_REFUSED, DropReason.SERVER_UNKNOWN}


def ids(weights: Mapping[Server, int]) -> dict[int, int]:
    """Return the weights by server id."""
    return {server.id: weight for server, weight in weights.items()}


class RandomPackets(StageTest):
    """For random packets, the switch behaves like the model."""

    NEEDS = (Register.CANDIDATE_KEY,)
    seed = 1

    def setUp(self) -> None:
        super().setUp()
        self.source = random.Random(self.seed)
        self.flows = self._flows()
        self.last_segments = {flow.key: ("", S1, ANSWER) for flow in self.flows}
        """The last segment of each flow: its flags, the server that received or sent it, and its sequence number."""
        self.cells = self._cells()
        self.occurred: set[object] = set()
        self.addCleanup(self.switch.restore)
        self.set_timers(**TIMES)
        self.exchange(plan.CLIENT, self.flows[0].syn())
        self.start = self.pins(self.flows[0].key)[0].stamp
        self.switch.clear_connections()
        self.switch.registers.clear(*SERVERS, *COUNTS, *OTHERS)
        lifetimes = {state: TIMES[name] for name, states in LIFETIMES.items() for state in states}
        self.model = DataPlane(Memory(), lifetimes, {server.id: False for server in WEB.servers})
        self.service = Service(WEB.id)
        self.pauses, self.tokens = 0, 1 << 30
        self.groups: set[int] = set()
        self.weighed = self.stable = True
        self.weigh_anew(WEIGHTS[0])
        self.stabilise(CAPACITIES[0])

    def _flows(self) -> list[Flow]:
        flows = crowd(late=2)
        others = islice(bulk.keys(WEB, 3, seed=self.seed), 3)
        return [flows.first, flows.second, *flows.late, *(Flow.of(key, WEB, S1) for key in others)]

    def _cells(self) -> list[tuple[Register, int]]:
        """Return all cells that the packets may change, except counts."""
        slots = sorted(
            {(way, slot) for flow in self.flows for way, slot in enumerate((flow.key.slot_1, flow.key.slot_2))}
        )
        places = sorted({flow.key.slot_1 % CANDIDATES for flow in self.flows})
        cells = [(registers[way], slot) for registers in (KEYS, SERVERS) for way, slot in slots]
        cells += [
            (register, place) for register in (Register.CANDIDATE_KEY, Register.CANDIDATE_PIN) for place in places
        ]
        cells += [(register, server.id) for register in COUNTS for server in WEB.servers]
        cells += [(register, server.id) for register in TICKETS for server in WEB.servers]
        cells += [(Register.IDLE_QUEUE, WEB.id * PLACES + place) for place in range(PLACES)]
        return [*cells, (Register.IDLE_ENDS, WEB.id), (Register.DRAW_POINT, WEB.id)]

    # -- The actions of a controller

    def weigh_anew(self, weights: Mapping[Server, int]) -> None:
        """Set new weights by R, with random options.

        Servers are drawn by hashes or by an evenly spaced sequence, with one to four candidates, in groups as for a
        small or a large pool.
        """
        looks, shares = self.source.choice((1, 2, 3, 4)), self.source.choice((0, SHARES)) if weights else 0
        large = self.source.random() < 0.5
        others = {
            server_drawn: {server: weight for server, weight in weights.items() if large or server is not server_drawn}
            for server_drawn in weights
            if looks > 1 and len(weights) > 1
        }
        numbers = {server_drawn: NUMBERED + WEB.id if large else server_drawn.id for server_drawn in others}
        for number, group in {numbers[server_drawn]: group for server_drawn, group in others.items()}.items():
            entry = entries.others(number, group, looks)
            (self.switch.modify if number in self.groups else self.switch.insert)([entry])
            self.groups.add(number)
        self.switch.modify([entries.service(WEB, shares)])
        self._replace(self.weighed, entries.ratios(WEB, weights or {S1: 1}, numbers), bool(weights))
        self.weighed = bool(weights)
        groups = {server_drawn.id: ids(group) for server_drawn, group in others.items()}
        self.service.draws = Draws(ids(weights), groups, shares, looks) if weights else None
        self.seek(self.source.sample(WEB.servers, self.source.randint(1, 3)))

    def seek(self, servers: Iterable[Server]) -> None:
        """Set the servers that the switch may select while they are idle."""
        before_any = self.source.random() < 0.5
        entry = entries.idle_members(WEB, servers, before_any=before_any)
        (self.switch.modify if self.service.sought.words else self.switch.insert)([entry])
        self.service.sought = sought_idle({server.id: 1 for server in servers})._replace(before_any=before_any)

    def stabilise(self, weights: Mapping[Server, int]) -> None:
        """Set new weights by capacity."""
        self._replace(self.stable, entries.capacities(WEB, weights or {S1: 1}), bool(weights))
        self.stable = bool(weights)
        self.service.capacities = Group(ids(weights)) if weights else None

    def expire(self, server: Server) -> None:
        """Mark a random number of the server's connections as ended without a FIN or RST that the switch received."""
        stale = self.source.randrange(3)
        for register in (*STALE, Register.STALE_IDLE):
            self.switch.registers.write(register, server.id, stale)
            self.model.memory.of(register)[server.id] = stale

    def _replace(self, before: bool, entry: Any, after: bool) -> None:
        if after:
            (self.switch.modify if before else self.switch.insert)([entry])
        elif before:
            self.switch.delete([entry])

    def change_server(self, server: Server) -> None:
        """Make the server drain, stop draining, or be no longer configured, at random."""
        known, draining = self.model.draining, self.source.choice((False, True, None))
        if draining is None:
            if known.pop(server.id, None) is not None:
                self.switch.delete([entries.server(server)])
            return
        (self.switch.modify if server.id in known else self.switch.insert)([entries.server(server, draining)])
        known[server.id] = draining

    def admit(self, tokens: int) -> None:
        """Let `tokens` SYNs be admitted; writing the bucket's configuration fills the bucket."""
        self.tokens = tokens
        self.switch.modify([entries.unmetered(Meter.ADMISSION, WEB.id)])
        self.meter(Meter.ADMISSION, WEB.id, cir=0, cburst=tokens, pir=0, pburst=tokens)

    def pause(self) -> None:
        """Set back every stamp by a pause, as if that time had passed."""
        self.pauses += 1
        cells = [cell for cell in self.cells if cell[0] in KEYS]
        for (register, index), key in zip(cells, self.switch.registers.read(cells), strict=True):
            if key:
                self.switch.registers.write(register, index, key & ~STAMP | (key - PAUSE) & STAMP)

    # -- Packets

    def now(self) -> int:
        """Return the model's time: the switch's time at the start, plus the pauses."""
        return self.start + self.pauses * PAUSE

    def packet(self) -> None:
        """Send a random packet, or the usual next packet of a flow; compare its effects with those in the model."""
        flow = self.source.choice(self.flows)
        flags, server, number = self.last_segments[flow.key]
        by_client = True
        if self.source.random() < 0.3:
            by_client, flags = self.source.random() < 0.5, self.source.choice(FLAGS)
            server, number = self.source.choice(WEB.servers), self.source.choice(NUMBERS)
        elif flags == "S":
            by_client, flags, number = False, "SA", self.source.choice(NUMBERS)
        elif flags == "SA":
            flags = self.source.choice(("A", "PA"))
        elif flags in ("A", "PA"):
            by_client, flags = self.source.choice(
                ((True, "PA"), (False, "PA"), (True, "FA"), (False, "FA"), (True, "S"))
            )
        elif flags == "FA":
            by_client, flags = self.source.random() < 0.5, self.source.choice(("FA", "S", "R"))
        else:
            flags = "S"
        self.last_segments[flow.key] = flags, self._compare_segment(flow.to(server), by_client, flags, number), number

    def _compare_segment(self, flow: Flow, by_client: bool, flags: str, number: int) -> Server:
        """Send a segment to switch and model, and compare; return the server that received or sent the segment."""
        payload = b"data" if flags == "PA" else b""
        frame: Any
        if by_client:
            frame = flow.request(payload, flags=flags, seq=FIRST, ack=number + 1)
        else:
            frame = flow.reply(payload, flags=flags, seq=number, ack=FIRST + 1)
        kind = event(int(frame[TCP].flags), len(payload))
        before, candidates = self._counts_of_model(), self._candidates()
        segment = Segment(flow.key.connection, kind, frame[TCP].seq, frame[TCP].ack, "A" in frame[TCP].flags)
        if by_client:
            refused = kind is Event.SYN and not self.tokens
            if kind is Event.SYN and self.tokens:
                self.tokens -= 1
            outcome = self.model.request(self.now(), self.service, segment, refused=refused)
        else:
            outcome = self.model.answer(self.now(), self.service, flow.server.id, segment)
        changes = {
            cell: count - before[cell] for cell, count in self._counts_of_model().items() if count != before[cell]
        }
        self.occurred |= {outcome.drop, *(name for name, _ in changes)} | (
            {"moved"} if self._candidates() < candidates else set()
        )
        reached = next((server for server in WEB.servers if server.id == outcome.server), flow.server)
        try:
            self._compare(frame, flow.to(reached), by_client, outcome, changes)
        except AssertionError as error:
            error.add_note(f"{flags} {'to' if by_client else 'from'} server {reached.id}, {flow.key}; seed {self.seed}")
            raise
        return reached

    def _compare(
        self, frame: Packet, flow: Flow, by_client: bool, outcome: Outcome, changes: Mapping[Cell, int]
    ) -> None:
        counts = [cell for cell, number in changes.items() for _ in range(number)]
        if outcome.drop is not DropReason.NONE:
            self.drops(plan.CLIENT, frame, outcome.drop, counts)
        elif by_client:
            self.client_sends(flow, frame, counts)
        else:
            self.server_sends(flow, frame, counts)
        got = self.switch.registers.read(self.cells)
        expected = [self.model.memory.of(register)[index] for register, index in self.cells]
        self.assertEqual(
            self._readable(got, self.pauses), self._readable(expected, 0), "the switch's cells, the model's"
        )

    def _counts_of_model(self) -> dict[Cell, int]:
        cells: dict[Cell, int] = {
            (register, server.id): self.model.memory.of(register)[server.id]
            for register in LEDGER
            for server in WEB.servers
        }
        return cells | {(name, WEB.id): self.model.counters[name, WEB.id] for name in CONNECTION_COUNTERS}

    def _candidates(self) -> int:
        """Return the number of the model's candidates; it falls when a candidate becomes its connection's pin."""
        keys = self.model.memory.of(Register.CANDIDATE_KEY)
        return sum(keys[index] != 0 for register, index in self.cells if register is Register.CANDIDATE_KEY)

    def _readable(self, values: Iterable[int], aged: int) -> dict[str, object]:
        """Return the values of cells by name; a key is returned as a pair.

        The pair consists of fingerprint with state, and of the time stamp as the number of half pauses since the start.
        `aged`: number of pauses by which the stamps have been set back.
        """
        readable: dict[str, object] = {}
        for (register, index), value in zip(self.cells, values, strict=True):
            name = f"{register.rsplit('.', 1)[-1]}[{index}]"
            self.occurred |= {register} if value else set()
            if register not in KEYS or not value:
                readable[name] = value
                continue
            readable[name] = (value >> 32, (value + aged * PAUSE - self.start & STAMP) // HALF)
            if register is not Register.CANDIDATE_KEY:
                self.occurred.add(PinState(value >> 32 & 0xF))
        return readable

    def runTest(self) -> None:
        for _ in range(PACKETS):
            chance = self.source.random()
            if chance < 0.08:
                self.pause()
            elif chance < 0.14:
                self.weigh_anew(self.source.choice(WEIGHTS))
            elif chance < 0.24:
                self.change_server(self.source.choice(WEB.servers))
            elif chance < 0.27:
                self.stabilise(self.source.choice(CAPACITIES))
            elif chance < 0.30:
                self.admit(self.source.choice((1, 3, 1000)))
            elif chance < 0.33:
                self.expire(self.source.choice(WEB.servers))
            self.packet()
        registers = {register for register, _ in self.cells}
        everything = {*DROPS, *CONNECTION_COUNTERS, *LEDGER, *PinState, *registers, "moved"}
        self.assertEqual(everything - self.occurred, set(), "never happened: draw more packets")
