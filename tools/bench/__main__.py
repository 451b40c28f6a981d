"""Measures, prints a table with ratios and verdicts, and writes results/bench/ once everything is measured."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from sluice import names

from tools.bench import engine
from tools.bench.cases import WHO, SetUp, set_ups
from tools.bench.conntrack import roomy_conntrack
from tools.bench.measure import Times, measure
from tools.bench.network import LARGE_BUILD
from tools.bench.report import Measurements, table, verdicts, write
from topo.testbed.errors import SetupError
from topo.testbed.interrupts import Interrupted, interruptible
from topo.testbed.mininet import setLogLevel
from topo.testbed.prerequisites import require_prerequisites

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
NEEDS = {"bmv2": "simple_switch_grpc", "kernel-dnat": "iptables-restore"}
LIMIT_S = 22 * 60.0
"""Time limit of the run in seconds. A round that would probably end later is not begun."""
FULL = Times(trial=1.0, latency=1.5, handshakes=1.5, idle=3.0)
BRIEF = Times(trial=0.6, latency=0.8, handshakes=0.8, idle=2.0)


def forwarders(names: list[str]) -> list[str]:
    """Return the named forwarders that this machine can run; print a line for each forwarder that is left out."""
    chosen: list[str] = []
    for who in names:
        if who in NEEDS and shutil.which(NEEDS[who]) is None:
            print(f"{NEEDS[who]} is not on PATH: {who} is left out")
        else:
            chosen.append(who)
    return chosen


def run(names: list[str], rounds: int, *, quick: bool) -> Measurements:
    """Measure the named forwarders in rounds; return all measurements.

    If a set-up fails, the failure is reported, and the other set-ups are still measured.
    """
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"[{time.monotonic() - started:5.0f} s] {line}", flush=True)

    measurements, times = Measurements(), BRIEF if quick else FULL
    if "embedded" in names:
        measurements.engine_pps = engine.packets_per_second(times.trial)
        measurements.engine_instructions = engine.instructions_per_packet()
        say(f"engine alone: {measurements.engine_pps:,.0f} packets/s")
    with roomy_conntrack():
        for turn in range(rounds):
            began = time.monotonic()
            say(f"round {turn + 1} of {rounds}")
            for who in names:
                for set_up in set_ups(who, quick=quick):
                    if set_up.large and who == "embedded" and not LARGE_BUILD.exists():
                        say(f"{LARGE_BUILD.relative_to(ROOT)} is not there: its cases are left out")
                        continue
                    _measure(who, set_up, times, measurements, say)
            now = time.monotonic()
            if turn + 1 < rounds and now - started + (now - began) > LIMIT_S:
                say(f"no time for another round: these are the figures of {turn + 1}")
                break
    return measurements


def _measure(who: str, set_up: SetUp, times: Times, measurements: Measurements, say: Callable[[str], None]) -> None:
    try:
        measure(who, set_up, times, measurements, say)
    except (SetupError, subprocess.TimeoutExpired) as error:
        failure = f"{who}, {set_up.servers:,} servers: {error}"
        measurements.failures.append(failure)
        say(f"FAILED {failure}")


def machine() -> dict[str, object]:
    """Return a description of the machine and the software versions, for the results."""
    return {
        "program": f"{names.PROGRAM} {names.VERSION}",
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "measured": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def main() -> int:
    """Measure, print and write the results; return the exit status, 1 when a set-up failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer cases, one short round: about two minutes")
    parser.add_argument("--rounds", type=int, help="how often the forwarders take their turn, at most [3; quick: 1]")
    parser.add_argument("--who", nargs="+", choices=WHO, default=list(WHO), help="only these")
    parser.add_argument("--output", type=Path, help="directory of the results [results/bench; quick: bench-quick]")
    options = parser.parse_args()
    output = options.output or RESULTS / ("bench-quick" if options.quick else "bench")
    with ExitStack() as stack:
        stack.enter_context(interruptible())
        try:
            require_prerequisites()
            setLogLevel("error")
            measurements = run(
                forwarders(options.who), options.rounds or (1 if options.quick else 3), quick=options.quick
            )
        except SetupError as error:
            print(f"sluice bench: {error}", file=sys.stderr)
            return 1
        except Interrupted as interrupted:
            print(
                f"sluice bench: ended by {interrupted}; everything it started is gone, earlier results stay",
                file=sys.stderr,
            )
            return 128 + interrupted.number
    print(f"\n{table(measurements)}\n")
    print("\n".join(verdicts(measurements)))
    write(output, measurements, machine())
    print(f"\nwritten to {output}/: switch.json, details.json")
    return 1 if measurements.failures else 0


if __name__ == "__main__":
    sys.exit(main())
