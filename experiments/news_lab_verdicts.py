"""Comparison of the lab's flash crowds with the numbers of Chen & Heidemann, point by point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from experiments.findings import (
    NEAR_LOSS_POINTS,
    NOT_KNOWN,
    Finding,
    at_least,
    at_most,
    near,
    times,
)
from experiments.intervals import Mean
from experiments.news_lab_reasons import (
    ALARM_EARLY,
    BULK_LIMITED,
    BULK_STANDS,
    FULL_LINK,
    LATENCY_OF_THE_ADMITTED,
    LATENCY_OF_THE_ANSWERED,
    LATENCY_OF_THE_REFUSED,
    LIMIT_LOW,
    LOSS_FULL,
    MEMORY_HELD,
    MEMORY_IN_THE_SWITCH,
    NO_BURSTS,
    OTHER_LINK,
    READ_AS_OFTEN,
    SECOND_LIMIT,
    SYN_ACKS_PASS,
    SYNS_OFTEN,
    TOO_MUCH,
    WHERE_IN_T,
)
from experiments.news_lab_runs import Runs, SetUps
from experiments.news_lab_tables import false_alarms, swept
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK, NEWS, NONE, SERVER, Settings

PAPER_CROWD_PER_S = 117.0
"""Section 8.2: "the average incoming request rate during flash crowds"."""
CROWD_PER_S = Settings().crowd_per_s

STATIC = {
    "static-30": (60 / 209.7, 70.2, 0.0, 101.36 / 96),
    "static-40": (80 / 209.7, 56.5, 0.0, 100.2 / 96),
    "static-60": (120 / 209.7, 32.8, 2.0, 90.8 / 96),
}
"""Limits of Table I beside ours: crowd rate, rejected share and loss in percent, and AR relative to AR before."""
NEAR_INTERVALS = 1.5
"""Detection within this many intervals agrees with "slightly more than one"."""
BEST_PERIODS_S = (64.0, 128.0)
CLEARLY_LESS = 0.9
"""An AR below this share of the best AR is clearly less."""


def findings(setups: SetUps) -> list[Finding]:
    """Return every comparison for which there are runs, in the order of Chen & Heidemann.

    "NEWS" is NEWS as published, without identification. Only section 8.6 has identification, which its comparisons
    state.
    """
    network, server, sweep = setups.crowds[NETWORK.name], setups.crowds[SERVER.name], setups.sweep
    return [
        *_simulated_ones(network),
        *_under(sweep, _sweep_simulated(sweep)),
        *_bulk_simulated(network),
        *_network_limited(network),
        *_static(network),
        *_server_limited(server),
        *_under(sweep, _sweep(sweep)),
        *_under(sweep, _overhead(sweep)),
        *_latency(network),
        *_bulk(network),
    ]


def _simulated_ones(network: Mapping[str, Runs]) -> list[Finding]:
    """Compare with Table I and Figs. 12 and 13, which Chen & Heidemann simulate: proportions to the crowd and to
    before."""
    table = "Table I, Figs. 12 and 13"
    said: list[Finding] = []
    if none := network.get(NONE.name):
        loss = none.percent("response_loss")
        said += near(table, "loss without control", 25, loss, within=NEAR_LOSS_POINTS, above=OTHER_LINK)
        ar = none.over_quiet("ar_kbps")
        said += near(table, "AR without control, of that before", 61, _percent(ar), below=FULL_LINK, above=FULL_LINK)
    if news := network.get(NEWS.name):
        said += at_most(table, "loss under NEWS", 2, news.percent("response_loss"), unit="%")
        said += near(table, "AR under NEWS, of that before", 94, _percent(news.over_quiet("ar_kbps")))
        said += near(table, "admitted under NEWS, of the crowd", 51, _of_crowd(news), below=LIMIT_LOW)
        said += near(table, "rejected under NEWS", 32.4, news.percent("rejected_share"), above=LIMIT_LOW)
    for name, (share, rejected, loss, ar_of_before) in STATIC.items():
        if limited := network.get(name):
            limit = (
                f"static limit of {float(name.partition('-')[2]) / CROWD_PER_S:.2f} of the crowd (paper: {share:.2f})"
            )
            said += near(table, f"{limit}, rejected", rejected, limited.percent("rejected_share"))
            loss_here = limited.percent("response_loss")
            said += near(table, f"{limit}, loss", loss, loss_here, within=NEAR_LOSS_POINTS, above=TOO_MUCH)
            ar = _percent(limited.over_quiet("ar_kbps"))
            said += near(table, f"{limit}, AR of that before", round(100 * ar_of_before), ar, below=TOO_MUCH)
    return said


def _network_limited(network: Mapping[str, Runs]) -> list[Finding]:
    none, news = network.get(NONE.name), network.get(NEWS.name)
    said: list[Finding] = []
    if none:
        said += near("Fig. 19", "answered without control, of the crowd", 68, _of_crowd(none, "finished_per_s"))
        ar = _percent(none.over_quiet("ar_kbps"))
        said += near("Fig. 19", "AR without control, of that before", 50, ar, below=FULL_LINK, above=FULL_LINK)
    if none and news:
        gain = news.over(none, "ar_kbps")
        said += times("Fig. 19", "AR under NEWS to that without", 261 / 133, gain, below=FULL_LINK, above=FULL_LINK)
    if none:
        said += near("section 8.2", "link used without control", 100, none.percent("bottleneck_used"))
        loss = none.percent("response_loss")
        said += near("section 8.2", "loss without control", 60, loss, within=NEAR_LOSS_POINTS, below=LOSS_FULL)
        failed = none.percent("rejected_share")
        said += near("section 8.2", "connections that time out without control", 22, failed, below=SYN_ACKS_PASS)
    if news:
        said += _alarm("section 8.2", 88.0, news)
        said += at_most("section 8.2", "loss under NEWS", 3, news.percent("response_loss"), unit="%")
        said += near("section 8.2", "rejected under NEWS", 49, news.percent("rejected_share"), above=LIMIT_LOW)
    if none:
        offered = _of_crowd_times(none)
        paper = 318 / PAPER_CROWD_PER_S
        said += times("Fig. 20", "SYNs a request without control", paper, offered, below=SYN_ACKS_PASS)
    if news:
        offered = _of_crowd_times(news)
        paper = 459 / PAPER_CROWD_PER_S
        said += times("Fig. 20", "SYNs a request under NEWS", paper, offered, above=SYNS_OFTEN, below=SYNS_OFTEN)
    if none and news:
        more = news.over(none, "offered_per_s")
        said += times("Fig. 20", "offered under NEWS to that without", 459 / 318, more, above=SYN_ACKS_PASS)
    if news:
        admitted = 100 * 56 / PAPER_CROWD_PER_S
        said += near("Fig. 20", "admitted under NEWS, of the crowd", round(admitted), _of_crowd(news), below=LIMIT_LOW)
    return said


def _static(network: Mapping[str, Runs]) -> list[Finding]:
    """Compare NEWS with the best of the static limits that were run."""
    static = {name: runs for name, runs in network.items() if name.startswith("static")}
    news = network.get(NEWS.name)
    if not static or not news:
        return []
    best = max(static.values(), key=lambda runs: runs.figure("ar_kbps").value)
    share = _percent(news.over(best, "ar_kbps"))
    return at_least("Figs. 14 and 21", "AR under NEWS, of the best static limit's", 89, share, unit="%")


def _server_limited(server: Mapping[str, Runs]) -> list[Finding]:
    figure = "section 8.3, Fig. 22"
    none, news = server.get(NONE.name), server.get(NEWS.name)
    said: list[Finding] = []
    if none:
        said += near(figure, "link used without control", 60, none.percent("bottleneck_used"), above=SECOND_LIMIT)
        said += near(
            figure,
            "loss without control",
            0,
            none.percent("response_loss"),
            within=NEAR_LOSS_POINTS,
            above=SECOND_LIMIT,
        )
        said += near(
            figure,
            "connections that time out without control",
            20,
            none.percent("rejected_share"),
            above=SECOND_LIMIT,
        )
        said += near(figure, "server's memory used without control", 98, none.percent("slow_memory_share"))
    if news:
        memory = news.percent("slow_memory_share")
        said += near(figure, "server's memory used under NEWS", 88, memory, below=MEMORY_HELD)
        said += _alarm(figure, 80.0, news)
        admitted = round(100 * 54 / PAPER_CROWD_PER_S)
        said += near(figure, "admitted under NEWS, of the crowd", admitted, _of_crowd(news), below=LIMIT_LOW)
    if none and news:
        gain = news.over(none, "ar_kbps")
        said += times(figure, "AR under NEWS to that without", 260 / 158, gain, above=SECOND_LIMIT)
    return said


def _under(sweep: Mapping[float, Runs], said: Sequence[Finding]) -> list[Finding]:
    """Add to each figure's name the variant with which T was swept."""
    return [replace(finding, figure=f"{finding.figure}, {swept(sweep)}") for finding in said]


