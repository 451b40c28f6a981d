"""Measures what is missing of the papers' figures and tables, then writes docs/results.md.

`python -m experiments [NAME ...]`; those with real traffic need root.  Runs that are there are kept.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from experiments.document import write_document
from experiments.machine import this_machine
from experiments.progress import Progress, duration
from experiments.registry import EXPERIMENTS, UnknownError, chosen
from experiments.runner import measure, missing, write
from experiments.store import Store, StoreError
from experiments.version import program
from topo.errors import LabError
from topo.interrupts import Interrupted, interruptible
from topo.switches import REPOSITORY

VERDICTS = {True: "ok    ", False: "MISSED", None: "-     "}


def say(line: str) -> None:
    """Print a line at once, also into a pipe."""
    print(line, flush=True)


def run(options: argparse.Namespace) -> int:
    """Do what the command line says; return the exit code."""
    experiments = chosen(options.names)
    stores = {one.name: Store(options.output, one.name) for one in experiments}
    if options.again:
        for store in stores.values():
            store.forget()
    if not options.report:
        work = {one.name: missing(one, stores[one.name], quick=options.quick) for one in experiments}
        if os.geteuid() != 0 and (rooted := [one.name for one in experiments if one.needs_root and work[one.name]]):
            raise LabError(f"{', '.join(rooted)}: this makes network namespaces and needs root: run it with sudo")
        progress = Progress([point for points in work.values() for point in points], this_machine().cores)
        program()  # as it is loaded now, whatever is checked out while it runs
        say(f"{sum(map(len, work.values()))} runs to make, about {duration(progress.left_s())}")
        for one in experiments:
            measure(one, work[one.name], stores[one.name], progress, say)
    made = {
        one.name: (one, written, stores[one.name]) for one in experiments if (written := write(one, stores[one.name]))
    }
    write_document(
        options.docs,
        {name: (one, form, report, store) for name, (one, (form, report), store) in made.items()},
        list(EXPERIMENTS),
    )
    for name, (_, (form, report), _) in made.items():
        say(f"{name} ({form})")
        for goal in report.goals:
            say(f"  {VERDICTS[goal.reached]}  {goal.text}: {goal.seen}")
    say(f"written to {options.output} and {options.docs / 'results.md'}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(EXPERIMENTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="the short form of each")
    parser.add_argument("--again", action="store_true", help="measure again what is there already")
    parser.add_argument("--report", action="store_true", help="measure nothing; write what is there")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "results/experiments", help="directory of the runs")
    parser.add_argument("--docs", type=Path, default=REPOSITORY / "docs", help="where results.md is")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        stack.enter_context(interruptible())
        try:
            return run(options)
        except (LabError, StoreError, UnknownError) as error:
            print(f"sluice experiments: {error}", file=sys.stderr)
            return 1
        except Interrupted as interrupted:
            print(f"sluice experiments: ended by {interrupted}; what was measured is kept", file=sys.stderr)
            return 128 + interrupted.number


if __name__ == "__main__":
    sys.exit(main())
