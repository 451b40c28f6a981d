"""What is said of the flash crowds of the lab, beside the numbers of paper 003: Figs. 19 to 23, Tables II and III."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from experiments import simulated
from experiments.experiment import Goal, Record, Report, Table
from topo.news.scenarios import HOT_SPOT, NETWORK, NEWS, NONE, SCENARIOS, SERVER, VARIANTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEFORE = "before the crowd"
PAPER = {
    (NETWORK.name, BEFORE): "bulk 327",
    (NETWORK.name, NONE.name): "318 / 80 answered / 22 % failed / 60 % / 133; link 100 %; bulk 80",
    (NETWORK.name, NEWS.name): "459 / 56 / 49 % / under 3 % / 261; alarm 88 s; bulk 318",
    (SERVER.name, NONE.name): "20 % failed / no loss / 158; link 60 %",
    (SERVER.name, NEWS.name): "54 admitted / 260; alarm about 80 s",
}
PAPER_SWEEP = {
    16.0: "2-3.5 % -> 5-6 %, 530; a false alarm, 65 % discarded",
    32.0: "1.5-2 % -> 3.5-5 %, 511",
    64.0: "1-2 % -> 2-4 %, 459; best AR, as at 128 s",
    128.0: "about 1 % -> 2 %, under 400; best AR",
    256.0: "about 1 % -> 2 %, under 400; too slow",
}
PAPER_LATENCY_S = {
    BEFORE: (0.22, 0.18),
    NONE.name: (24.44, 9.53),
    NEWS.name: (7.03, 3.15),
    HOT_SPOT.name: (0.42, 0.32),
}
"""Table III: mean and median."""
PAPER_AR_GAIN = 261 / 133
LOSS_WITHOUT, LOSS_WITH = 0.20, 0.03
DETECTED_INTERVALS = 88 / 64
LATENCY_TIMES = 0.32 / 0.18
GOODPUT_KEPT = 0.9
BEST_PERIODS_S = (64.0, 128.0)


def _figure(record: Record, name: str, window: str = "crowd") -> float:
    return simulated.number(record.result[window][name])


def _rate(record: Record, name: str, window: str = "crowd") -> float:
    """A rate before compression."""
    return _figure(record, name, window) / record.parameters["k"]


def _latency_s(record: Record, name: str, window: str = "crowd") -> float:
    """A time before compression, in seconds."""
    return _figure(record, name, window) * record.parameters["k"] / 1000


def _text(value: float, form: str) -> str:
    return "-" if math.isnan(value) else form.format(value)


def _alarm_s(record: Record) -> float:
    return _figure(record, "detected_after_intervals") * record.parameters["period_s"]


def _crowd_row(title: str, record: Record, paper: str, window: str = "crowd") -> list[str]:
    return [
        title,
        _text(_rate(record, "offered_per_s", window), "{:.0f}"),
        _text(_rate(record, "admitted_per_s", window), "{:.0f}"),
        _text(_rate(record, "finished_per_s", window), "{:.0f}"),
        _text(_figure(record, "rejected_share", window), "{:.0%}"),
        _text(_figure(record, "response_loss", window), "{:.1%}"),
        _text(_rate(record, "ar_kbps", window), "{:.0f}"),
        _text(_figure(record, "bottleneck_used", window), "{:.0%}"),
        "-" if window == "quiet" else _text(_alarm_s(record), "{:.0f}"),
        _text(_rate(record, "bystander_goodput_kbps", window), "{:.0f}"),
        paper,
    ]


def _crowd_table(scenario: str, runs: Mapping[str, Record]) -> Table:
    heading = [
        SCENARIOS[scenario].title.partition(":")[0],
        "offered/s",
        "connected/s",
        "answered/s",
        "rejected",
        "loss",
        "AR (kbit/s)",
        "link used",
        "alarm after (s)",
        "bulk (kbit/s)",
        "paper: offered / admitted / rejected / loss / AR",
    ]
    rows = [_crowd_row(VARIANTS[name].title, one, PAPER.get((scenario, name), "-")) for name, one in runs.items()]
    first = next(iter(runs.values()))
    return Table(heading, [_crowd_row(BEFORE, first, PAPER.get((scenario, BEFORE), "-"), "quiet"), *rows])


def _sweep_table(runs: Sequence[Record]) -> Table:
    heading = [
        "T (s)",
        "alarm after (s)",
        "false alarms",
        "connected/s",
        "AR (kbit/s)",
        "rejected",
        "offered/s",
        "controller's CPU",
        "switch's CPU",
        "paper: CPU, offered",
    ]
    return Table(
        heading,
        [
            [
                f"{one.parameters['period_s']:g}",
                _text(_alarm_s(one), "{:.0f}"),
                str(one.result["crowd"]["false_alarms"]),
                _text(_rate(one, "admitted_per_s"), "{:.0f}"),
                _text(_rate(one, "ar_kbps"), "{:.0f}"),
                _text(_figure(one, "rejected_share"), "{:.0%}"),
                _text(_rate(one, "offered_per_s"), "{:.0f}"),
                f"{_figure(one, 'controller_cpu', 'quiet'):.1%} -> {_figure(one, 'controller_cpu'):.1%}",
                f"{_figure(one, 'switch_cpu', 'quiet'):.1%} -> {_figure(one, 'switch_cpu'):.1%}",
                PAPER_SWEEP.get(one.parameters["period_s"], "-"),
            ]
            for one in runs
        ],
    )


def _latency_table(runs: Mapping[str, Record]) -> Table:
    first = next(iter(runs.values()))
    known = [(BEFORE, first, "quiet"), *((name, one, "crowd") for name, one in runs.items() if name in PAPER_LATENCY_S)]
    median = _latency_s(first, "bystander_latency_median_ms", "quiet")
    rows: list[list[str]] = []
    for name, one, window in known:
        mean_s, median_s = (_latency_s(one, f"bystander_latency_{which}_ms", window) for which in ("mean", "median"))
        paper_mean, paper_median = PAPER_LATENCY_S[name]
        title = name if name == BEFORE else VARIANTS[name].title
        rows.append(
            [
                title,
                _text(mean_s, "{:.2f}"),
                _text(median_s, "{:.2f}"),
                _text(median_s / median, "{:.1f}"),
                f"{paper_mean:.2f}",
                f"{paper_median:.2f}",
                f"{paper_median / PAPER_LATENCY_S[BEFORE][1]:.1f}",
            ]
        )
    heading = ["bystander's web requests", "mean (s)", "median (s)", "times", "paper: mean", "median", "times"]
    return Table(heading, rows)


def _goals(network: Mapping[str, Record], sweep: Sequence[Record]) -> list[Goal]:
    goals: list[Goal] = []
    none, news = network.get(NONE.name), network.get(HOT_SPOT.name)
    if none is not None and news is not None:
        gain = _rate(news, "ar_kbps") / _rate(none, "ar_kbps")
        text = f"AR under NEWS at least {PAPER_AR_GAIN:.2f} times that without control (261 and 133 kbit/s)"
        goals.append(Goal(text, gain >= PAPER_AR_GAIN, f"{gain:.2f} times"))
        without, limited = (_figure(one, "response_loss") for one in (none, news))
        text = f"loss at most {LOSS_WITH:.0%} under NEWS, at least {LOSS_WITHOUT:.0%} without control"
        goals.append(Goal(text, without >= LOSS_WITHOUT and limited <= LOSS_WITH, f"{limited:.1%} and {without:.0%}"))
    if news is not None:
        intervals = _figure(news, "detected_after_intervals")
        text = "the alarm within 88 s of the onset at T = 64 s"
        goals.append(Goal(text, intervals <= DETECTED_INTERVALS, f"{_alarm_s(news):.0f} s"))
        latency = "bystander_latency_median_ms"
        times = _figure(news, latency) / _figure(news, latency, "quiet")
        text = (
            f"bystander's median latency at most {LATENCY_TIMES:.1f} times the quiet one with hot-spot identification"
        )
        goals.append(Goal(text, times <= LATENCY_TIMES, f"{times:.2f} times"))
        goodput = "bystander_goodput_kbps"
        kept = _figure(news, goodput) / _figure(news, goodput, "quiet")
        text = f"the bulk transfer keeps at least {GOODPUT_KEPT:.0%} (318 of 327 kbit/s)"
        goals.append(Goal(text, kept >= GOODPUT_KEPT, f"{kept:.0%}"))
    if len(sweep) > 1:
        best = max(sweep, key=lambda one: _rate(one, "ar_kbps")).parameters["period_s"]
        goals.append(Goal("AR is best at T = 64 or 128 s", best in BEST_PERIODS_S, f"at {best:g} s"))
    return goals


def report(records: Sequence[Record]) -> Report:
    """A table for each figure's runs, beside the paper's numbers."""
    sweep = [one for one in records if one.parameters["sweep"]]
    crowds = {
        scenario.name: {
            one.parameters["variant"]: one
            for one in records
            if not one.parameters["sweep"] and one.parameters["scenario"] == scenario.name
        }
        for scenario in (NETWORK, SERVER)
    }
    tables = [_crowd_table(scenario, runs) for scenario, runs in crowds.items() if runs]
    if crowds[NETWORK.name]:
        tables.append(_latency_table(crowds[NETWORK.name]))
    if sweep:
        tables.append(_sweep_table(sweep))
    factors = " and ".join(f"{k:g}" for k in sorted({one.parameters["k"] for one in records}))
    kinds = " and the ".join(sorted({one.parameters["switch"] for one in records}))
    return Report(
        tables=tables,
        goals=_goals(crowds[NETWORK.name], sweep),
        text=[
            f"One run each, on the {kinds} switch. Time is compressed by k = {factors}; rates are divided by it here, "
            "times multiplied, CPU is as measured. From one interval after the alarm on (without one, after the "
            "onset). The paper replays a log that is not this one, over delays and sizes that it does not give: what "
            "compares are proportions, not rates. Its slow server swaps, this one is short of CPU. Its figures of "
            "rejected requests are of connections; here clients give up after the patience of section 7.6.1.",
            "[news.md](news.md) tells how it is measured, and what the limit has to do with the onset's phase.",
        ],
        summary={one.key: {window: one.result[window] for window in ("quiet", "crowd")} for one in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """AR against time; AR by limit and, where T was swept, by T."""
    crowds = [one for one in records if not one.parameters["sweep"] and one.parameters["scenario"] == NETWORK.name]
    sweep = [one for one in records if one.parameters["sweep"]]
    left, right = figure.subplots(1, 2)
    for one in crowds:
        k, name = one.parameters["k"], one.parameters["variant"]
        if name in PAPER_LATENCY_S:
            times, rates = simulated.column(one, simulated.AR, 1e-3 / k)
            left.plot([k * moment for moment in times], rates, label=VARIANTS[name].title)
    left.set_xlabel("s")
    left.set_ylabel("AR, kbit/s")
    left.legend(fontsize="x-small")
    bars = [(VARIANTS[one.parameters["variant"]].title, _rate(one, "ar_kbps"), "C0") for one in crowds]
    bars += [(f"T = {one.parameters['period_s']:g} s", _rate(one, "ar_kbps"), "C1") for one in sweep]
    right.barh([title for title, _, _ in bars], [ar for _, ar, _ in bars], color=[colour for _, _, colour in bars])
    right.invert_yaxis()
    right.tick_params(axis="y", labelsize="x-small")
    right.set_xlabel("AR during the crowd, kbit/s")
    for axes in (left, right):
        axes.grid(alpha=0.3)
