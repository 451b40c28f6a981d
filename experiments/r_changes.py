"""Number of established connections that weight changes break: long downloads and requests for pages run while the
weights change all the time."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Values
from experiments.intervals import mean_of
from experiments.records import Columns, grouped, table
from experiments.variants import PERIOD_S, WINDOW_S
from experiments.webpool import passed_since, pool, quiet
from topo.labs.web import Lab
from topo.measure.downloads import Download
from topo.plan.load import Load
from topo.plan.network import SERVER_NAMES, Balance
from topo.testbed.nodes import switch_kind

RATE_PER_S = 40.0
GIVEN_UP_S = 5.0
CHANGE_S = 0.25
"""Seconds between two manual changes; a change drains a server, or ends the drain."""
READERS = 6
READER_BYTES_PER_S = 200_000.0
"""Rate at which a download's client reads; a download takes 15 s."""
MODES = ("paper", "production")
LOAD_S, QUICK_LOAD_S = 120.0, 20.0
REPETITIONS = 3


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: both modes of R, which alternate in the full form."""
    seconds = QUICK_LOAD_S if quick else LOAD_S
    return [
        Point(
            key=f"{mode}, {seconds:g} s #{number}",
            parameters={"mode": mode, "rate_per_s": RATE_PER_S, "seconds": seconds, "change_s": CHANGE_S},
            seconds=seconds + 30,
            group=f"{mode}/{number}",
        )
        for number in range(1 if quick else REPETITIONS)
        for mode in MODES
    ]


class Changing:
    """A thread that drains the servers in turn and ends each drain again, until `stop` is called. R changes weights at
    the same time."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._ending = threading.Event()
        self._failure: Exception | None = None
        self.moments: list[float] = []
        """Time of each manual change, on the clock of time.time()."""
        self._thread = threading.Thread(target=self._run, name="changes")
        self._thread.start()

    def stop(self) -> None:
        """Stop the changes, and return after the drain of every server has ended.

        Raises the exception with which a change failed.
        """
        self._ending.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            for name in itertools.cycle(SERVER_NAMES):
                for drain in (True, False):
                    self._lab.controller.drain(name, drain=drain)
                    self.moments.append(time.time())
                    if self._ending.wait(CHANGE_S) and not drain:
                        return
        except Exception as error:
            self._failure = error


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open a lab whose last server is loaded, so that R also changes weights, and yield the measuring function."""
    mode = group.split("/", maxsplit=1)[0]
    with pool(Lab(switch_kind(), Balance(mode, PERIOD_S, WINDOW_S), say=quiet(say))) as web_pool:
        web_pool.lab.break_server(SERVER_NAMES[-1])

        def measure(point: Point) -> Values:
            resets = web_pool.handshakes.resets_by_service
            first = _weight_changes(web_pool.lab)
            quiet_before = web_pool.lab.quiet_packet_counts()
            downloads = web_pool.lab.start_downloads(READERS, READER_BYTES_PER_S)
            changing = Changing(web_pool.lab)
            try:
                measured = web_pool.measure(
                    Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S)
                )
            finally:
                changing.stop()
            written = _weight_changes(web_pool.lab) - first
            finished = downloads.finish()
            return {
                **measured,
                "changes": written,
                "resets_by_service": web_pool.handshakes.resets_by_service - resets,
                "switch": passed_since(web_pool.lab, quiet_before),
                **figures(finished, changing.moments),
            }

        yield measure


def _weight_changes(lab: Lab) -> int:
    (service,) = lab.controller.ask(command="status")["services"]
    return service["weight_changes"]


def figures(downloads: Sequence[Download], moments: Sequence[float]) -> dict[str, Any]:
    """Return the outcomes of the downloads, and the number of manual changes during each download."""
    lived = [
        sum(connection.established <= moment <= connection.ended for moment in moments) for connection in downloads
    ]
    return {
        "by_hand": len(moments),
        "downloads": len(downloads),
        "broken": [download.fault for download in downloads if download.fault],
        "lived_through": lived,
    }


def _sum(runs: Sequence[Record], count: Callable[[Values], int]) -> int:
    return sum(count(record.result) for record in runs)


def _broken(result: Values) -> int:
    return len(result["broken"])


def _resets(result: Values) -> int:
    return result["resets_by_service"] + result["httperf"]["resets"]


def _answered(runs: Sequence[Record]) -> str:
    replies, pages = (sum(run.result["httperf"][count] for run in runs) for count in ("replies", "connections"))
    return f"{replies:,} of {pages:,}"


COLUMNS: Columns[str] = {
    "R's mode": lambda mode, runs: f"{mode}, {len(runs)} runs" if len(runs) > 1 else mode,
    "weight changes a run": lambda _, runs: mean_of([run.result["changes"] for run in runs]).text(0),
    "downloads": lambda _, runs: str(_sum(runs, itemgetter("downloads"))),
    "changes a download lived through (median of a run)": lambda _, runs: mean_of(
        [statistics.median(run.result["lived_through"] or [0]) for run in runs]
    ).text(0),
    "all of them together": lambda _, runs: f"{_sum(runs, lambda result: sum(result['lived_through'])):,}",
    "broken": lambda _, runs: str(_sum(runs, _broken)),
    "pages answered": lambda _, runs: _answered(runs),
    "pages reset": lambda _, runs: str(_sum(runs, _resets)),
}


def report(records: Sequence[Record]) -> Report:
    """Report a table row for each mode of R; counts are sums over the runs of the mode."""
    by_mode = grouped(records, lambda record: record.parameters["mode"])
    changes, downloads = (_sum(records, itemgetter(name)) for name in ("changes", "downloads"))
    broken, resets = _sum(records, _broken), _sum(records, _resets)
    return Report(
        tables=[table(COLUMNS, by_mode)],
        goals=[
            Goal(
                "established connections broken by weight changes: 0",
                broken == 0 if downloads and changes else None,
                f"{broken} of {downloads} downloads in {changes:,} changes",
            ),
            Goal("pages reset: 0", resets == 0 if changes else None, str(resets)),
        ],
        summary={record.key: {k: v for k, v in record.result.items() if k != "ratios"} for record in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the ratios of one run of each mode against time."""
    modes = [mode for mode in MODES if any(record.parameters["mode"] == mode for record in records)]
    for axes, mode in zip(figure.subplots(len(modes), 1, sharex=True, squeeze=False)[:, 0], modes, strict=True):
        rows = next(record.result["ratios"] for record in records if record.parameters["mode"] == mode)
        for number, name in enumerate(SERVER_NAMES, 1):
            axes.step([row[0] for row in rows], [row[number] for row in rows], where="post", label=name)
        axes.set_ylabel(f"ratio, {mode} mode")
        axes.set_ylim(0, 1)
        axes.grid(alpha=0.3)
    figure.axes[-1].set_xlabel("time (s)")
    figure.axes[0].legend(fontsize="small")


EXPERIMENT = Experiment(
    name="r-changes",
    title="Connections and weight changes",
    source="Beyond Ohta & Andou",
    about="Servers are drained and taken back in turn, a change every 250 ms, while R moves ratios every "
    "second. Six slow readers download 3 MB each and compare every byte.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
