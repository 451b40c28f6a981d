"""The demo, on real traffic: three Apache servers, one of them loaded; equal split against R, and kernel DNAT.

`python -m topo.demo` as root.  $SWITCH chooses the switch: embedded (default), bmv2 or tofino.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from topo.demo.bursts import Bursts
from topo.demo.calibration import RATES_PER_S, calibrate
from topo.demo.phases import run_phase
from topo.demo.summary import Results, summary, table
from topo.labs.alternatives import AlternativeLab
from topo.labs.page import PICTURE, save_picture, start_page
from topo.labs.web import Lab
from topo.labs.webservers import PAGE
from topo.measure.downloads import RECEIVE_BUFFER_BYTES
from topo.measure.handshakes import ConnectTimes, Handshakes
from topo.plan.load import Load
from topo.plan.network import LOAD_CLIENT, Balance
from topo.testbed import REPOSITORY
from topo.testbed.interrupts import run_command
from topo.testbed.nodes import SWITCHES, congestion_control, switch_kind, syn_retransmission
from topo.testbed.processes import POLL_S

LOADED = "s3"
PAPER_T_S, PAPER_M = 10.0, 20
READERS = 6
READER_BYTES_PER_S = 120_000.0
"""Rate of a long download. At this rate a download lasts 25 s, during which the weights change many times."""
LEAST_BUFFER_SHARE = 1 / 8
"""Smallest receive buffer of a long download's client, as a share of the usual buffer: the kernel needs room for some
segments."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The durations of the demo's phases and of the balancing's period, in seconds; the number of periods in the
    window; and the request rates that the calibration tries."""

    equal_s: float = 45.0
    r_s: float = 70.0
    burst_s: float = 20.0
    """Duration of a calibration burst. Only its second half is evaluated, because a server becomes overloaded only
    after some seconds."""
    period_s: float = 1.0
    intervals: int = 10
    rates_per_s: Sequence[float] = field(default=RATES_PER_S)

    def slower(self, times: float, r_times: float) -> Settings:
        """Return the settings with all durations multiplied by `times`, and the phase of R also by `r_times`."""
        return replace(
            self,
            equal_s=self.equal_s * times,
            r_s=self.r_s * times * r_times,
            burst_s=self.burst_s * times,
            period_s=self.period_s * times,
        )

    def balance(self, mode: str) -> Balance:
        """Return the options for a phase in which the controller balances in the mode `mode`."""
        return Balance(mode, self.period_s, self.period_s * self.intervals)


def run_demo(settings: Settings, output: Path, say: Callable[[str], None]) -> Results:
    """Run the whole demo, write its files into `output`, and return its measurements."""
    kind = switch_kind()
    settings = settings.slower(SWITCHES[kind].time_share, SWITCHES[kind].r_phase_share)
    say(f"sluice demo: switch {kind}; TCP with {congestion_control()}")
    with Lab(kind, settings.balance("fixed"), say=say) as lab:
        say(syn_retransmission(lab.pid(LOAD_CLIENT.name)))
        handshakes = Handshakes()
        capture = lab.capture(handshakes)
        page = start_page(lab, say) if lab.switch.has_live_page else None
        counted_before, drops_before = lab.quiet_packet_counts(), lab.observe().drops
        lab.break_server(LOADED)
        say(f"{LOADED} is loaded with stress; looking for a rate at which an equal split hurts")
        bursts = Bursts(lab, handshakes, LOADED, settings.burst_s, say)
        rates = [rate * lab.switch.load_share for rate in settings.rates_per_s]
        at = lab.switch
        rate = calibrate(bursts.equal_split, bursts.mean_without_loaded_ms, rates, at.spared_mean_ms, at.rate_margin)
        page_bytes = (lab.files / PAGE).stat().st_size
        say(f"rate: {rate:g} connections/s, exponential intervals, {page_bytes:,} bytes each")
        say(f"phase A: ratios fixed and equal, {settings.equal_s:g} s")
        equal = run_phase(lab, "equal", Load(rate, settings.equal_s), handshakes, say=say)
        downloads = lab.start_downloads(
            READERS,
            READER_BYTES_PER_S * lab.switch.size_share,
            round(RECEIVE_BUFFER_BYTES * max(lab.switch.size_share, LEAST_BUFFER_SHARE)),
        )
        say(
            f"phase B: R decides, {settings.r_s:g} s; Ohta & Andou as published with Delta = 0.1, but time scaled: "
            f"T = {settings.period_s:g} s and m = {settings.intervals} (paper: {PAPER_T_S:g} s and {PAPER_M})"
        )
        changed_from = time.time()
        lab.controller.set_mode("paper")
        under_r = run_phase(lab, "r", Load(rate, settings.r_s), handshakes, downloads=downloads, say=say)
        changes = [moment for moment in lab.controller.weight_changes() if moment >= changed_from]
        say("waiting for the long downloads to end")
        finished = downloads.finish()
        capture.stop()
        after = lab.quiet_packet_counts()
        drops = _more(lab.observe().drops, drops_before)
        packets = after.since(counted_before)
        trace = lab.controller.trace.read_bytes()
        output.mkdir(parents=True, exist_ok=True)
        (output / PICTURE).unlink(missing_ok=True)  # the picture of an earlier run
        if page is not None:
            save_picture(page, output / PICTURE, say)
    say(f"phase C: the kernel's DNAT in the switch's place, equal probabilities, {settings.equal_s:g} s")
    by_kernel = kernel_dnat(Load(rate, settings.equal_s))
    results = Results(kind, equal, under_r, by_kernel, LOADED, changes, finished, packets, drops)
    _write(results, output)
    (output / "trace.jsonl").write_bytes(trace)
    return results


def kernel_dnat(load: Load) -> ConnectTimes:
    """Offer the load to a new lab's three servers, one of them loaded by stress, behind kernel DNAT (the baseline of
    Ohta & Andou); return the connect times."""
    with AlternativeLab("iptables", say=lambda _: None) as lab:
        handshakes = Handshakes()
        lab.capture(handshakes)
        lab.break_server(LOADED)
        started = time.time()
        httperf = lab.start_load(load, PAGE)
        while httperf.running():
            time.sleep(POLL_S)
            lab.require_running()
        httperf.result()
        return handshakes.between(started, time.time())


def _more(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """Return the packets dropped between two readings, by reason."""
    more = {reason: count - before.get(reason, 0) for reason, count in after.items()}
    return {reason: count for reason, count in more.items() if count > 0}


def _write(results: Results, output: Path) -> None:
    # The import of matplotlib takes a second, so it is delayed until the picture is drawn.
    from topo.demo.plot import draw  # noqa: PLC0415

    (output / "summary.json").write_text(json.dumps(summary(results), indent=2) + "\n")
    draw((results.equal, results.r), results.loaded, (output / "demo.png", output / "demo.svg"))


def report(results: Results, output: Path, say: Callable[[str], None]) -> bool:
    """Print the table and the checks; return whether all checks hold."""
    verdicts = summary(results)["checks"]
    assert isinstance(verdicts, dict)
    say("\n" + table(results) + "\n")
    for name, holds in verdicts.items():
        say(f"  {'ok    ' if holds else 'FAILED'}  {str(name).replace('_', ' ')}")
    for download in results.downloads:
        if download.fault:
            say(f"  broken download: {download.fault}")
    names = ["summary.json", "demo.png", "demo.svg", "trace.jsonl", *([PICTURE] if (output / PICTURE).exists() else [])]
    say(f"\nwritten to {output}: {', '.join(names)}")
    return all(verdicts.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m topo.demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=REPOSITORY / "results/demo", help="directory of the results")
    options = parser.parse_args(arguments)
    started = time.monotonic()

    def say(line: str) -> None:
        print(line, flush=True)

    def work() -> int:
        holds = report(run_demo(Settings(), options.output, say), options.output, say)
        say(f"{time.monotonic() - started:.0f} s")
        if not holds:
            print("sluice demo: FAILED: see the checks above", file=sys.stderr)
        return 0 if holds else 1

    return run_command("demo", work, options.output)


if __name__ == "__main__":
    sys.exit(main())
