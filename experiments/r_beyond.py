"""Beyond paper 000: a server repaired after starvation, a server killed, weight changes under load."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from experiments.experiment import Experiment, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.webpool import Pool, pool, quiet
from topo.apache import LONG
from topo.downloads import Downloads
from topo.httperf import Load
from topo.network import Lab
from topo.plan import DOWNLOAD_CLIENT, SERVER_NAMES, VIP, WEB_PORT, Balance
from topo.processes import await_true
from topo.switches import switch_kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE_PER_S = 90.0
GIVEN_UP_S = 5.0
LOADED = SERVER_NAMES[-1]
PERIOD_S, WINDOW_S = 1.0, 10.0
REPAIRED = "repaired after starvation"
KILLED = "killed"
CHANGES = "weight changes"
READERS = 6
READER_BYTES_PER_S = 120_000.0


def points(quick: bool) -> Sequence[Point]:
    """Each in paper mode and in production mode, where that makes a difference."""
    seconds = 60.0 if quick else 120.0
    cases = [(case, mode) for case in (REPAIRED, KILLED) for mode in ("paper", "production")]
    # Not among them yet: weight changes under long downloads (CHANGES), which has not run to its end.
    return [
        Point(
            key=f"{case}, {mode}, {seconds:g} s",
            parameters={"case": case, "mode": mode, "rate_per_s": RATE_PER_S, "seconds": seconds},
            seconds=seconds + 20,
            group=f"{case}/{mode}",
        )
        for case, mode in cases
    ]


def _changes(one: Pool, load: Load) -> Values:
    """Drain one server after the other, second by second, while long downloads run."""
    downloads = Downloads(
        namespace_pid=one.lab.pid(DOWNLOAD_CLIENT.name),
        address=str(VIP),
        port=WEB_PORT,
        path=LONG,
        original=(one.lab.files / LONG).read_bytes(),
        readers=READERS,
        rate_bytes_per_s=READER_BYTES_PER_S,
    )
    one.lab.at_end(downloads.abort)
    await_true("all long downloads run", lambda: len(downloads.established()) == READERS, 30.0)

    def turn(second: int) -> Callable[[], None]:
        name = SERVER_NAMES[second // 2 % len(SERVER_NAMES)]
        return lambda: one.lab.controller.drain(name, drain=second % 2 == 0)

    events = [(float(second), turn(second)) for second in range(2, int(load.seconds) - 2)]
    measured = one.run(load, events, account=False)
    finished = downloads.finish()
    return {
        **measured,
        "weight_changes": len(events),
        "downloads": len(finished),
        "broken": sum(bool(download.fault) for download in finished) + measured["httperf"]["resets"],
    }


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open a lab; a third of the load's time in, something happens to the last server."""
    case, mode = group.split("/")
    with pool(Lab(switch_kind(), Balance("fixed", PERIOD_S, WINDOW_S), say=quiet(say))) as one:
        if case == REPAIRED:
            one.lab.break_server(LOADED)

        def measure(point: Point) -> Values:
            load = Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S)
            one.lab.controller.set_mode(mode)
            at = load.seconds / 3
            if case == CHANGES:
                return _changes(one, load)
            happening: Mapping[str, Callable[[], None]] = {
                REPAIRED: lambda: one.lab.mend_server(LOADED),
                KILLED: lambda: one.lab.kill_server(LOADED),
            }
            measured = one.run(load, [(at, happening[case])])
            return {**measured, "at_s": at}

        yield measure


def ratios_of(record: Record, start: float, end: float) -> float:
    """Return the last server's mean ratio in a span of time."""
    rows = [row[-1] for row in record.result["ratios"] if start <= row[0] <= end]
    return statistics.fmean(rows) if rows else float("nan")


def _of(records: Sequence[Record], case: str, mode: str) -> Record | None:
    return next((one for one in records if (one.parameters["case"], one.parameters["mode"]) == (case, mode)), None)


def _row(record: Record) -> list[str]:
    end = record.parameters["seconds"]
    if record.parameters["case"] == CHANGES:
        cells = ["-", "-"]
    else:
        at = record.result["at_s"]
        cells = [f"{ratios_of(record, at - 5, at):.3f}", f"{ratios_of(record, end - 5, end):.3f}"]
    connect, transfer = record.result["connect"], record.result["transfer"]
    return [
        record.parameters["case"],
        record.parameters["mode"],
        *cells,
        f"{connect['mean_ms']:,.0f}",
        f"{transfer['mean_ms']:,.0f}",
        f"{transfer['given_up']} of {transfer['begun']}",
    ]


def report(records: Sequence[Record]) -> Report:
    """The ratios before and at the end, and what was broken."""
    goals: list[Goal] = []
    for mode, recovers in (("paper", False), ("production", True)):
        one = _of(records, REPAIRED, mode)
        if one is not None:
            end = one.parameters["seconds"]
            ratio = ratios_of(one, end - 5, end)
            goals.append(
                Goal(
                    f"repaired server, {mode} mode: {'back at its share' if recovers else 'stays starved'}",
                    (ratio >= 0.28) is recovers,
                    f"ratio {ratio:.3f} at the end",
                )
            )
    changes = _of(records, CHANGES, "fixed")
    if changes is not None:
        goals.append(
            Goal(
                "no established connection broken by weight changes",
                changes.result["broken"] == 0,
                f"{changes.result['broken']} of {changes.result['downloads']} long downloads and "
                f"{changes.result['connect']['begun']} requests, by {changes.result['weight_changes']} changes",
            )
        )
    heading = [
        "what happens to s3",
        "mode",
        "its ratio before",
        "at the end",
        "connect, mean (ms)",
        "transfer, mean (ms)",
        "given up",
    ]
    return Report(
        tables=[Table(heading, [_row(one) for one in records])],
        goals=goals,
        text=[
            f"It happens a third of the load's time in. T = {PERIOD_S:g} s, window {WINDOW_S:g} s, {RATE_PER_S:g} "
            "requests/s. Weight changes: one server after the other is drained and taken back, every second, while six "
            "downloads of 25 s run."
        ],
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """The last server's ratio against time."""
    axes = figure.subplots()
    for number, one in enumerate(record for record in records if record.parameters["case"] != CHANGES):
        rows: list[list[Any]] = one.result["ratios"]
        label = f"{one.parameters['case']}, {one.parameters['mode']} mode"
        axes.plot([row[0] for row in rows], [row[-1] for row in rows], color=f"C{number}", label=label)
        axes.axvline(one.result["at_s"], color="black", alpha=0.2, lw=1)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("ratio of s3")
    axes.set_ylim(0, None)
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="r-beyond",
    title="Repaired, killed, and changed weights",
    source="Beyond paper 000",
    about="What the paper does not show: a server that is repaired after it was starved, one that is killed, and what "
    "weight changes do to established connections.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
