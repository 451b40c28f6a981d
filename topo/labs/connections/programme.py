"""The course of a run with up to a million connections, and its counts: several waves of connections, then more open
connections than slots in the switch's table.

In a wave, connections open while servers drain and return and one server drops SYNs. Then a server becomes silent, is
ejected and answers again. A reload adds or removes the fourth server. Clients use ports of open connections for new
connections. At the end all connections close.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topo.labs.connections.clients import Which
from topo.labs.connections.lab import AT_FIRST, ENDED_S, NAMES, PERIOD_S, TIMEOUT_S, ConnectionsLab
from topo.labs.connections.observer import LIVES
from topo.testbed.processes import await_true

DRAIN_S = 0.25
"""Seconds between two commands to the controller, which alternately drain and restore a server."""
LOSS = 0.2
"""Share of the SYNs that a server drops, so that its R rises and the controller changes weights."""
SILENT_S = 1.0
"""Seconds for which a server stays silent after its ejection."""
SILENT_SHARE, REUSED_SHARE, RESET_SHARE, STAY_SHARE = 0.2, 0.1, 0.1, 0.5
"""Shares of a wave: connections opened while a server is silent; connections opened from ports whose earlier connection
is still open; connections ended by RST; ports that the next wave also uses."""

PRESSED = "more than slots"
"""The name of the last phase."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """The size of a run."""

    waves: int
    live: int
    """Number of connections per wave."""
    pressure: int
    """Number of connections open at the same time in the last phase, more than the table has slots; 0: the run has no
    such phase."""

    @property
    def tuples(self) -> int:
        """Number of tuples (pairs of client address and port) that a run needs."""
        fresh = self.live - int(self.live * STAY_SHARE)
        return max(self.live + (self.waves - 1) * fresh, self.pressure)


@dataclass
class Counts:
    """The switch's counters, over all phases or of one phase. `unpinned_new`: SYNs of connections without a slot.
    `moved`: SYNs that moved to another server. `disowned`: segments without a connection."""

    unpinned_new: int = 0
    moved: int = 0
    disowned: int = 0
    no_server: int = 0
    """Packets dropped because no server could be selected."""


@dataclass
class Phase:
    """The connections of a phase, as counted by the clients, the switch and the observer."""

    name: str
    connections: int = 0
    unpinned: int = 0
    """Connections without a slot in the connection table at the time when all connections are open."""
    unpinned_syns: int = 0
    """SYNs of the connections without a slot."""
    moved: int = 0
    """Number of servers that a connection's SYNs reached in addition to the first server, summed over all
    connections."""
    strayed: int = 0
    """Connections whose segments other than SYNs reached two servers, or reached a server that no SYN of the connection
    had reached."""
    strayed_pinned: int = 0
    """Number of strayed connections that have a slot."""
    astray: int = 0
    """Connections whose clients received answers from two servers."""
    broken: int = 0
    """Connections whose clients received a RST, or no answer."""
    broken_pinned: int = 0
    resets: int = 0
    """RSTs that servers sent for segments without a connection."""
    switch: Counts = field(default_factory=Counts)


@dataclass
class Result:
    """The counts of a complete run."""

    phases: list[Phase]
    weight_changes: int
    drains: int
    reloads: int
    ejections: int
    again: int
    """Segments that clients repeated."""
    lost: int
    """Frames that the sockets of observer and clients dropped because their receive buffers were full."""
    drops: Mapping[str, int]
    """Packets dropped by the switch, by reason."""

    def values(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return asdict(self)


def exact(phase: Mapping[str, Any]) -> bool:
    """Return whether the switch's two exact counters agree with the endpoints: its SYNs without a slot with the SYNs
    that clients sent for such connections, and its segments without a connection with the servers' RSTs."""
    switch = phase["switch"]
    return phase["unpinned_syns"] == switch["unpinned_new"] and phase["resets"] == switch["disowned"]


