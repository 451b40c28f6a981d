"""Measures how far the switch's response rates are from Clark and Fang's time sliding window: a table and a plot.

`python -m tools.tsw_error [--out FOLDER]` runs trains of packets through a model of the switch's estimator and through
the exact estimator, and writes tsw_error.txt and tsw_error.svg. The packet tests compare this model with the switch bit
by bit. No switch is needed. docs/reference/algorithms.md states the results.
"""

import argparse
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sluice.dataplane.rates import window
from sluice.dataplane.units import STEPS
from sluice.names import RATE_TICK_US, TICK_BASE
from sluice.switch.rates import decode

ROOT = Path(__file__).resolve().parent.parent

Packets = list[tuple[float, int]]
"""Packets as pairs of time in seconds and length in bytes."""

STEP = 128
"""The estimator's step in units of RATE_TICK_US: the default step, 131 ms."""
WINDOW_S = STEPS * STEP * RATE_TICK_US / 1e6
FLOWS = 40
"""The number of packet trains of each case, except cases of fast steady traffic."""
SEED = 1


def errors(packets: Packets, settled_s: float) -> list[float]:
    """Return the relative errors of the switch's estimate against the exact estimate.

    There is an error for each packet at least ``settled_s`` seconds after the first packet, and always for the last.
    """
    cell = last = 0
    content, front = 0.0, packets[0][0]
    relative_errors: list[float] = []
    for number, (time, size) in enumerate(packets, start=1):
        content = (content + size) * WINDOW_S / (time - front + WINDOW_S)
        front = time
        now = TICK_BASE + int(time * 1e6) // RATE_TICK_US
        cell, last = window(cell, last, now, size, STEP), now
        if time - packets[0][0] >= settled_s or number == len(packets):
            (rate,) = decode(np.array([last], np.uint64), np.array([cell], np.uint64), STEP)
            relative_errors.append(rate / (8 * content / WINDOW_S) - 1)
    return relative_errors


# -- traffic: each train of packets begins at a random time of the switch's clock


def steady(source: random.Random, rate: float, size: int) -> Packets:
    """Return packets of ``size`` bytes at a mean rate in bit/s, for at least eight windows. The intervals between
    packets are 0.5 to 1.5 times the mean interval."""
    interval = 8 * size / rate
    time = source.random()
    packets: Packets = []
    end = time + max(8 * WINDOW_S, 30 * interval)
    while time < end:
        packets.append((time, size))
        time += interval * (0.5 + source.random())
    return packets


def on_off(source: random.Random, on_s: float, off_s: float) -> Packets:
    """Return the packets of bursts at 1 Mbit/s with pauses between them, as on a persistent connection. The durations
    of bursts and pauses are exponentially distributed, with means of `on_s` and `off_s` seconds."""
    time = source.random()
    packets: Packets = []
    while len(packets) < 400:
        end = time + source.expovariate(1 / on_s)
        while time < end:
            packets.append((time, 1500))
            time += 0.012
        time += source.expovariate(1 / off_s)
    return packets


def response(source: random.Random, size: int, rtt_s: float) -> Packets:
    """Return the packets of a response in slow start (initial window 2, segments of 1,460 bytes) over a 2 Mbit/s
    link."""
    time = source.random()
    packets: Packets = []
    window, left = 2, size
    while left > 0:
        sent = time
        for _ in range(window):
            if left > 0:
                packets.append((sent, min(left, 1460) + 40))
                sent += 0.006
                left -= 1460
        time = max(sent, time + rtt_s * (0.8 + 0.4 * source.random()))
        window *= 2
    return packets


@dataclass(frozen=True)
class Case:
    """A kind of traffic, with the estimator's errors in percent.

    `x` is the quantity on the horizontal axis: rate (steady), mean pause (on/off) or size (response).
    """

    family: str
    label: str
    x: float
    percent: np.ndarray[tuple[int], np.dtype[np.float64]]

    @property
    def row(self) -> str:
        """The case as a line of the table."""
        low, high = np.percentile(self.percent, [5, 95])
        return (
            f"{self.family:<10} {self.label:<22} {self.x:>10g} {np.mean(self.percent):>+8.1f} "
            f"{np.std(self.percent):>8.1f} {low:>+8.1f} {high:>+8.1f}"
        )