def _sweep_simulated(sweep: Mapping[float, Runs]) -> list[Finding]:
    said: list[Finding] = []
    for period_s in (16.0, 32.0):
        if period_s in sweep:
            what = f"a false alarm with a T as short as {period_s:g} s"
            said.append(_false_alarm("Fig. 15", what, sweep[period_s]))
    long = [runs for period_s, runs in sweep.items() if period_s > 90]
    if long:
        count = sum(false_alarms(runs) for runs in long)
        said.append(Finding("Fig. 15", "false alarms with T above 90 s", "none", str(count or "none"), count == 0))
    if len(sweep) > 1:
        best = _best(sweep)
        paper = "T = 60 s"
        said.append(Finding("Fig. 15", "AR is best", paper, f"at {best:g} s", best == BEST_PERIODS_S[0], WHERE_IN_T))
    return said


def _sweep(sweep: Mapping[float, Runs]) -> list[Finding]:
    figure = "section 8.4, Fig. 23"
    said: list[Finding] = []
    if shortest := sweep.get(16.0):
        said.append(_false_alarm(figure, "a false alarm at T = 16 s", shortest))
        said += near(figure, "rejected at T = 16 s", 65, shortest.percent("rejected_share"))
    longer = [runs for period_s, runs in sweep.items() if period_s > 16]
    if longer:
        count = sum(false_alarms(runs) for runs in longer)
        said.append(Finding(figure, "false alarms with T above 16 s", "none", str(count or "none"), count == 0))
        after = {period_s: runs.alarm_s().value / period_s for period_s, runs in sweep.items() if period_s > 16}
        seen = ", ".join(f"{value:.1f} at {period_s:g} s" for period_s, value in after.items())
        slightly = all(1 <= value <= NEAR_INTERVALS for value in after.values())
        said.append(Finding(figure, "alarm after so many T", "slightly more than 1", seen, slightly, WHERE_IN_T))
    if len(sweep) > 1:
        best = _best(sweep)
        said.append(
            Finding(figure, "AR is best", "at 64 or 128 s", f"at {best:g} s", best in BEST_PERIODS_S, WHERE_IN_T)
        )
        top = sweep[best].figure("ar_kbps").value
        for period_s, runs in sweep.items():
            ar = runs.figure("ar_kbps")
            less = ar.value < CLEARLY_LESS * top
            wanted = period_s not in BEST_PERIODS_S
            said.append(
                Finding(
                    figure,
                    f"AR at T = {period_s:g} s",
                    "less" if wanted else "as the best",
                    f"{ar.text(0)} of {top:.0f} kbit/s",
                    less is wanted,
                    WHERE_IN_T,
                )
            )
    return said


