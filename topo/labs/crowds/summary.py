"""The results of `make news`, computed by pure functions: content of summary.json, checks against the goals, and
table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from topo.plan.crowd.measures import Figures
from topo.plan.crowd.scenarios import (
    HOT_SPOT,
    NETWORK,
    NEWS,
    NONE,
    PRODUCTION,
    SCENARIOS,
    STATIC,
    STATIC_SAME,
    VARIANTS,
    Scenario,
    Settings,
)

DETECTED_INTERVALS = 1.4
DETECTED_S = 5.0
LOSS_MAX, LOSS_WITHOUT_MIN = 0.03, 0.20
AR_OF_SAME, AR_OF_BEST = 0.95, 0.85
USED_MIN = 0.85
LATENCY_TIMES = 1.8
GOODPUT_KEPT = 0.9
USUAL_RAMP_S = Settings().ramp_s


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of a run, in the window after the alarm (`crowd`) and in the window before the onset (`quiet`)."""

    k: float
    period_s: float
    """The run's detection interval T in seconds, after compression."""
    crowd: Figures
    quiet: Figures
    ramp_s: float = USUAL_RAMP_S
    """Seconds of the crowd's ramp, before compression."""
    conditions: str = ""
    """Description of how the distances are made, of the hosts' TCP settings, and of the request log, if one was
    replayed."""


Results = Mapping[str, Mapping[str, Result]]
"""Results by scenario and variant."""


def entry(figures: Figures) -> dict[str, object]:
    """Return a run's entry in summary.json; null for figures that were not measured."""
    return {
        "detected_after_intervals": _known(figures.detected_after_intervals, 3),
        "false_alarms": figures.false_alarms,
        "rejected_share": _known(figures.rejected_share, 4),
        "response_loss": _known(figures.response_loss, 4),
        "ar_kbps": _known(figures.ar_kbps, 1),
        "admitted_per_s": _known(figures.admitted_per_s, 1),
        "offered_per_s": _known(figures.offered_per_s, 1),
        "bystander_latency_ms": {
            "mean": _known(figures.bystander_latency_mean_ms, 2),
            "median": _known(figures.bystander_latency_median_ms, 2),
        },
        "bystander_refused": None if math.isnan(figures.bystander_refused) else int(figures.bystander_refused),
        "bystander_goodput_kbps": _known(figures.bystander_goodput_kbps, 1),
    }


def summary(results: Results) -> dict[str, object]:
    """Return the content of summary.json: scenario -> variant -> figures, as measured (rates are k times those of Chen
    & Heidemann's experiments)."""
    return {
        scenario: {name: entry(result.crowd) for name, result in by_variant.items()}
        for scenario, by_variant in results.items()
    }


def checks(results: Results, planned: Iterable[str] = ()) -> dict[str, bool]:
    """Return each goal and whether it is reached. A `planned` run (SCENARIO/VARIANT) without a result counts as a goal
    that is not reached."""
    missing = [name for name in planned if name not in {f"{key}/{name}" for key in results for name in results[key]}]
    reached = {f"{name}: has been run": False for name in missing}
    for scenario, by_variant in results.items():
        if SCENARIOS[scenario].false_alarm:
            for name, result in by_variant.items():
                reached[f"{scenario}: no alarm ({name})"] = result.crowd.false_alarms == 0
            continue
        for name in (NEWS.name, HOT_SPOT.name, PRODUCTION.name):
            if name in by_variant:
                reached |= _detection(scenario, name, by_variant[name])
        reached |= _speed(scenario, by_variant) | _bystanders(SCENARIOS[scenario], by_variant)
    network = results.get(NETWORK.name, {})
    if NONE.name in network:
        loss = network[NONE.name].crowd.response_loss
        reached[f"{NETWORK.name}: response loss without control at least 20 % ({loss:.1%})"] = loss >= LOSS_WITHOUT_MIN
    for name in (NEWS.name, HOT_SPOT.name, PRODUCTION.name):
        if name in network:
            loss = network[name].crowd.response_loss
            reached[f"{NETWORK.name}: response loss at most 3 % ({name}: {loss:.1%})"] = loss <= LOSS_MAX
    if PRODUCTION.name in network:
        used = network[PRODUCTION.name].crowd.bottleneck_used
        reached[f"{NETWORK.name}: bottleneck at least 85 % used (production: {used:.0%})"] = used >= USED_MIN
    return reached


def _detection(scenario: str, name: str, result: Result) -> dict[str, bool]:
    intervals = result.crowd.detected_after_intervals
    reached = {
        f"{scenario}: alarm within 1.4 intervals ({name}: {intervals:.2f})": intervals <= DETECTED_INTERVALS,
        f"{scenario}: no alarm before the onset ({name})": result.crowd.false_alarms == 0,
    }
    if name == PRODUCTION.name:
        seconds = intervals * result.period_s
        reached[f"{scenario}: alarm within 5 s of the clock ({name}: {seconds:.1f} s)"] = seconds <= DETECTED_S
    return reached


