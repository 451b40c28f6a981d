"""Measures a set-up of a forwarder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.bench.cases import Case, SetUp
from tools.bench.network import Bench, bench
from tools.bench.report import Measurements
from tools.bench.search import Trial, largest_rate
from tools.bench.usage import idle_cpu_percent
from topo.testbed.processes import process_usage

WINDOW = 64
"""The number of incomplete handshakes at a time."""
MAX_RATE = 2_000_000
"""An upper bound of the load generator's rate in frames per second; also the number of unused connection numbers that
are reserved for a trial."""


@dataclass(frozen=True, slots=True)
class Times:
    """The duration of each kind of measurement, in seconds."""

    trial: float
    latency: float
    handshakes: float
    idle: float


def measure(who: str, set_up: SetUp, times: Times, measurements: Measurements, say: Callable[[str], None]) -> None:
    """Measure every case of a set-up, and append the results to `measurements`."""
    with bench(who) as forwarder:
        for case in set_up.cases:
            forwarder.program(case.servers, case.entries, large=set_up.large)
            forwarder.open(case.connections)
            _measure_case(forwarder, case, times, measurements, say)
            if who == "embedded" and case == set_up.cases[0]:
                _measure_usage(forwarder, set_up, times, measurements, say)
        # New connections are measured last, because their entries remain in the tables.
        if set_up.handshakes:
            _measure_connections(forwarder, times, measurements, say)


def _measure_case(
    forwarder: Bench, case: Case, times: Times, measurements: Measurements, say: Callable[[str], None]
) -> None:
    frame = forwarder.frame(case, "A")

    def offer(rate: float) -> Trial:
        return forwarder.offer(frame, 0, case.connections, rate, times.trial)

    rate = largest_rate(offer)
    measurements.pps.setdefault((forwarder.who, case), []).append(rate)
    latency = forwarder.load.latency(frame, case.connections, max(rate / 2, 1.0), times.latency) if rate else None
    if latency is not None and latency.received:
        measurements.p50.setdefault((forwarder.who, case), []).append(latency.p50)
        measurements.p99.setdefault((forwarder.who, case), []).append(latency.p99)
    at_half = "no latency"
    if latency is not None:
        at_half = f"p50 {latency.p50:,.0f} us, p99 {latency.p99:,.0f} us at half of it"
    say(
        f"{forwarder.who}, {case.frame} bytes, {case.servers:,} servers, {case.connections:,} connections,"
        f" {case.entries:,} entries: {rate:,.0f} packets/s; {at_half}"
    )


def _measure_connections(
    forwarder: Bench, times: Times, measurements: Measurements, say: Callable[[str], None]
) -> None:
    """Measure complete handshakes, then SYNs alone; each SYN belongs to a connection that is new to the forwarder."""
    syn = forwarder.frame(Case(), "S")
    opened = forwarder.load.handshakes(syn, forwarder.take_fresh(MAX_RATE), WINDOW, times.handshakes)
    rate = opened.count / opened.seconds
    measurements.connections.setdefault(forwarder.who, []).append(rate)

    def offer(rate: float) -> Trial:
        return forwarder.offer(syn, forwarder.take_fresh(MAX_RATE), MAX_RATE, rate, times.trial)

    syns = largest_rate(offer)
    measurements.syns.setdefault(forwarder.who, []).append(syns)
    say(f"{forwarder.who}: {rate:,.0f} connections/s ({opened.given_up} given up), {syns:,.0f} SYNs/s")


def _measure_usage(
    forwarder: Bench, set_up: SetUp, times: Times, measurements: Measurements, say: Callable[[str], None]
) -> None:
    memory = process_usage(forwarder.pid)[1] / 1e6
    if set_up.large:
        measurements.rss_large_mb = round(memory, 1)
        return
    if measurements.rss_mb is None:
        measurements.rss_mb = round(memory, 1)
        measurements.idle_cpu_percent = round(idle_cpu_percent(forwarder.pid, times.idle), 2)
        say(
            f"{forwarder.who}: {measurements.rss_mb} MB resident, {measurements.idle_cpu_percent} % of a core when idle"
        )