def _overhead(sweep: Mapping[float, Runs]) -> list[Finding]:
    figure = "Table II"
    said: list[Finding] = []
    if usual := sweep.get(64.0):
        said += at_most(figure, "controller's CPU in the crowd, T = 64 s", 5, usual.percent("controller_cpu"), unit="%")
        memory = usual.over_quiet("controller_mb")
        paper = 11 / 3
        said += times(figure, "memory in the crowd to that before", paper, memory, below=MEMORY_IN_THE_SWITCH)
    if len(sweep) > 1:
        for window, when in (("quiet", "before"), ("crowd", "in")):
            cpu = [runs.percent("controller_cpu", window).value for runs in sweep.values()]
            seen = ", ".join(f"{value:.1f}" for value in cpu) + " %"
            falls = cpu == sorted(cpu, reverse=True)
            said.append(Finding(figure, f"CPU {when} the crowd, by T", "falls with T", seen, falls, READ_AS_OFTEN))
        offered = [runs.figure("offered_per_s").value for runs in sweep.values()]
        seen = ", ".join(f"{value:.0f}" for value in offered) + "/s"
        falls = offered == sorted(offered, reverse=True)
        said.append(Finding(figure, "offered in the crowd, by T", "falls with T", seen, falls, WHERE_IN_T))
    return said