RATES = (3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7)
SIZES = (64, 576, 1500)
ONS = (0.05, 0.2, 1.0)
OFFS = (0.1, 0.3, 1.0, 3.0)
RESPONSES = (500, 2_000, 10_000, 50_000, 200_000)
RTTS = (0.01, 0.1, 0.4)


def case(family: str, label: str, x: float, train: Callable[[random.Random], Packets], settled_s: float) -> Case:
    """Run FLOWS packet trains (2 trains for steady traffic from 3 Mbit/s on) through both estimators. Return the case
    with the errors of the estimated rates, in percent, from `settled_s` seconds after a train's first packet on."""
    source = random.Random(f"{SEED} {family} {label} {x}")
    flows = 2 if family == "steady" and x >= 3e6 else FLOWS
    percent = [100 * error for _ in range(flows) for error in errors(train(source), settled_s)]
    return Case(family, label, x, np.array(percent))


def cases() -> Iterator[Case]:
    """Yield the cases of all kinds of traffic."""
    for size in SIZES:
        for rate in RATES:
            yield case("steady", f"{size} bytes", rate, lambda s, r=rate, n=size: steady(s, r, n), 3 * WINDOW_S)
    for on in ONS:
        for off in OFFS:
            yield case("on/off", f"on {on:g} s", off, lambda s, a=on, b=off: on_off(s, a, b), 3 * WINDOW_S)
    for rtt in RTTS:
        for size in RESPONSES:
            label = f"round trip {1000 * rtt:g} ms"
            yield case("response", label, size, lambda s, n=size, t=rtt: response(s, n, t), float("inf"))


def plot(all_cases: list[Case], path: Path) -> None:
    """Plot a panel for each family of traffic, with the mean error and a band from the 5th to the 95th percentile."""
    import matplotlib as mpl  # noqa: PLC0415 (heavy)

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    mpl.rcParams |= {"svg.hashsalt": "tsw", "svg.fonttype": "none"}  # a reproducible and small SVG file
    names = {"steady": "rate, bit/s", "on/off": "mean pause, s", "response": "size, bytes"}
    figure, axes = plt.subplots(1, len(names), figsize=(11, 3.4), sharey=True, constrained_layout=True)
    for axis, (family, label) in zip(axes, names.items(), strict=True):
        for line in dict.fromkeys(item.label for item in all_cases if item.family == family):
            items = [item for item in all_cases if (item.family, item.label) == (family, line)]
            x = [item.x for item in items]
            low, high = np.array([np.percentile(item.percent, [5, 95]) for item in items]).T
            axis.plot(x, [np.mean(item.percent) for item in items], marker=".", label=line)
            axis.fill_between(x, low, high, alpha=0.15)
        axis.set(xscale="log", xlabel=label, title=family, ylim=(-60, 60))
        axis.axhline(0, color="black", linewidth=0.5)
        axis.legend(fontsize="small")
    axes[0].set_ylabel("error against exact TSW, %")
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Write table and plot; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.tsw_error", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "tsw", help="folder to write to")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    all_cases = list(cases())
    header = f"{'traffic':<10} {'':<22} {'x':>10} {'mean %':>8} {'sd %':>8} {'5th':>8} {'95th':>8}"
    table = "\n".join(
        [f"window {WINDOW_S:.4f} s in {STEPS} steps, seed {SEED}", header, *(item.row for item in all_cases)]
    )
    (out / "tsw_error.txt").write_text(table + "\n")
    plot(all_cases, out / "tsw_error.svg")
    print(table)
    print(f"\nwrote {out / 'tsw_error.txt'} and tsw_error.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
