"""The demo's result, computed by pure functions: content of `summary.json`, checks, and table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from topo.demo.phases import Phase
from topo.measure.counts import Counts, PacketCounts
from topo.measure.downloads import Download, spanning
from topo.measure.handshakes import ConnectTimes
from topo.plan.network import SERVER_NAMES
from topo.testbed.nodes import SWITCHES

IMPROVEMENT = 4.0
"""Least ratio of the mean connect time with the equal split to the mean connect time under R."""

EQUAL_MEAN_MS = 100.0
"""Least mean connect time with the equal split, in milliseconds; a smaller time leaves no room for improvement."""

AGREEMENT_SHARE = 0.05
AGREEMENT_MS = 5.0
"""Largest difference between the mean connect times of the capture and of httperf: the larger of a share of the mean
and a number of milliseconds."""


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements of the demo."""

    switch: str
    equal: Phase
    r: Phase
    kernel: ConnectTimes
    """Connect times of the same load behind kernel DNAT, without the switch."""
    loaded: str
    changes: Sequence[float]
    """Times of weight changes in the phase under R, in seconds on the clock of time.time()."""
    downloads: Sequence[Download]
    packets: PacketCounts
    drops: Mapping[str, int]
    """Packets that the switch dropped during calibration and phases, by reason."""

    def share_of(self, baseline: ConnectTimes) -> float:
        """Return the mean connect time under R divided by the mean of a baseline; NaN if no connection was answered."""
        return self.r.connect.mean_ms() / baseline.mean_ms()

    def broken(self) -> int:
        """Return the number of broken connections: long downloads with a fault, and resets that httperf received."""
        faulty = sum(bool(download.fault) for download in self.downloads)
        return faulty + self.equal.httperf.resets + self.r.httperf.resets


def server_counts(phase: Phase) -> dict[str, Counts]:
    """Return the number of each server's handshake segments in a phase."""
    return {name: phase.after.counts[name].since(phase.before.counts[name]) for name in SERVER_NAMES}


def _rounded(value: float | None, digits: int = 3) -> float | None:
    return None if value is None or math.isnan(value) else round(value, digits)


def _connect_ms(connect: ConnectTimes) -> dict[str, float | None]:
    return {
        "mean": _rounded(connect.mean_ms()),
        "median": _rounded(connect.median_ms()),
        "p99": _rounded(connect.percentile_ms(0.99)),
    }


def phase_summary(phase: Phase) -> dict[str, object]:
    """Return a phase's entry in summary.json."""
    connect = phase.connect
    return {
        "offered_per_s": _rounded(connect.begun / phase.load.seconds, 1),
        "connections": connect.begun,
        "failed": phase.httperf.connections - phase.httperf.replies,
        "connect_ms": _connect_ms(connect),
        "per_server": {
            name: {
                "syn": counts.syn,
                "synack": counts.synack,
                "synack_again": counts.synack_again,
                "completed": counts.completed,
                "r": _rounded(counts.r()),
            }
            for name, counts in server_counts(phase).items()
        },
    }


def agrees(phase: Phase, client_wait_ms: float = 0.0) -> bool:
    """Return whether the capture and httperf measured the same mean connect time within the tolerance. httperf's mean
    may be `client_wait_ms` higher, because some switches delay the client's packets."""
    mean = phase.connect.mean_ms()
    tolerance = max(AGREEMENT_MS, AGREEMENT_SHARE * mean)
    return -tolerance <= phase.httperf.connect_ms - mean <= tolerance + client_wait_ms


def checks(results: Results) -> dict[str, bool]:
    """Return each check of the demo and whether it holds."""
    equal, under_r = results.equal, results.r
    loaded, wait_ms = results.loaded, SWITCHES[results.switch].client_wait_ms
    return {
        "equal_split_above_100_ms": equal.connect.mean_ms() > EQUAL_MEAN_MS,
        "connect_time_at_most_a_quarter": under_r.connect.mean_ms() * IMPROVEMENT <= equal.connect.mean_ms(),
        "loaded_ratio_at_least_halved": under_r.at_end_of_load.ratios[loaded] * 2 <= under_r.before.ratios[loaded],
        "weights_changed": bool(results.changes),
        "downloads_span_every_change": all(spanning(results.downloads, moment) for moment in results.changes),
        "no_connection_broken": results.broken() == 0,
        "switch_lost_nothing": results.packets.conserved(),
        "capture_agrees_with_httperf": agrees(equal, wait_ms) and agrees(under_r, wait_ms),
    }


