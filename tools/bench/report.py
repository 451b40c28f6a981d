"""Converts measurements to rows, a table with ratios, verdicts on the goals, and result files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tools.bench.cases import SMALL, Case
from tools.bench.search import spread

HEAD = (
    *("forwarder", "frame", "servers", "connections", "entries", "packets/s"),
    *("of copy", "x bmv2", "p50 us", "p99 us"),
)
GOAL_BMV2, GOAL_CEILING, GOAL_ENGINE, GOAL_FLAT = 10.0, 0.8, 2e6, 0.15


@dataclass(slots=True)
class Measurements:
    """All measurements by forwarder and case, with one value per round."""

    pps: dict[tuple[str, Case], list[float]] = field(default_factory=lambda: {})
    p50: dict[tuple[str, Case], list[float]] = field(default_factory=lambda: {})
    p99: dict[tuple[str, Case], list[float]] = field(default_factory=lambda: {})
    connections: dict[str, list[float]] = field(default_factory=lambda: {})
    syns: dict[str, list[float]] = field(default_factory=lambda: {})
    engine_pps: float | None = None
    engine_instructions: float | None = None
    idle_cpu_percent: float | None = None
    rss_mb: float | None = None
    rss_large_mb: float | None = None
    failures: list[str] = field(default_factory=lambda: [])
    """Messages about set-ups that could not be measured, each with the reason."""

    def rate(self, who: str, case: Case) -> float | None:
        """Return the median packets per second over the rounds; None when the case was not measured."""
        rates = self.pps.get((who, case))
        return median(rates) if rates else None


def rows(measurements: Measurements) -> list[dict[str, Any]]:
    """Return a row for each forwarder and case, in order of measurement."""

    def row(who: str, case: Case, rates: list[float]) -> dict[str, Any]:
        p50, p99 = measurements.p50.get((who, case)), measurements.p99.get((who, case))
        latency = {"p50": round(median(p50), 1), "p99": round(median(p99), 1)} if p50 and p99 else None
        return {"who": who, **asdict(case), "pps": round(median(rates)), "latency_us": latency}

    return [row(who, case, rates) for (who, case), rates in measurements.pps.items()]


def result(measurements: Measurements) -> dict[str, Any]:
    """Return the content of the result file results/bench/switch.json."""
    return {
        "rows": rows(measurements),
        "connections_per_s": {who: round(median(rates)) for who, rates in measurements.connections.items()},
        "engine_pps": _rounded(measurements.engine_pps),
        "idle_cpu_percent": measurements.idle_cpu_percent,
        "rss_mb": measurements.rss_mb,
    }


def details(measurements: Measurements, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of results/bench/details.json: figures that switch.json lacks, such as those of each round."""
    return {
        "machine": dict(machine),
        "pps_rounds": [
            {"who": who, **asdict(case), "pps": [round(rate) for rate in rates]}
            for (who, case), rates in measurements.pps.items()
        ],
        "syns_per_s": {who: round(median(rates)) for who, rates in measurements.syns.items()},
        "connections_per_s_rounds": {
            who: [round(rate) for rate in rates] for who, rates in measurements.connections.items()
        },
        "engine_instructions_per_packet": _rounded(measurements.engine_instructions),
        "rss_large_mb": measurements.rss_large_mb,
        "verdicts": verdicts(measurements),
        "failures": measurements.failures,
    }


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def ratio(measurements: Measurements, who: str, reference: str, case: Case) -> float | None:
    """Return a forwarder's rate divided by the reference's rate in this case or, if that was not measured, by the
    reference's rate at this frame length."""
    mine = measurements.rate(who, case)
    theirs = measurements.rate(reference, case) or measurements.rate(reference, Case(frame=case.frame))
    return mine / theirs if mine is not None and theirs else None


def table(measurements: Measurements) -> str:
    """Return the rows as a text table."""
    lines = [HEAD]
    for row, (who, case) in zip(rows(measurements), measurements.pps, strict=True):
        latency = row["latency_us"] or {"p50": None, "p99": None}
        lines.append(
            (
                who,
                str(case.frame),
                f"{case.servers:,}",
                f"{case.connections:,}",
                f"{case.entries:,}",
                f"{row['pps']:,}",
                _text(ratio(measurements, who, "copy-forward", case), ".2f"),
                _text(ratio(measurements, who, "bmv2", case), ".1f"),
                _text(latency["p50"], ",.0f"),
                _text(latency["p99"], ",.0f"),
            )
        )
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEAD))]
    laid_out = [
        "  ".join([line[0].ljust(widths[0]), *(line[n].rjust(widths[n]) for n in range(1, len(HEAD)))])
        for line in lines
    ]
    for title, values in (("connections/s", measurements.connections), ("SYNs/s", measurements.syns)):
        if values:
            laid_out.append(f"{title}: " + ", ".join(f"{who} {median(rates):,.0f}" for who, rates in values.items()))
    return "\n".join(laid_out)


def _text(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def verdicts(measurements: Measurements) -> list[str]:
    """Return a line for each goal, which compares the goal with the measured value."""
    base = Case(SMALL)
    lines: list[str] = []

    def compare(what: str, value: float | None, goal: float, form: str, *, least: bool = True) -> None:
        if value is None:
            return
        reached = value >= goal if least else value <= goal
        lines.append(
            f"{'reached' if reached else 'MISSED '}  {what}: {format(value, form)}"
            f" ({'at least' if least else 'at most'} {format(goal, form)})"
        )

    compare("embedded, times bmv2", ratio(measurements, "embedded", "bmv2", base), GOAL_BMV2, ".1f")
    compare("embedded, of copy-forward", ratio(measurements, "embedded", "copy-forward", base), GOAL_CEILING, ".2f")
    compare("engine alone, packets/s", measurements.engine_pps, GOAL_ENGINE, ",.0f")
    for what, cases in (
        ("1 to 1,000 servers", [Case(servers=1), base, Case(servers=1_000)]),
        ("1k to 100k connections", [base, Case(connections=100_000)]),
    ):
        rates = [measurements.rate("embedded", case) for case in cases]
        known = [rate for rate in rates if rate is not None]
        if len(known) == len(cases):
            compare(f"embedded, difference from {what}", spread(known), GOAL_FLAT, ".0%", least=False)
    for what, case in (
        ("1M connections", Case(connections=1_000_000)),
        ("100k more routes", Case(entries=100_000)),
    ):
        rate, usual = measurements.rate("embedded", case), measurements.rate("embedded", base)
        if rate and usual:
            lines.append(f"         embedded with {what}: {rate / usual:.2f} of its rate without")
    if measurements.idle_cpu_percent is not None:
        usage = f"{measurements.idle_cpu_percent:.1f} % of a core when idle, {measurements.rss_mb:.0f} MB resident"
        lines.append(f"         embedded: {usage}")
    if measurements.engine_instructions is not None:
        lines.append(f"         engine alone: {measurements.engine_instructions:,.0f} instructions a packet")
    lines += [f"FAILED   {failure}" for failure in measurements.failures]
    return lines


def write(folder: Path, measurements: Measurements, machine: Mapping[str, Any]) -> None:
    """Write the two result files, each atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("switch.json", result(measurements)), ("details.json", details(measurements, machine))):
        beside = folder / f".{name}.new"
        beside.write_text(json.dumps(content, indent=1) + "\n")
        beside.rename(folder / name)
