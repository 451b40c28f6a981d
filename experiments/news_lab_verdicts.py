"""Comparison of the lab's flash crowds with the numbers of Chen & Heidemann, point by point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from experiments import news_lab_reasons as reasons
from experiments.findings import NEAR_LOSS_POINTS, NOT_KNOWN, Finding, at_least, at_most, near, times
from experiments.intervals import Mean
from experiments.news_lab_runs import Runs, SetUps
from experiments.news_lab_tables import false_alarms, swept
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK, NEWS, NONE, SERVER, Settings, Variant

PAPER_CROWD_PER_S = 117.0
"""Requests/s in section 8.2: "the average incoming request rate during flash crowds"."""
CROWD_PER_S = Settings().crowd_per_s

STATIC = {
    "static-30": (60 / 209.7, 70.2, 0.0, 101.36 / 96),
    "static-40": (80 / 209.7, 56.5, 0.0, 100.2 / 96),
    "static-60": (120 / 209.7, 32.8, 2.0, 90.8 / 96),
}
"""Chen & Heidemann's results in Table I for a static limit, by name of the lab's variant whose limit has the same ratio
to the crowd's rate: this ratio, rejected requests in percent, loss in percent, and AR relative to AR before the
crowd."""
NEAR_INTERVALS = 1.5
"""Detection within this many intervals agrees with the paper's "slightly more than one"."""
BEST_PERIODS_S = (64.0, 128.0)
CLEARLY_LESS = 0.9
"""A value of AR (the response rate of the fastest flows) is clearly less than the best AR if its ratio to the best AR
is below CLEARLY_LESS."""


def findings(setups: SetUps) -> list[Finding]:
    """Return every comparison for which there are runs, in the order of Chen & Heidemann's sections.

    In the texts, "NEWS" is NEWS as published, without hot-spot identification. Section 8.6 is the only section with
    identification, so the texts of its comparisons mention the identification.
    """
    network, server, sweep = setups.crowds[NETWORK.name], setups.crowds[SERVER.name], setups.sweep
    return [
        *_simulated_ones(network),
        *_under(sweep, _sweep_simulated(sweep)),
        *_bulk(network, "Fig. 16", 3, 36, below=NOT_KNOWN, above=reasons.BULK_LIMITED),
        *_network_limited(network),
        *_static(network),
        *_server_limited(server),
        *_under(sweep, _sweep(sweep)),
        *_under(sweep, _overhead(sweep)),
        *_latency(network),
        *_bulk(network, "section 8.6", 24, 97, below=reasons.BULK_STANDS, above=NOT_KNOWN),
    ]


def _runs_of(by_variant: Mapping[str, Runs], *variants: Variant) -> list[Runs]:
    """Return the runs of each variant. A variant that was not run has empty runs, whose figures are NaN; comparisons
    with NaN are not reported."""
    return [by_variant.get(variant.name, Runs([])) for variant in variants]


def _simulated_ones(network: Mapping[str, Runs]) -> list[Finding]:
    """Compare the network-limited runs with Table I and Figs. 12 and 13, which Chen & Heidemann simulate.

    Admitted requests are relative to the crowd's request rate, and AR is relative to AR before the crowd. Losses and
    rejected requests are shares.
    """
    table = "Table I, Figs. 12 and 13"
    none, news = _runs_of(network, NONE, NEWS)
    loss, ar = none.percent("response_loss"), _percent(none.over_quiet("ar_kbps"))
    said = [
        *near(table, "loss without control", 25, loss, within=NEAR_LOSS_POINTS, above=reasons.OTHER_LINK),
        *near(table, "AR without control, of that before", 61, ar, below=reasons.FULL_LINK, above=reasons.FULL_LINK),
        *at_most(table, "loss under NEWS", 2, news.percent("response_loss"), unit="%"),
        *near(table, "AR under NEWS, of that before", 94, _percent(news.over_quiet("ar_kbps"))),
        *near(table, "admitted under NEWS, of the crowd", 51, _of_crowd(news), below=reasons.LIMIT_LOW),
        *near(table, "rejected under NEWS", 32.4, news.percent("rejected_share"), above=reasons.LIMIT_LOW),
    ]
    for name, (share, rejected, paper_loss, ar_of_before) in STATIC.items():
        limited = network.get(name, Runs([]))
        limit = f"static limit of {float(name.partition('-')[2]) / CROWD_PER_S:.2f} of the crowd (paper: {share:.2f})"
        loss, ar = limited.percent("response_loss"), _percent(limited.over_quiet("ar_kbps"))
        said += near(table, f"{limit}, rejected", rejected, limited.percent("rejected_share"))
        said += near(table, f"{limit}, loss", paper_loss, loss, within=NEAR_LOSS_POINTS, above=reasons.TOO_MUCH)
        said += near(table, f"{limit}, AR of that before", round(100 * ar_of_before), ar, below=reasons.TOO_MUCH)
    return said