def _latency(network: Mapping[str, Runs]) -> list[Finding]:
    figure, median, mean = "Table III", "bystander_latency_median_ms", "bystander_latency_mean_ms"
    none, news, spot = (network.get(variant.name) for variant in (NONE, NEWS, HOT_SPOT))
    said: list[Finding] = []
    if none:
        said += times(
            figure,
            "median without control to before",
            9.53 / 0.18,
            none.over_quiet(median),
            below=LATENCY_OF_THE_ANSWERED,
        )
        said += times(
            figure, "mean without control to before", 24.44 / 0.22, none.over_quiet(mean), below=LATENCY_OF_THE_ANSWERED
        )
    if news:
        said += times(
            figure, "median under NEWS to before", 3.15 / 0.18, news.over_quiet(median), below=LATENCY_OF_THE_ADMITTED
        )
        said += times(figure, "mean under NEWS to before", 7.03 / 0.22, news.over_quiet(mean))
    if none and news:
        less = news.over(none, median)
        said += times(figure, "median under NEWS to that without", 3.15 / 9.53, less)
        less = news.over(none, mean)
        said += times(figure, "mean under NEWS to that without", 7.03 / 24.44, less, above=LATENCY_OF_THE_REFUSED)
    if spot:
        said += at_most(
            figure, "median with identification to before", 0.32 / 0.18, spot.over_quiet(median), unit="times"
        )
        said += at_most(figure, "mean with identification to before", 0.42 / 0.22, spot.over_quiet(mean), unit="times")
    return said


def _bulk(network: Mapping[str, Runs]) -> list[Finding]:
    figure, goodput = "section 8.6", "bystander_goodput_kbps"
    said: list[Finding] = []
    if none := network.get(NONE.name):
        goodput_share = _percent(none.over_quiet(goodput))
        said += near(figure, "bulk transfer without control, of before", 24, goodput_share, below=BULK_STANDS)
    if news := network.get(NEWS.name):
        said += near(figure, "bulk transfer under NEWS, of before", 97, _percent(news.over_quiet(goodput)))
    return said


def _bulk_simulated(network: Mapping[str, Runs]) -> list[Finding]:
    figure, goodput = "Fig. 16", "bystander_goodput_kbps"
    said: list[Finding] = []
    if none := network.get(NONE.name):
        said += near(figure, "bulk transfer without control, of before", 3, _percent(none.over_quiet(goodput)))
    if news := network.get(NEWS.name):
        goodput_share = _percent(news.over_quiet(goodput))
        said += near(figure, "bulk transfer under NEWS, of before", 36, goodput_share, above=BULK_LIMITED)
    return said


def _alarm(figure: str, paper_s: float, runs: Runs) -> list[Finding]:
    """Compare alarms: they agree within a tenth of T."""
    alarm, what = runs.alarm_s(), "alarm after the onset, within a tenth of T"
    if not alarm.runs:
        return [Finding(figure, what, f"{paper_s:.0f} s", "never", agrees=False)]
    why = ALARM_EARLY if alarm.value < paper_s else NOT_KNOWN
    agrees = abs(alarm.value - paper_s) <= 0.1 * runs.parameters["period_s"]
    return [Finding(figure, what, f"{paper_s:.0f} s", f"{alarm.text(0)} s", agrees, why)]


def _false_alarm(figure: str, what: str, runs: Runs) -> Finding:
    count = false_alarms(runs)
    seen = f"{count or 'none'} in {len(runs.records)} run{'s' if len(runs.records) > 1 else ''}"
    return Finding(figure, what, "yes", seen, count > 0, NO_BURSTS)


def _best(sweep: Mapping[float, Runs]) -> float:
    return max(sweep, key=lambda period_s: sweep[period_s].figure("ar_kbps").value)


def _percent(mean: Mean) -> Mean:
    return Mean(100 * mean.value, 100 * mean.half, mean.runs)


def _of_crowd(runs: Runs, name: str = "admitted_per_s") -> Mean:
    """Return a rate in percent of the crowd's."""
    return _percent(_of_crowd_times(runs, name))


def _of_crowd_times(runs: Runs, name: str = "offered_per_s") -> Mean:
    return runs.figure(name, scale=1 / CROWD_PER_S)
