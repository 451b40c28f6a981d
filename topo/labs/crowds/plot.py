"""Plots of rates, AR (the response rate of the fastest flows), limit, alarm and loss against time for a scenario's
variants. Rates and times are converted to the scale of Chen & Heidemann's experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from topo.plan.crowd.measures import Records, syn_times
from topo.plan.crowd.network import TARGET
from topo.plan.crowd.readings import at
from topo.plan.crowd.scenarios import VARIANTS
from topo.plan.outcomes import Outcome

COLOURS = ("#c8553d", "#b06ab3", "#1b6ca8", "#3a9d5d")
BINS_PER_INTERVAL = 4


def draw(title: str, runs: Mapping[str, Records], k: float, files: Sequence[Path]) -> None:
    """Draw one scenario's runs, given by variant, into each of `files`."""
    figure, axes = plt.subplots(5, 1, figsize=(9, 13), sharex=True, layout="constrained")
    for (name, records), colour in zip(runs.items(), COLOURS, strict=False):
        _draw_run(axes, records, k, VARIANTS[name].title, colour)
    first = next(iter(runs.values()))
    for ax, label in zip(
        axes, ("offered SYNs/s", "connections/s", "AR (kbit/s)", "limit (/s), alarm", "bottleneck's loss"), strict=True
    ):
        ax.set_ylabel(label)
        ax.set_ylim(0, None)
        ax.axvline(first.onset_s * k, color="black", lw=0.8, ls=":")
        ax.grid(alpha=0.3)
    axes[0].set_yscale("symlog", linthresh=100)
    axes[0].legend(loc="upper left", fontsize="small")
    axes[-1].set_xlabel(f"time (s) before compression by {k:g}")
    axes[0].set_title(title)
    for file in files:
        figure.savefig(file, dpi=110)
    plt.close(figure)


def _draw_run(axes: Any, records: Records, k: float, label: str, colour: str) -> None:
    width = records.period_s / BINS_PER_INTERVAL
    edges = [number * width for number in range(int(records.end_s / width) + 1)]
    middle = [(edge + width / 2) * k for edge in edges[:-1]]
    target = [outcome for outcome in records.outcomes if outcome.server == TARGET]
    axes[0].plot(
        middle,
        _rates([moment for outcome in target for moment in syn_times(outcome)], width, len(middle), k),
        color=colour,
        label=label,
    )
    axes[1].plot(middle, _rates(_connected(target), width, len(middle), k), color=colour)
    rows = [row for row in records.rows if row.time_s >= 0]
    times = [row.time_s * k for row in rows]
    axes[2].plot(times, [row.ar_bps / 1000 / k for row in rows], color=colour)
    axes[3].step(times, [row.limit_per_s / k for row in rows], where="post", color=colour)
    alarmed = [row.time_s * k for row in rows if row.alarm]
    axes[3].plot(alarmed, [0] * len(alarmed), "|", color=colour, ms=14)
    losses = [
        at(records.samples, late).link.since(at(records.samples, early).link).loss() for early, late in pairwise(edges)
    ]
    axes[4].plot(middle, losses, color=colour)


def _connected(outcomes: Sequence[Outcome]) -> list[float]:
    return [outcome.due_s + outcome.connect_s for outcome in outcomes if outcome.connect_s is not None]


def _rates(moments: Sequence[float], width: float, bins: int, k: float) -> list[float]:
    counts = [0] * bins
    for moment in moments:
        if 0 <= moment < bins * width:
            counts[int(moment / width)] += 1
    return [count / width / k for count in counts]
