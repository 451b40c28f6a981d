"""Measures what is missing of the papers' figures and tables, then writes docs/results.

`python -m experiments [NAME ...]`; experiments with real traffic need root.  Runs whose results exist are not repeated.
$SWITCH selects the switch: embedded (default), bmv2, or tofino for r-tofino.  Runs of each switch are kept apart.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from pathlib import Path

from experiments.document import write_pages
from experiments.experiment import Experiment
from experiments.labruns import EXPERIMENTS as RUNS
from experiments.labruns import RESULTS, LabRuns
from experiments.machine import this_machine
from experiments.progress import Progress, duration
from experiments.registry import EXPERIMENTS, UnknownError, chosen
from experiments.runner import measure, plan, write
from experiments.store import Store, StoreError
from topo.results import program, results_directory
from topo.testbed import REPOSITORY
from topo.testbed.errors import SetupError, refusal
from topo.testbed.interrupts import Interrupted, interruptible
from topo.testbed.nodes import switch_kind

VERDICTS = {True: "ok    ", False: "MISSED", None: "-     "}


def say(line: str) -> None:
    """Print a line without buffering, so that a pipe receives the line at once."""
    print(line, flush=True)


def run(options: argparse.Namespace) -> int:
    """Run the experiments that the command line selects; return the exit code."""
    experiments = chosen(options.names, switch_kind())
    labs = places(options)
    stores = {experiment.name: Store(labs.experiments, experiment.name) for experiment in experiments}
    if not options.report:
        measure_missing(experiments, stores, labs, quick=options.quick, again=options.again)
    made = {
        experiment.name: (experiment, written, stores[experiment.name])
        for experiment in experiments
        if (written := write(experiment, stores[experiment.name]))
    }
    if absent := [experiment.name for experiment in experiments if experiment.name not in made]:
        none = f"no runs of {', '.join(absent)} in {labs.experiments}"
        if not made:
            raise StoreError(none)
        say(none)
    docs = options.docs or docs_of(labs.experiments, experiments)
    write_pages(
        docs, {name: (experiment, form, report, store) for name, (experiment, (form, report), store) in made.items()}
    )
    for name, (_, (form, report), _) in made.items():
        say(f"{name} ({form})")
        for goal in report.goals:
            say(f"  {VERDICTS[goal.reached]}  {goal.text}: {goal.seen}")
    say(f"written to {labs.experiments} and {docs / 'results'}")
    return 0


def places(options: argparse.Namespace) -> LabRuns:
    """Return the folders of lab runs and of the experiments' results, and the time since which lab runs must have begun
    to be reused: now with --again, otherwise any time. With --output, its folder is used for all runs and results."""
    since = time.time() if options.again else 0.0
    if options.output:
        return LabRuns(options.output, options.output, since)
    return LabRuns(results_directory(RUNS, switch_kind()), RESULTS, since)


def docs_of(output: Path, experiments: Sequence[Experiment]) -> Path:
    """Return the folder of the result pages for a call without the option --docs.

    If each of the experiments may be run with every kind of switch, the folder is `docs` if `output` is the embedded
    switch's standard folder. If all are bound to one kind, it is `docs` if `output` is the standard folder of that
    kind. In all other cases, the pages are written to `output`, beside the runs.
    """
    (switch, *others) = {experiment.switch for experiment in experiments}
    ours = [] if others else [results_directory(RUNS, switch)] if switch else [RESULTS / RUNS]
    return REPOSITORY / "docs" if output.absolute() in ours else output


def measure_missing(
    experiments: Sequence[Experiment], stores: dict[str, Store], labs: LabRuns, *, quick: bool, again: bool
) -> None:
    """Measure the points that have no results; with `again`, measure all points."""
    with ExitStack() as locks:
        for store in stores.values():
            locks.enter_context(store.alone())
        work = plan(experiments, stores, labs, quick=quick, again=again)
        if os.geteuid() != 0 and (
            rooted := [experiment.name for experiment in experiments if experiment.needs_root and work[experiment.name]]
        ):
            raise SetupError(f"{', '.join(rooted)}: this makes network namespaces and needs root: run it with sudo")
        progress = Progress([point for points in work.values() for point in points], this_machine().cores)
        program()  # caches the commit of the loaded code, so that a later checkout does not change the records
        say(f"{sum(map(len, work.values()))} runs to make, about {duration(progress.left_s())}")
        for experiment in experiments:
            measure(experiment, work[experiment.name], stores[experiment.name], progress, say, labs=labs)


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments of the command line (None: those of this process)."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(EXPERIMENTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="the short form of each")
    parser.add_argument(
        "--again",
        action="store_true",
        help="measure again what is there already, run by run; runs of `make news` and `make news-overhead`, too",
    )
    parser.add_argument("--report", action="store_true", help="measure nothing; write what is there")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="directory of the runs (default: results/experiments, bmv2: experiments-bmv2); those of the lab included",
    )
    parser.add_argument(
        "--docs",
        type=Path,
        metavar="DIR",
        help="where results/ is (default: docs; beside the runs if those are not in results/experiments)",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiments from the command line; return the exit code."""
    options = parse_options(arguments)
    with ExitStack() as stack:
        stack.enter_context(interruptible())
        try:
            return run(options)
        except (SetupError, StoreError, UnknownError) as error:
            print(f"sluice experiments: {error}", file=sys.stderr)
            return 1
        except OSError as error:
            refused = refusal(error, options.output or RESULTS)
            print(f"sluice experiments: {refused}; what was measured is kept", file=sys.stderr)
            return 1
        except BrokenProcessPool:
            print(
                "sluice experiments: one of the processes that compute was killed (there was no memory left for it?);"
                " what was measured is kept: run it again to go on",
                file=sys.stderr,
            )
            return 1
        except Interrupted as interrupted:
            print(f"sluice experiments: ended by {interrupted}; what was measured is kept", file=sys.stderr)
            return 128 + interrupted.number


if __name__ == "__main__":
    sys.exit(main())