def _network_limited(network: Mapping[str, Runs]) -> list[Finding]:
    none, news = _runs_of(network, NONE, NEWS)
    ar, gain = _percent(none.over_quiet("ar_kbps")), news.over(none, "ar_kbps")
    loss, failed = none.percent("response_loss"), none.percent("rejected_share")
    alone, retried = (_of_crowd_times(runs) for runs in (none, news))
    paper_alone, paper_retried, paper_admitted = (rate / PAPER_CROWD_PER_S for rate in (318, 459, 56))
    more, admitted = news.over(none, "offered_per_s"), round(100 * paper_admitted)
    return [
        *near("Fig. 19", "answered without control, of the crowd", 68, _of_crowd(none, "finished_per_s")),
        *near(
            "Fig. 19", "AR without control, of that before", 50, ar, below=reasons.FULL_LINK, above=reasons.FULL_LINK
        ),
        *times(
            "Fig. 19",
            "AR under NEWS to that without",
            261 / 133,
            gain,
            below=reasons.FULL_LINK,
            above=reasons.FULL_LINK,
        ),
        *near("section 8.2", "link used without control", 100, none.percent("bottleneck_used")),
        *near("section 8.2", "loss without control", 60, loss, within=NEAR_LOSS_POINTS, below=reasons.LOSS_FULL),
        *near("section 8.2", "connections that time out without control", 22, failed, below=reasons.SYN_ACKS_PASS),
        *_alarm("section 8.2", 88.0, news),
        *at_most("section 8.2", "loss under NEWS", 3, news.percent("response_loss"), unit="%"),
        *near("section 8.2", "rejected under NEWS", 49, news.percent("rejected_share"), above=reasons.LIMIT_LOW),
        *times("Fig. 20", "SYNs a request without control", paper_alone, alone, below=reasons.SYN_ACKS_PASS),
        *times(
            "Fig. 20",
            "SYNs a request under NEWS",
            paper_retried,
            retried,
            above=reasons.SYNS_OFTEN,
            below=reasons.SYNS_OFTEN,
        ),
        *times("Fig. 20", "offered under NEWS to that without", 459 / 318, more, above=reasons.SYN_ACKS_PASS),
        *near("Fig. 20", "admitted under NEWS, of the crowd", admitted, _of_crowd(news), below=reasons.LIMIT_LOW),
    ]


def _static(network: Mapping[str, Runs]) -> list[Finding]:
    """Compare the ratio of AR under NEWS to AR under the best static limit with the published ratio. The best static
    limit is the one, among those that were run, with the highest AR."""
    static = {name: runs for name, runs in network.items() if name.startswith("static")}
    (news,) = _runs_of(network, NEWS)
    if not static:
        return []
    best = max(static.values(), key=lambda runs: runs.figure("ar_kbps").value)
    share = _percent(news.over(best, "ar_kbps"))
    return at_least("Figs. 14 and 21", "AR under NEWS, of the best static limit's", 89, share, unit="%")