def bounded(phase: Mapping[str, Any]) -> bool:
    """Return whether the switch's count of moves (of a connection's SYNs to another server) is within its bounds.

    The switch must count every move that the observer counts. It may count more moves than the observer, at most one
    per packet that it drops for lack of a server: if this packet is the first SYN of a port's next connection, the
    switch counts the repeated SYN as a further move.
    """
    return 0 <= phase["switch"]["moved"] - phase["moved"] <= phase["switch"]["no_server"]


class Programme:
    """A run of all phases in a lab."""

    def __init__(self, lab: ConnectionsLab, plan: Plan, say: Say = lambda _: None) -> None:
        self.lab, self.plan, self.say = lab, plan, say
        self.clients = lab.clients
        size = lab.tuples.client.size
        self._phase_of = np.full((LIVES, size), -1, np.int8)
        self._pinned = np.zeros((LIVES, size), bool)
        self._astray = np.zeros((LIVES, size), bool)
        self._broken = np.zeros((LIVES, size), bool)
        self._used = np.zeros(size, bool)
        self._servers: list[str] = list(AT_FIRST)
        self._before = Counts()
        self._resets = 0
        self.phases: list[Phase] = []
        self.drains = self.reloads = self.ejections = 0

    def run(self) -> Result:
        """Run all phases and return the counts."""
        live, fresh = self.plan.live, self.plan.live - int(self.plan.live * STAY_SHARE)
        for number in range(self.plan.waves):
            self._wave(number, np.arange(number * fresh, number * fresh + live))
        if self.plan.pressure:
            self._pressure(np.arange(self.plan.pressure))
        status = self.lab.controller.ask(command="status")
        (service,) = status["services"]
        return Result(
            phases=self._judged(),
            weight_changes=service["weight_changes"],
            drains=self.drains,
            reloads=self.reloads,
            ejections=self.ejections,
            again=self.clients.again,
            lost=self.lab.record().lost + self.lab.wire.lost(),
            drops={reason: count for reason, count in status["packets"]["drops"].items() if count},
        )

    # -- phases

    def _wave(self, number: int, which: Which) -> None:
        first = int(which.size * (1 - SILENT_SHARE))
        lossy = number % len(AT_FIRST)
        self._begin(f"wave {number + 1}")
        time.sleep(ENDED_S)
        self.lab.command("lossy", lossy, LOSS)
        with self.unrest():
            self._open(which[:first])
        self.lab.command("lossy", lossy, 0)
        self._open_without_one(which[first:])
        self._record_slots(which)
        with self.unrest():
            self._ask(which)
        self._reload()
        with self.unrest():
            again = which[:: int(1 / REUSED_SHARE)]
            self._open(again)
            self._record_slots(again)
            self._ask(which)
        self._end(which)

    def _pressure(self, which: Which) -> None:
        self._begin(PRESSED)
        time.sleep(ENDED_S)
        self._open(which)
        self._record_slots(which)
        with self.unrest():
            self._ask(which)
        self._reload()
        with self.unrest():
            self._ask(which)
        self._end(which)

    def _open(self, which: Which) -> None:
        """Open connections, first on the tuples that no connection has used before."""
        for used in (False, True):
            chosen = which[self._used[which] == used]
            self._record_faults(chosen)
            self.clients.open(chosen, again=used)
        self._used[which] = True
        self._phase_of[self.clients.lives[which], which] = len(self.phases) - 1
        self.phases[-1].connections += which.size

    def _open_without_one(self, which: Which) -> None:
        """Open connections while the least loaded server, which would receive most of them, is silent, is ejected and
        answers again.

        The server is ejected after a period in which it receives SYNs and sends no SYN-ACK. Before it falls silent, no
        connection is opened for two periods, so that no SYN-ACK falls into the period of the first unanswered SYNs.
        Later SYNs do not count: a SYN that moves to another server no longer counts against the silent server.
        """
        time.sleep(2 * PERIOD_S)
        loads = self.lab.loads()
        server = NAMES.index(min(self._servers, key=lambda name: loads[name]))
        self.lab.command("silent", server)
        with self._beside(lambda: self._speak_again(server)):
            self._open(which)
        self.ejections += 1

    def _speak_again(self, server: int) -> None:
        await_true("it is ejected", lambda: self.lab.states()[NAMES[server]] == "ejected", TIMEOUT_S)
        time.sleep(SILENT_S)
        self.lab.command("silent")

    def _record_slots(self, which: Which) -> None:
        """Record which connections have a slot in the switch's connection table."""
        has = self.lab.table().pins(self.lab.tuples)[which] > 0
        self._pinned[self.clients.lives[which], which] = has
        phase = self.phases[-1]
        phase.unpinned += int((~has).sum())
        phase.unpinned_syns += int(self.clients.syns[which[~has]].sum())

    def _ask(self, which: Which) -> None:
        self.clients.ask(which[~self.clients.broken[which]])

    def _reload(self) -> None:
        """Reload the configuration: add the fourth server, or remove it if it is present."""
        last = NAMES[-1]
        self._servers = [name for name in NAMES if name != last or last not in self._servers]
        self.lab.controller.reload(self.lab.configuration(self._servers))
        self.reloads += 1

    def _end(self, which: Which) -> None:
        alive = which[~self.clients.broken[which]]
        cut = int(alive.size * RESET_SHARE)
        self.clients.reset(alive[:cut])
        self.clients.close(alive[cut:])
        self._record_faults(which)
        phase = self.phases[-1]
        self._count(phase)
        self.say(f"{phase.name}: {phase.connections} connections, {phase.unpinned} without a slot; {phase.switch}")

    @contextmanager
    def unrest(self) -> Generator[None]:
        """Drain and restore one server after another, in a thread, while the context is active."""
        ending = threading.Event()

        def change() -> None:
            for name in itertools.cycle(AT_FIRST):
                for drain in (True, False):
                    self.lab.controller.drain(name, drain=drain)
                    self.drains += drain
                    if ending.wait(DRAIN_S) and not drain:
                        return

        with self._beside(change, ending):
            yield

    @contextmanager
    def _beside(self, what: Callable[[], None], ending: threading.Event | None = None) -> Generator[None]:
        """Run ``what`` in a thread while the context is active. At the end set ``ending``, wait for the thread, and
        raise the thread's exception, if any."""
        with ThreadPoolExecutor(1) as thread:
            doing = thread.submit(what)
            try:
                yield
            finally:
                if ending is not None:
                    ending.set()
        doing.result()

    # -- counts

    def _begin(self, name: str) -> None:
        self.phases.append(Phase(name))

    def _record_faults(self, which: Which) -> None:
        """Store the faults (`astray`, `broken`) that clients recorded for connections that end, and clear the clients'
        records for the tuples' next connections."""
        clients = self.clients
        for records, noted in ((self._astray, clients.astray), (self._broken, clients.broken)):
            records[clients.lives[which], which] |= noted[which]
            noted[which] = False

    def _count(self, phase: Phase) -> None:
        status = self.lab.controller.ask(command="status")
        counters = status["services"][0] | status["packets"]["drops"]
        now = {name: counters[name] for name in asdict(self._before)}
        phase.switch = Counts(**{name: now[name] - before for name, before in asdict(self._before).items()})
        self._before = Counts(**now)
        resets = self.lab.record().resets
        phase.resets, self._resets = resets - self._resets, resets

    def _judged(self) -> list[Phase]:
        record = self.lab.record()
        servers = _bits(record.by_others)
        strayed = (servers > 1) | (record.by_others & ~record.by_syn != 0)
        for number, phase in enumerate(self.phases):
            ours = self._phase_of == number
            phase.moved = int(np.maximum(_bits(record.by_syn[ours]).astype(int) - 1, 0).sum())
            phase.strayed = int(strayed[ours].sum())
            phase.strayed_pinned = int((strayed & self._pinned)[ours].sum())
            phase.astray = int(self._astray[ours].sum())
            phase.broken = int(self._broken[ours].sum())
            phase.broken_pinned = int((self._broken & self._pinned)[ours].sum())
        return self.phases


def _bits(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the number of bits set in each value."""
    return np.unpackbits(values[..., None], axis=-1).sum(axis=-1, dtype=np.uint8)
