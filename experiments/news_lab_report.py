"""The report on the lab's flash crowds, compared with the numbers of Chen & Heidemann."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from experiments import findings, simulated
from experiments.experiment import Figure, Goal, Record, Report
from experiments.news_lab_runs import CROWD, QUIET, Runs, set_ups
from experiments.news_lab_tables import CURVES, false_alarms, swept, tables
from experiments.news_lab_verdicts import BEST_PERIODS_S
from experiments.news_lab_verdicts import findings as held_against_the_paper
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK, NEWS, NONE, PRODUCTION, SERVER, VARIANTS

LEAST_DRAWN_PER_S = 10.0
AR_GAIN = 261 / 133
SERVER_AR_GAIN = 260 / 158
BEST_STATIC_SHARE = 0.89
CPU_MAX = 5.0
NO_FALSE_ALARM_ABOVE_S = 90.0
LOSS_WITHOUT, LOSS_WITH = 20.0, 3.0
DETECTED_S = 88.0
LATENCY_TIMES = 0.32 / 0.18
GOODPUT_KEPT = 0.9


def _network_goals(runs: Mapping[str, Runs]) -> list[Goal]:
    goals: list[Goal] = []
    none, news, spot = (runs.get(variant.name) for variant in (NONE, NEWS, HOT_SPOT))
    if none and news:
        gain = news.over(none, "ar_kbps")
        text = f"Fig. 19: AR under NEWS at least {AR_GAIN:.2f} times that without control (261 and 133 kbit/s)"
        goals.append(Goal(text, gain.value >= AR_GAIN, f"{gain.text(2)} times"))
        without, limited = (runs_of.percent("response_loss") for runs_of in (none, news))
        text = f"section 8.2: loss at most {LOSS_WITH:g} % under NEWS, at least {LOSS_WITHOUT:g} % without control"
        reached = without.value >= LOSS_WITHOUT and limited.value <= LOSS_WITH
        goals.append(Goal(text, reached, f"{limited.text()} % and {without.text(0)} %"))
        alone, retried = (runs_of.figure("offered_per_s") for runs_of in (none, news))
        text = "Figs. 12 and 20: more requests offered under NEWS than without control, as refused ones come again"
        goals.append(Goal(text, retried.value > alone.value, f"{retried.text(0)} and {alone.text(0)}/s"))
    static = {name: runs_of for name, runs_of in runs.items() if name.startswith("static")}
    if news and static:
        best = max(static, key=lambda name: static[name].figure("ar_kbps").value)
        ours, theirs = (runs_of.figure("ar_kbps") for runs_of in (news, static[best]))
        text = "Table I, Figs. 14 and 21: AR under NEWS within 11 % of that of the best static limit"
        seen = f"{ours.text(0)} against {theirs.text(0)} kbit/s of {VARIANTS[best].title}"
        goals.append(Goal(text, ours.value >= BEST_STATIC_SHARE * theirs.value, seen))
    if news:
        alarm = news.alarm_s()
        text = f"section 8.2: the alarm within {DETECTED_S:g} s of the onset at T = 64 s"
        everywhere = alarm.runs == len(news.records)
        goals.append(
            Goal(text, everywhere and alarm.value <= DETECTED_S, f"{alarm.text(0)} s" if alarm.runs else "never")
        )
        goodput = news.over_quiet("bystander_goodput_kbps")
        text = f"Fig. 16, section 8.6: the bulk transfer keeps at least {GOODPUT_KEPT:.0%} (318 of 327 kbit/s)"
        goals.append(Goal(text, goodput.value >= GOODPUT_KEPT, f"{goodput.text(2)} of it"))
    if spot:
        times = spot.over_quiet("bystander_latency_median_ms")
        text = (
            f"Table III: bystander's median latency at most {LATENCY_TIMES:.1f} times the quiet one with hot-spot "
            "identification"
        )
        goals.append(Goal(text, times.value <= LATENCY_TIMES, f"{times.text(2)} times"))
    return goals


def _server_goals(runs: Mapping[str, Runs]) -> list[Goal]:
    none, news = runs.get(NONE.name), runs.get(NEWS.name)
    if not none or not news:
        return []
    gain = news.over(none, "ar_kbps")
    text = f"Fig. 22: server-limited: AR under NEWS at least {SERVER_AR_GAIN:.2f} times that without control"
    return [Goal(f"{text} (260 and 158 kbit/s)", gain.value >= SERVER_AR_GAIN, f"{gain.text(2)} times")]


def _sweep_goals(sweep: Mapping[float, Runs]) -> list[Goal]:
    goals: list[Goal] = []
    if long := [runs for period_s, runs in sweep.items() if period_s > NO_FALSE_ALARM_ABOVE_S]:
        false = sum(false_alarms(runs) for runs in long)
        goals.append(Goal(f"Fig. 15: no false alarm with T above 90 s under {swept(sweep)}", false == 0, str(false)))
    if usual := sweep.get(BEST_PERIODS_S[0]):
        used = usual.percent("controller_cpu")
        text = f"Table II: less than {CPU_MAX:g} % of a core for the controller at T = 64 s under {swept(sweep)}"
        goals.append(Goal(text, used.value < CPU_MAX, f"{used.text()} % at k times the paper's rates"))
    if len(sweep) > 1:
        best = max(sweep, key=lambda period_s: sweep[period_s].figure("ar_kbps").value)
        text = f"Fig. 23: AR is best at T = 64 or 128 s under {swept(sweep)}"
        goals.append(Goal(text, best in BEST_PERIODS_S, f"at {best:g} s"))
    return goals


def report(records: Sequence[Record]) -> Report:
    """Report the tables of the crowds, a comparison of their figures with Chen & Heidemann's numbers, with reasons for
    deviations, and the goals."""
    setups = set_ups(records)
    findings_list = held_against_the_paper(setups)
    return Report(
        tables=[*tables(setups), *([findings.table(findings_list)] if findings_list else [])],
        goals=[
            *_network_goals(setups.crowds[NETWORK.name]),
            *_server_goals(setups.crowds[SERVER.name]),
            *_sweep_goals(setups.sweep),
        ],
        summary={
            **{record.key: {window: record.result[window] for window in (QUIET, CROWD)} for record in records},
            "findings": [asdict(finding) for finding in findings_list],
        },
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw AR (the response rate of the fastest flows) in both scenarios, and requests in the network-limited scenario,
    against time, for the first run of each variant in CURVES. Then draw AR by variant and, if T was varied, by T."""
    setups = set_ups(records)
    (upper_left, upper_right), (lower_left, right) = figure.subplots(2, 2)
    for axes, scenario in ((upper_left, NETWORK), (lower_left, SERVER)):
        for name, runs in setups.crowds[scenario.name].items():
            if name in CURVES:
                variant = VARIANTS[name]
                # Production mode decides so often that its curve would hide the other curves, so it is drawn faintly.
                style: dict[str, float] = {"alpha": 0.4, "zorder": 1} if variant is PRODUCTION else {}
                axes.plot(*_curve(runs.records[0], simulated.AR, 1e-3), lw=0.8, label=variant.title, **style)
        axes.set_ylabel(f"AR, kbit/s, {scenario.name}", fontsize="x-small")
    network = setups.crowds[NETWORK.name]
    for number, name in enumerate(CURVES):
        if name in network:
            first = network[name].records[0]
            title = VARIANTS[name].title
            upper_right.plot(*_curve(first, simulated.ADMITTED), color=f"C{number}", lw=0.8, label=title)
            upper_right.plot(*_curve(first, simulated.OFFERED), ":", color=f"C{number}", lw=0.8)
    upper_right.set_ylabel("requests/s: admitted, offered (dotted)", fontsize="x-small")
    upper_right.set_yscale("log")
    upper_right.set_ylim(bottom=LEAST_DRAWN_PER_S)
    bars = [(VARIANTS[name].title, runs.figure("ar_kbps"), "C0") for name, runs in network.items()]
    bars += [
        (f"{swept(setups.sweep)}, T = {period_s:g} s", runs.figure("ar_kbps"), "C1")
        for period_s, runs in setups.sweep.items()
    ]
    right.barh(
        [title for title, _, _ in bars],
        [mean.value for _, mean, _ in bars],
        xerr=[0.0 if math.isnan(mean.half) else mean.half for _, mean, _ in bars],
        color=[colour for _, _, colour in bars],
    )
    right.invert_yaxis()
    right.set_xlabel("AR during the crowd, kbit/s")
    upper_left.legend(fontsize="xx-small")
    for axes in (upper_left, lower_left, upper_right):
        axes.set_xlabel("s")
    for axes in (upper_left, lower_left, upper_right, right):
        axes.tick_params(labelsize="x-small")
        axes.grid(alpha=0.3)


def _curve(record: Record, column: int, scale: float = 1.0) -> tuple[list[float], list[float]]:
    """Return the times and values of a column of rates, converted to Chen & Heidemann's uncompressed time scale. The
    values are multiplied by `scale`, to convert their unit."""
    k = record.parameters["k"]
    times, values = simulated.column(record, column, scale / k)
    return [k * moment for moment in times], values