def _server_limited(server: Mapping[str, Runs]) -> list[Finding]:
    figure = "section 8.3, Fig. 22"
    none, news = _runs_of(server, NONE, NEWS)
    used, loss, failed = (none.percent(name) for name in ("bottleneck_used", "response_loss", "rejected_share"))
    alone, limited = (runs.percent("slow_memory_share") for runs in (none, news))
    admitted, gain = round(100 * 54 / PAPER_CROWD_PER_S), news.over(none, "ar_kbps")
    return [
        *near(figure, "link used without control", 60, used, above=reasons.SECOND_LIMIT),
        *near(figure, "loss without control", 0, loss, within=NEAR_LOSS_POINTS, above=reasons.SECOND_LIMIT),
        *near(figure, "connections that time out without control", 20, failed, above=reasons.SECOND_LIMIT),
        *near(figure, "server's memory used without control", 98, alone),
        *near(figure, "server's memory used under NEWS", 88, limited, below=reasons.MEMORY_HELD),
        *_alarm(figure, 80.0, news),
        *near(figure, "admitted under NEWS, of the crowd", admitted, _of_crowd(news), below=reasons.LIMIT_LOW),
        *times(figure, "AR under NEWS to that without", 260 / 158, gain, above=reasons.SECOND_LIMIT),
    ]


def _under(sweep: Mapping[float, Runs], said: Sequence[Finding]) -> list[Finding]:
    """Return the given findings with the title of the variant whose T was varied after the name of the published
    figure."""
    return [replace(finding, figure=f"{finding.figure}, {swept(sweep)}") for finding in said]


def _sweep_simulated(sweep: Mapping[float, Runs]) -> list[Finding]:
    said: list[Finding] = []
    for period_s in (16.0, 32.0):
        if period_s in sweep:
            what = f"a false alarm with a T as short as {period_s:g} s"
            said.append(_false_alarm("Fig. 15", what, sweep[period_s]))
    said += _no_false_alarm("Fig. 15", 90, sweep)
    if len(sweep) > 1:
        best = _best(sweep)
        paper = "T = 60 s"
        said.append(
            Finding("Fig. 15", "AR is best", paper, f"at {best:g} s", best == BEST_PERIODS_S[0], reasons.WHERE_IN_T)
        )
    return said


