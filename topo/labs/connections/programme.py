"""What very many connections live through, and what became of them: waves of them, and then more than there are slots.

In a wave connections are opened while servers drain and come back and one loses SYNs; a server falls silent, is ejected
and speaks again; the fourth server comes or goes by a reload; ports are used again without a word; all are closed.
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
"""Between two changes by hand."""
LOSS = 0.2
"""Of a server's SYNs, while R has something to do."""
SILENT_S = 1.0
"""A server stays silent for, once it is ejected."""
SILENT_SHARE, REUSED_SHARE, RESET_SHARE, STAY_SHARE = 0.2, 0.1, 0.1, 0.5
"""Of a wave: opened while a server is silent; opened again from ports whose connection still is; ended by RST; and
ports that the next wave has again."""

PRESSED = "more than slots"
"""The name of the last phase."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How many."""

    waves: int
    live: int
    """Connections of a wave."""
    pressure: int
    """Connections at a time in the end; 0: none."""

    @property
    def tuples(self) -> int:
        """Addresses and ports that it takes."""
        fresh = self.live - int(self.live * STAY_SHARE)
        return max(self.live + (self.waves - 1) * fresh, self.pressure)


@dataclass
class Counts:
    """What the switch counted, of all connections or of a part."""

    unpinned_new: int = 0
    moved: int = 0
    disowned: int = 0
    no_server: int = 0
    """Packets dropped for that reason."""


@dataclass
class Phase:
    """Connections that were opened one after the other: what the clients, the switch and the observer say of them."""

    name: str
    connections: int = 0
    unpinned: int = 0
    """Without a slot in the connection table once all are open."""
    unpinned_syns: int = 0
    """SYNs of those."""
    moved: int = 0
    """Further servers that SYNs of a connection reached, behind the first one."""
    strayed: int = 0
    """Connections of which anything else reached a server that no SYN had reached, or two servers."""
    strayed_pinned: int = 0
    """Of those, the ones with a slot."""
    astray: int = 0
    """Connections to whose clients two servers answered."""
    broken: int = 0
    """Connections whose clients got a reset, or no answer."""
    broken_pinned: int = 0
    resets: int = 0
    """Of servers, for what they did not know."""
    switch: Counts = field(default_factory=Counts)


