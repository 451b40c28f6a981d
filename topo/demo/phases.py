"""A phase of the demo: a load, sampled at regular intervals until its last connection has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from topo.labs.web import Lab
from topo.labs.webservers import PAGE
from topo.measure.counts import Observation
from topo.measure.downloads import Downloads
from topo.measure.handshakes import ConnectTimes, Handshakes
from topo.measure.httperf import HttperfResult
from topo.plan.load import Load
from topo.plan.network import SERVER_NAMES

SAMPLE_S = 2.0
"""Seconds between two samples, and between two lines of progress, on a switch whose phases have the usual length."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of the lab; `connect` contains the connections answered since the previous sample."""

    observation: Observation
    connect: ConnectTimes


@dataclass(frozen=True, slots=True)
class Phase:
    """A finished phase; times are in seconds, on the clock of time.time()."""

    name: str
    load: Load
    started: float
    ended: float
    httperf: HttperfResult
    connect: ConnectTimes
    samples: Sequence[Sample]
    """The first sample is taken before the load, the last sample after it."""

    @property
    def before(self) -> Observation:
        """The observation before the load."""
        return self.samples[0].observation

    @property
    def at_end_of_load(self) -> Observation:
        """The last observation while connections were offered; ratios after the load mean nothing."""
        end = self.started + self.load.seconds
        return [
            sample.observation for sample in self.samples if sample.observation.time <= end or sample is self.samples[0]
        ][-1]

    @property
    def after(self) -> Observation:
        """The observation after the load."""
        return self.samples[-1].observation


def progress_line(name: str, elapsed_s: float, sample: Sample, running: int) -> str:
    """Return a line of progress."""
    now = sample.observation
    ratios = "  ".join(f"{server} {now.ratios[server]:.3f}" for server in SERVER_NAMES)
    r = "  ".join("-" if now.r[server] is None else f"{now.r[server]:.2f}" for server in SERVER_NAMES)
    mean = sample.connect.mean_ms()
    return f"{name:<9} {elapsed_s:4.0f} s   ratios {ratios}   R {r}   connect {mean:7.1f} ms   downloads {running}"


def run_phase(
    lab: Lab,
    name: str,
    load: Load,
    handshakes: Handshakes,
    *,
    downloads: Downloads | None = None,
    say: Callable[[str], None] | None = None,
) -> Phase:
    """Offer the load, and sample the lab until the last connection has ended; without `say`, print nothing."""
    sample_s = SAMPLE_S * lab.switch.time_share
    samples = [Sample(lab.observe(), handshakes.answered_between(0, 0))]
    started = last = time.time()
    httperf = lab.start_load(load, PAGE)
    due = time.monotonic() + sample_s
    while httperf.running():
        # Wait for the next sample, or for the end of the load if that is earlier.
        while httperf.running() and time.monotonic() < due:
            time.sleep(0.05)
        due += sample_s
        now = time.time()
        samples.append(Sample(lab.observe(), handshakes.answered_between(last, now)))
        last = now
        running = len(downloads.established()) if downloads else 0
        if say:
            say(progress_line(name, now - started, samples[-1], running))
        lab.require_running()
    result = httperf.result()
    ended = time.time()
    lab.await_served()
    samples.append(Sample(lab.observe(), handshakes.answered_between(last, ended)))
    return Phase(name, load, started, ended, result, handshakes.between(started, ended), tuple(samples))
