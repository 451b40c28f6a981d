"""The demo's picture. Its three panels show, against time: ratios; R x t0 beside the measured connect time; requests
per server."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from topo.demo.phases import Phase, Sample
from topo.measure.counts import pool_r
from topo.plan.network import SERVER_NAMES

SYN_TIMEOUT_MS = 1000.0
"""t0: milliseconds until Linux first retransmits a SYN (TCP_TIMEOUT_INIT, include/net/tcp.h; RFC 6298)."""

COLOURS = ("#1b6ca8", "#3a9d5d", "#c8553d")


def interval_r(earlier: Sample, later: Sample) -> float | None:
    """Return R of all servers together between two samples; None if no server sent a SYN-ACK between them."""
    return pool_r(
        {name: later.observation.counts[name].since(earlier.observation.counts[name]) for name in SERVER_NAMES}
    )


def draw(phases: Sequence[Phase], loaded: str, files: Sequence[Path]) -> None:
    """Write the picture into each of `files`; the suffix selects the format."""
    figure, (top, middle, bottom) = plt.subplots(3, 1, figsize=(9, 9), sharex=True, layout="constrained")
    zero = phases[0].started
    for number, phase in enumerate(phases):
        first = number == 0
        _draw_ratios(top, phase, zero, loaded, labelled=first)
        _draw_times(middle, phase, zero, labelled=first)
        _draw_requests(bottom, phase, zero, loaded, labelled=first)
        for axes in (top, middle, bottom):
            axes.axvspan(phase.started - zero, phase.ended - zero, color="black", alpha=0.04, lw=0)
        top.text(
            (phase.started + phase.ended) / 2 - zero,
            1.02,
            {"equal": "equal split", "r": "R decides"}[phase.name],
            ha="center",
            va="bottom",
            transform=top.get_xaxis_transform(),
        )
    top.set_ylabel("ratio")
    top.set_ylim(0, None)
    middle.set_ylabel("ms")
    middle.set_yscale("symlog", linthresh=1)
    middle.set_ylim(0, None)
    bottom.set_ylabel("connections answered per s")
    bottom.set_xlabel("time (s)")
    for axes in (top, middle, bottom):
        axes.legend(loc="best", fontsize="small")
        axes.grid(alpha=0.3)
    for file in files:
        figure.savefig(file, dpi=120)
    plt.close(figure)


def _label(name: str, loaded: str, labelled: bool) -> str | None:
    return f"{name} (loaded)" if labelled and name == loaded else name if labelled else None


def _draw_ratios(axes: Any, phase: Phase, zero: float, loaded: str, *, labelled: bool) -> None:
    times = [sample.observation.time - zero for sample in phase.samples]
    for name, colour in zip(SERVER_NAMES, COLOURS, strict=True):
        ratios = [sample.observation.ratios[name] for sample in phase.samples]
        axes.step(times, ratios, where="post", color=colour, label=_label(name, loaded, labelled))


def _draw_times(axes: Any, phase: Phase, zero: float, *, labelled: bool) -> None:
    times: list[float] = []
    predicted: list[float] = []
    measured: list[float] = []
    for earlier, later in pairwise(phase.samples):
        r = interval_r(earlier, later)
        if r is None or not later.connect.seconds:
            continue
        times.append(later.observation.time - zero)
        predicted.append(r * SYN_TIMEOUT_MS)
        measured.append(later.connect.mean_ms())
    axes.plot(times, measured, color="#222222", label="mean connect time, measured" if labelled else None)
    axes.plot(times, predicted, color="#b06ab3", ls="--", label="R x t0, t0 = 1 s" if labelled else None)


def _draw_requests(axes: Any, phase: Phase, zero: float, loaded: str, *, labelled: bool) -> None:
    for name, colour in zip(SERVER_NAMES, COLOURS, strict=True):
        times: list[float] = []
        rates: list[float] = []
        for earlier, later in pairwise(phase.samples):
            counts = later.observation.counts[name].since(earlier.observation.counts[name])
            times.append(later.observation.time - zero)
            rates.append(counts.synack / (later.observation.time - earlier.observation.time))
        axes.plot(times, rates, color=colour, label=_label(name, loaded, labelled))