@dataclass
class Result:
    """All of it."""

    phases: list[Phase]
    weight_changes: int
    drains: int
    reloads: int
    ejections: int
    again: int
    """Segments that clients sent again."""
    lost: int
    """Frames that nobody saw: the observer's and the clients' sockets had no room."""
    drops: Mapping[str, int]
    """The switch's, by reason."""

    def values(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def exact(phase: Mapping[str, Any]) -> bool:
    """Whether the switch counts what is seen, where it can tell."""
    switch = phase["switch"]
    return phase["unpinned_syns"] == switch["unpinned_new"] and phase["resets"] == switch["disowned"]


def bounded(phase: Mapping[str, Any]) -> bool:
    """Whether it counts every move by a SYN. A port that is used again is one, too, where it dropped the first SYN."""
    return 0 <= phase["switch"]["moved"] - phase["moved"] <= phase["switch"]["no_server"]


class Programme:
    """One run in a lab."""

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
        """Do everything."""
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
            lost=self.lab.seen().lost + self.lab.wire.lost(),
            drops={reason: count for reason, count in status["packets"]["drops"].items() if count},
        )

    # -- what connections live through

    def _wave(self, number: int, which: Which) -> None:
        first = int(which.size * (1 - SILENT_SHARE))
        lossy = number % len(AT_FIRST)
        self._begin(f"wave {number + 1}")
        time.sleep(ENDED_S)
        self.lab.tell("lossy", lossy, LOSS)
        with self.unrest():
            self._open(which[:first])
        self.lab.tell("lossy", lossy, 0)
        self._open_without_one(which[first:])
        self._look(which)
        with self.unrest():
            self._ask(which)
        self._reload()
        with self.unrest():
            again = which[:: int(1 / REUSED_SHARE)]
            self._open(again)
            self._look(again)
            self._ask(which)
        self._end(which)

    def _pressure(self, which: Which) -> None:
        self._begin(PRESSED)
        time.sleep(ENDED_S)
        self._open(which)
        self._look(which)
        with self.unrest():
            self._ask(which)
        self._reload()
        with self.unrest():
            self._ask(which)
        self._end(which)

    def _open(self, which: Which) -> None:
        """Open connections, the first ones of their ports or not."""
        for used in (False, True):
            some = which[self._used[which] == used]
            self._keep(some)
            self.clients.open(some, again=used)
        self._used[which] = True
        self._phase_of[self.clients.lives[which], which] = len(self.phases) - 1
        self.phases[-1].connections += which.size

    def _open_without_one(self, which: Which) -> None:
        """Meanwhile the server that is to have most of them is silent: it is ejected, and answers again.

        A SYN that moves to another server counts against the silent one no more. So a pause comes first: then its
        first SYNs fall into an interval in which it answers nothing.
        """
        time.sleep(2 * PERIOD_S)
        loads = self.lab.loads()
        server = NAMES.index(min(self._servers, key=lambda name: loads[name]))
        self.lab.tell("silent", server)
        with self._beside(lambda: self._speak_again(server)):
            self._open(which)
        self.ejections += 1

    def _speak_again(self, server: int) -> None:
        await_true("it is ejected", lambda: self.lab.states()[NAMES[server]] == "ejected", TIMEOUT_S)
        time.sleep(SILENT_S)
        self.lab.tell("silent")

    def _look(self, which: Which) -> None:
        """Which of them have a slot."""
        has = self.lab.table().pins(self.lab.tuples)[which] > 0
        self._pinned[self.clients.lives[which], which] = has
        phase = self.phases[-1]
        phase.unpinned += int((~has).sum())
        phase.unpinned_syns += int(self.clients.syns[which[~has]].sum())

    def _ask(self, which: Which) -> None:
        self.clients.ask(which[~self.clients.broken[which]])

    def _reload(self) -> None:
        """The fourth server comes, or goes."""
        last = NAMES[-1]
        self._servers = [name for name in NAMES if name != last or last not in self._servers]
        self.lab.controller.reload(self.lab.configuration(self._servers))
        self.reloads += 1

    def _end(self, which: Which) -> None:
        left = which[~self.clients.broken[which]]
        cut = int(left.size * RESET_SHARE)
        self.clients.reset(left[:cut])
        self.clients.close(left[cut:])
        self._keep(which)
        phase = self.phases[-1]
        self._count(phase)
        self.say(f"{phase.name}: {phase.connections} connections, {phase.unpinned} without a slot; {phase.switch}")

    @contextmanager
    def unrest(self) -> Generator[None]:
        """Within this, servers drain and come back in turn."""
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
        """Within this, it is done in a thread, which comes to its end here; raises what that has raised."""
        with ThreadPoolExecutor(1) as thread:
            doing = thread.submit(what)
            try:
                yield
            finally:
                if ending is not None:
                    ending.set()
        doing.result()

    # -- what is seen

    def _begin(self, name: str) -> None:
        self.phases.append(Phase(name))

    def _keep(self, which: Which) -> None:
        """What the clients know of connections that end here, or whose ports are used again."""
        clients = self.clients
        for kept, known in ((self._astray, clients.astray), (self._broken, clients.broken)):
            kept[clients.lives[which], which] |= known[which]
            known[which] = False

    def _count(self, phase: Phase) -> None:
        status = self.lab.controller.ask(command="status")
        told = status["services"][0] | status["packets"]["drops"]
        now = {name: told[name] for name in asdict(self._before)}
        phase.switch = Counts(**{name: now[name] - before for name, before in asdict(self._before).items()})
        self._before = Counts(**now)
        resets = self.lab.seen().resets
        phase.resets, self._resets = resets - self._resets, resets

    def _judged(self) -> list[Phase]:
        seen = self.lab.seen()
        servers = _bits(seen.by_others)
        strayed = (servers > 1) | (seen.by_others & ~seen.by_syn != 0)
        for number, phase in enumerate(self.phases):
            ours = self._phase_of == number
            phase.moved = int(np.maximum(_bits(seen.by_syn[ours]).astype(int) - 1, 0).sum())
            phase.strayed = int(strayed[ours].sum())
            phase.strayed_pinned = int((strayed & self._pinned)[ours].sum())
            phase.astray = int(self._astray[ours].sum())
            phase.broken = int(self._broken[ours].sum())
            phase.broken_pinned = int((self._broken & self._pinned)[ours].sum())
        return self.phases


def _bits(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """How many bits are set."""
    return np.unpackbits(values[..., None], axis=-1).sum(axis=-1, dtype=np.uint8)
