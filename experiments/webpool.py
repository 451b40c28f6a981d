"""The lab of the experiments on R: Apache servers behind sluice or an alternative, with a packet capture at the
client."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from experiments.experiment import Say
from topo.labs.alternatives import AlternativeLab
from topo.labs.web import Lab
from topo.labs.webservers import PAGE
from topo.measure.counts import Observation, PacketCounts
from topo.measure.handshakes import ConnectTimes, Handshakes
from topo.measure.httperf import Httperf
from topo.plan.load import Load

SAMPLE_S = 1.0


def times(of: ConnectTimes, limit_s: float) -> dict[str, Any]:
    """Return mean, median and p99 of the times `of`, in ms. Times above `limit_s` and missing times count as `limit_s`
    and as given up.

    The limit is applied here, because httperf's timeout limits only the time without progress: a transfer can take
    longer, and a transfer that httperf gave up can still end.
    """
    in_time = ConnectTimes(of.begun, [connect_s for connect_s in of.seconds if connect_s <= limit_s])
    given_up = of.begun - len(in_time.seconds)
    all_of_them = ConnectTimes(of.begun, [*in_time.seconds, *[limit_s] * given_up])
    return {
        "begun": of.begun,
        "given_up": given_up,
        "mean_ms": all_of_them.mean_ms(),
        "median_ms": all_of_them.median_ms(),
        "p99_ms": all_of_them.percentile_ms(0.99),
        "answered_mean_ms": in_time.mean_ms(),
    }


def passed_since(lab: Lab, before: PacketCounts) -> dict[str, int]:
    """Wait until a lab's traffic has ceased; return how many packets its switch has received and lost since
    `before`."""
    packets = lab.quiet_packet_counts().since(before)
    return {
        "received": packets.received,
        "dropped": packets.dropped,
        "lost_before": packets.lost_before(),
        "lost_after": packets.lost_after(),
    }


@dataclass(slots=True)
class Pool:
    """A lab with web servers and a packet capture at the client."""

    lab: Lab
    handshakes: Handshakes
    samples: list[tuple[float, Observation]] = field(default_factory=list[tuple[float, Observation]])

    def run(
        self, load: Load, events: Sequence[tuple[float, Any]] = (), *, paths: Sequence[str] = (PAGE,)
    ) -> dict[str, Any]:
        """Run a load that requests `paths` in turn, call each of `events` at its time (in seconds since the load
        began), and return figures.

        With sluice, the figures include the packets that the switch received and lost, so other traffic must be absent.
        """
        if isinstance(self.lab, AlternativeLab):
            return self.measure(load, events, paths=paths)
        before = self.lab.quiet_packet_counts()
        return {**self.measure(load, events, paths=paths), "switch": passed_since(self.lab, before)}

    def measure(
        self, load: Load, events: Sequence[tuple[float, Any]] = (), *, paths: Sequence[str] = (PAGE,)
    ) -> dict[str, Any]:
        """Run a load like `run`, but without the switch's packet counts, so that other traffic is possible."""
        balanced = not isinstance(self.lab, AlternativeLab)
        first = self.lab.observe() if balanced else None
        self.samples.clear()
        started = time.time()
        httperf = self.lab.start_load(load, *paths)
        happened_s = self._watch(httperf, started, list(events), balanced=balanced)
        result = httperf.result()
        self.lab.await_served()
        connect = self.handshakes.between(started, started + load.seconds + load.timeout_s)
        transfer = self.handshakes.transfers_between(started, started + load.seconds + load.timeout_s)
        measured: dict[str, Any] = {
            "connect": times(connect, load.timeout_s),
            "transfer": times(transfer, load.timeout_s),
            "httperf": asdict(result),
            "happened_s": happened_s,
        }
        if first is not None:
            after = self.lab.observe()
            names = self.lab.pool.names
            measured["servers"] = {name: asdict(after.counts[name].since(first.counts[name])) for name in names}
            measured["ratios"] = [
                [round(moment - started, 2), *(decision.ratios[name] for name in names)]
                for moment, decision in self.samples
            ]
        return measured

    def _watch(
        self, httperf: Httperf, started: float, events: list[tuple[float, Any]], *, balanced: bool
    ) -> list[float]:
        """Wait until the load ends. Meanwhile call each event at its time, and with sluice (`balanced`) sample the
        ratios every SAMPLE_S seconds. Return for each event the seconds from `started` until its call returned."""
        due = started
        happened_s: list[float] = []
        while httperf.running():
            now = time.time()
            if events and now >= started + events[0][0]:
                events.pop(0)[1]()
                happened_s.append(round(time.time() - started, 2))
            if balanced and now >= due:
                self.samples.append((now, self.lab.observe()))
                due += SAMPLE_S
            time.sleep(0.05)
            self.lab.require_running()
        return happened_s


@contextmanager
def pool(lab: Lab) -> Generator[Pool]:
    """Open a lab, and capture the packets at the load client."""
    with lab:
        handshakes = Handshakes()
        lab.capture(handshakes)
        yield Pool(lab, handshakes)


def quiet(say: Say) -> Say:
    """Return a function that discards a lab's messages, because an experiment opens many labs."""
    del say
    return lambda _: None