def summary(results: Results) -> dict[str, object]:
    """Return the content of summary.json."""
    return {
        "switch": results.switch,
        "phases": {"equal": phase_summary(results.equal), "r": phase_summary(results.r)},
        "kernel_dnat": {"connections": results.kernel.begun, "connect_ms": _connect_ms(results.kernel)},
        "mean_connect_time_by_r_as_part_of": {
            "equal_split": _rounded(results.share_of(results.equal.connect)),
            "kernel_dnat": _rounded(results.share_of(results.kernel)),
        },
        "ratios_final": {name: _rounded(results.r.at_end_of_load.ratios[name], 4) for name in SERVER_NAMES},
        "weight_changes": len(results.changes),
        "broken_connections": results.broken(),
        "drops": dict(results.drops),
        "checks": checks(results),
    }


def _row(cells: Sequence[str]) -> str:
    return "  ".join([cells[0].ljust(30), *(cell.rjust(12) for cell in cells[1:])])


def table(results: Results) -> str:
    """Return the table printed at the end."""
    phases = (results.equal, results.r)

    def both(label: str, value: object, other: object) -> str:
        return _row([label, str(value), str(other)])

    lines = [
        _row(["", "equal split", "R decides"]),
        both("connections offered", *(phase.connect.begun for phase in phases)),
        both("failed", *(phase.httperf.connections - phase.httperf.replies for phase in phases)),
        both("connect time, mean (ms)", *(f"{phase.connect.mean_ms():.1f}" for phase in phases)),
        both("  by httperf (ms)", *(f"{phase.httperf.connect_ms:.1f}" for phase in phases)),
        both("  median (ms)", *(f"{phase.connect.median_ms():.1f}" for phase in phases)),
        both("  99th percentile (ms)", *(f"{phase.connect.percentile_ms(0.99):.1f}" for phase in phases)),
    ]
    counts = [server_counts(phase) for phase in phases]
    for name in SERVER_NAMES:
        label = f"{name}{' (loaded)' if name == results.loaded else ''}"
        lines.append(both(f"{label}: SYN", *(count[name].syn for count in counts)))
        lines.append(both("  SYN-ACK, first", *(count[name].synack for count in counts)))
        lines.append(both("  SYN-ACK, again", *(count[name].synack_again for count in counts)))
        r = [count[name].r() for count in counts]
        lines.append(both("  R", *("-" if value is None else f"{value:.3f}" for value in r)))
        lines.append(both("  ratio at the end", *(f"{phase.at_end_of_load.ratios[name]:.3f}" for phase in phases)))
    ways = {"the equal split": results.equal.connect, "kernel DNAT's equal split": results.kernel}
    lines += [
        "",
        f"kernel DNAT's equal split: connect time {results.kernel.mean_ms():.1f} ms (mean)",
        "mean connect time by R: "
        + ", ".join(f"{results.share_of(baseline):.0%} of that by {name}" for name, baseline in ways.items()),
    ]
    whole = sum(not download.fault for download in results.downloads)
    lines += [
        "",
        f"weight changes: {len(results.changes)}; long downloads whole: {whole} of {len(results.downloads)}; "
        f"broken connections: {results.broken()}",
        f"packets at the switch: {results.packets.received} in, {results.packets.sent} out, "
        f"{results.packets.dropped} dropped with a reason, {results.packets.punted} to the controller, "
        f"{results.packets.lost_before()} lost before the pipeline, {results.packets.lost_after()} after it",
        f"drops by reason: {', '.join(f'{reason} {n}' for reason, n in results.drops.items()) or 'none'}",
    ]
    return "\n".join(lines)