def _sweep(sweep: Mapping[float, Runs]) -> list[Finding]:
    figure = "section 8.4, Fig. 23"
    said: list[Finding] = []
    if shortest := sweep.get(16.0):
        said.append(_false_alarm(figure, "a false alarm at T = 16 s", shortest))
        said += near(figure, "rejected at T = 16 s", 65, shortest.percent("rejected_share"))
    said += _no_false_alarm(figure, 16, sweep)
    if any(period_s > 16 for period_s in sweep):
        after = {period_s: runs.alarm_s().value / period_s for period_s, runs in sweep.items() if period_s > 16}
        seen = ", ".join(f"{value:.1f} at {period_s:g} s" for period_s, value in after.items())
        slightly = all(1 <= value <= NEAR_INTERVALS for value in after.values())
        said.append(
            Finding(figure, "alarm after so many T", "slightly more than 1", seen, slightly, reasons.WHERE_IN_T)
        )
    if len(sweep) > 1:
        best = _best(sweep)
        said.append(
            Finding(
                figure, "AR is best", "at 64 or 128 s", f"at {best:g} s", best in BEST_PERIODS_S, reasons.WHERE_IN_T
            )
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
                    reasons.WHERE_IN_T,
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
        said += times(figure, "memory in the crowd to that before", paper, memory, below=reasons.MEMORY_IN_THE_SWITCH)
    if len(sweep) > 1:
        for window, when in (("quiet", "before"), ("crowd", "in")):
            cpu = [runs.percent("controller_cpu", window).value for runs in sweep.values()]
            seen = ", ".join(f"{value:.1f}" for value in cpu) + " %"
            falls = cpu == sorted(cpu, reverse=True)
            said.append(
                Finding(figure, f"CPU {when} the crowd, by T", "falls with T", seen, falls, reasons.READ_AS_OFTEN)
            )
        offered = [runs.figure("offered_per_s").value for runs in sweep.values()]
        seen = ", ".join(f"{value:.0f}" for value in offered) + "/s"
        falls = offered == sorted(offered, reverse=True)
        said.append(Finding(figure, "offered in the crowd, by T", "falls with T", seen, falls, reasons.WHERE_IN_T))
    return said


def _latency(network: Mapping[str, Runs]) -> list[Finding]:
    figure, unit = "Table III", "times"
    runs = _runs_of(network, NONE, NEWS, HOT_SPOT)
    none, news, spot = (each.over_quiet("bystander_latency_median_ms") for each in runs)
    mean_none, mean_news, mean_spot = (each.over_quiet("bystander_latency_mean_ms") for each in runs)
    less, mean_less = (runs[1].over(runs[0], f"bystander_latency_{kind}_ms") for kind in ("median", "mean"))
    answered, admitted, refused = (
        reasons.LATENCY_OF_THE_ANSWERED,
        reasons.LATENCY_OF_THE_ADMITTED,
        reasons.LATENCY_OF_THE_REFUSED,
    )
    return [
        *times(figure, "median without control to before", 9.53 / 0.18, none, below=answered),
        *times(figure, "mean without control to before", 24.44 / 0.22, mean_none, below=answered),
        *times(figure, "median under NEWS to before", 3.15 / 0.18, news, below=admitted),
        *times(figure, "mean under NEWS to before", 7.03 / 0.22, mean_news),
        *times(figure, "median under NEWS to that without", 3.15 / 9.53, less),
        *times(figure, "mean under NEWS to that without", 7.03 / 24.44, mean_less, above=refused),
        *at_most(figure, "median with identification to before", 0.32 / 0.18, spot, unit=unit),
        *at_most(figure, "mean with identification to before", 0.42 / 0.22, mean_spot, unit=unit),
    ]


def _bulk(
    network: Mapping[str, Runs], figure: str, without: float, under_news: float, *, below: str, above: str
) -> list[Finding]:
    """Compare the bulk transfer's goodput in the crowd with the published values for no control (`without`) and for
    NEWS (`under_news`), all in percent of the goodput before the crowd."""
    none, news = (_percent(runs.over_quiet("bystander_goodput_kbps")) for runs in _runs_of(network, NONE, NEWS))
    return [
        *near(figure, "bulk transfer without control, of before", without, none, below=below),
        *near(figure, "bulk transfer under NEWS, of before", under_news, news, above=above),
    ]


def _alarm(figure: str, paper_s: float, runs: Runs) -> list[Finding]:
    """Compare the time from the onset to the alarm with the published time; times agree within a tenth of T."""
    if not runs.records:
        return []
    alarm, what = runs.alarm_s(), "alarm after the onset, within a tenth of T"
    if not alarm.runs:
        return [Finding(figure, what, f"{paper_s:.0f} s", "never", agrees=False)]
    why = reasons.ALARM_EARLY if alarm.value < paper_s else NOT_KNOWN
    agrees = abs(alarm.value - paper_s) <= 0.1 * runs.parameters["period_s"]
    return [Finding(figure, what, f"{paper_s:.0f} s", f"{alarm.text(0)} s", agrees, why)]


def _false_alarm(figure: str, what: str, runs: Runs) -> Finding:
    count = false_alarms(runs)
    seen = f"{count or 'none'} in {len(runs.records)} run{'s' if len(runs.records) > 1 else ''}"
    return Finding(figure, what, "yes", seen, count > 0, reasons.NO_BURSTS)


def _no_false_alarm(figure: str, above_s: float, sweep: Mapping[float, Runs]) -> list[Finding]:
    """Compare the number of false alarms with the published absence of false alarms for T above `above_s`."""
    counts = [false_alarms(runs) for period_s, runs in sweep.items() if period_s > above_s]
    seen = str(sum(counts) or "none")
    what = f"false alarms with T above {above_s:g} s"
    return [Finding(figure, what, "none", seen, not any(counts))] if counts else []


def _best(sweep: Mapping[float, Runs]) -> float:
    return max(sweep, key=lambda period_s: sweep[period_s].figure("ar_kbps").value)


def _percent(mean: Mean) -> Mean:
    return Mean(100 * mean.value, 100 * mean.half, mean.runs)


def _of_crowd(runs: Runs, name: str = "admitted_per_s") -> Mean:
    """Return a rate in percent of the crowd's request rate."""
    return _percent(_of_crowd_times(runs, name))


def _of_crowd_times(runs: Runs, name: str = "offered_per_s") -> Mean:
    return runs.figure(name, scale=1 / CROWD_PER_S)