def _speed(scenario: str, by_variant: Mapping[str, Result]) -> dict[str, bool]:
    reached: dict[str, bool] = {}
    if HOT_SPOT.name not in by_variant:
        return reached
    ar = by_variant[HOT_SPOT.name].crowd.ar_kbps
    if STATIC_SAME.name in by_variant:
        share = ar / by_variant[STATIC_SAME.name].crowd.ar_kbps
        reached[f"{scenario}: AR at least 95 % of a static limiter's at NEWS's own mean ({share:.0%})"] = (
            share >= AR_OF_SAME
        )
    static = [by_variant[way.name].crowd.ar_kbps for way in (*STATIC, STATIC_SAME) if way.name in by_variant]
    if static:
        share = ar / max(static)
        reached[f"{scenario}: AR at least 85 % of the best static limiter's ({share:.0%})"] = share >= AR_OF_BEST
    return reached


def _bystanders(scenario: Scenario, by_variant: Mapping[str, Result]) -> dict[str, bool]:
    """Return the checks of the traffic that shares the link or the switch with the scenario's crowd (bystanders)."""
    reached: dict[str, bool] = {}
    for name in (HOT_SPOT.name, PRODUCTION.name):
        if name not in by_variant:
            continue
        crowd, quiet = by_variant[name].crowd, by_variant[name].quiet
        if scenario.web:
            times = crowd.bystander_latency_median_ms / quiet.bystander_latency_median_ms
            refused = crowd.bystander_refused
            if name == HOT_SPOT.name:
                what = f"bystander's median latency at most 1.8 times the quiet one ({name}: {times:.2f})"
                reached[f"{scenario.name}: {what}"] = times <= LATENCY_TIMES
            reached[f"{scenario.name}: no bystander refused ({name}: {refused})"] = refused == 0
        if scenario.bulk:
            goodput_share = crowd.bystander_goodput_kbps / max(1e-9, quiet.bystander_goodput_kbps)
            what = f"bulk keeps at least 90 % of its goodput ({name}: {goodput_share:.0%})"
            reached[f"{scenario.name}: {what}"] = goodput_share >= GOODPUT_KEPT
    return reached


HEADINGS = ("", "detected", "false", "offered", "admitted", "rejected", "loss", "AR", "link", "web median", "bulk")
UNITS = ("", "intervals", "alarms", "/s", "/s", "", "", "kbit/s", "used", "ms", "kbit/s")


def table(results: Results) -> str:
    """Return the figures as text, converted to the scale of Chen & Heidemann's experiments: rates are divided by k,
    times are multiplied by k."""
    lines: list[str] = []
    for scenario, by_variant in results.items():
        usual = Counter(entry.k for entry in by_variant.values()).most_common(1)[0][0]
        rows = [_row(_title(name, result, usual), result.crowd, result.k) for name, result in by_variant.items()]
        if NONE.name in by_variant:
            rows.insert(0, _row("before the crowd", by_variant[NONE.name].quiet, by_variant[NONE.name].k))
        cells = [HEADINGS, UNITS, *rows]
        widths = [max(len(row[column]) for row in cells) for column in range(len(HEADINGS))]
        lines.append(SCENARIOS[scenario].title)
        for row in cells:
            name, *values = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  " + "  ".join((row[0].ljust(len(name)), *values)))
        lines += [
            "  " + condition
            for condition in dict.fromkeys(result.conditions for result in by_variant.values())
            if condition
        ]
        lines.append("")
    return "\n".join(lines)


def _title(name: str, result: Result, usual_k: float) -> str:
    own = [f"k = {result.k:g}"] if result.k != usual_k else []
    own += [f"ramp of {result.ramp_s:g} s"] if result.ramp_s != USUAL_RAMP_S else []
    return VARIANTS[name].title + (f" ({', '.join(own)})" if own else "")


def _row(title: str, figures: Figures, k: float) -> tuple[str, ...]:
    return (
        title,
        _text(figures.detected_after_intervals, "{:.2f}"),
        str(figures.false_alarms),
        _text(figures.offered_per_s / k, "{:.0f}"),
        _text(figures.admitted_per_s / k, "{:.0f}"),
        _text(figures.rejected_share, "{:.0%}"),
        _text(figures.response_loss, "{:.1%}"),
        _text(figures.ar_kbps / k, "{:.0f}"),
        _text(figures.bottleneck_used, "{:.0%}"),
        _text(figures.bystander_latency_median_ms * k, "{:.0f}"),
        _text(figures.bystander_goodput_kbps / k, "{:.0f}"),
    )


def _text(value: float, form: str) -> str:
    return "-" if math.isnan(value) else form.format(value)


def _known(value: float, digits: int) -> float | None:
    return None if math.isnan(value) else round(value, digits)
