"""The command line of a series of runs that becomes one table: run what is not there yet, print, write it as JSON."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from topo.labs.crowds.programme import COMPRESSION
from topo.labs.crowds.records import conditions
from topo.labs.crowds.run import Run, is_done, make_run, results_directory
from topo.testbed import REPOSITORY
from topo.testbed.errors import SetupError, refusal
from topo.testbed.interrupts import Interrupted, interruptible
from topo.testbed.nodes import switch_kind

Row = dict[str, float]
Measure = Callable[[Path, float, str], list[Row]]
"""From the directory of the results, the compression of time and the kind of the switch to the table's rows."""


def make_if_missing(run: Run, kind: str, directory: Path, title: str) -> None:
    """Make a run unless its complete records are there."""
    if not is_done(run, kind, directory):
        print(f"{title}: {run.settings.seconds / run.settings.k:.0f} s", flush=True)
        make_run(run, kind, directory, lambda left: None)
    print(f"{title}: {conditions(directory)}", flush=True)


def main(
    name: str,
    description: str | None,
    measure: Measure,
    table: Callable[[Sequence[Row]], str],
    arguments: Sequence[str] | None,
) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m topo.labs.crowds.{name}", description=description)
    parser.add_argument("--output", type=Path, help=f"directory of the results (default: results/{name}, bmv2: -bmv2)")
    options = parser.parse_args(arguments)
    output = options.output or REPOSITORY / "results"
    with interruptible():
        try:
            kind = switch_kind()
            output = options.output or results_directory(name, kind)
            output.mkdir(parents=True, exist_ok=True)
            rows = measure(output, COMPRESSION[kind], kind)
            known = [{key: None if math.isnan(value) else value for key, value in one.items()} for one in rows]
            (output / f"{name}.json").write_text(json.dumps(known, indent=2) + "\n")
        except SetupError as error:
            print(f"sluice {name}: {error}", file=sys.stderr)
            return 1
        except OSError as error:
            print(f"sluice {name}: {refusal(error, output)}; complete runs are kept", file=sys.stderr)
            return 1
        except Interrupted as interrupted:
            print(f"sluice {name}: ended by {interrupted}; complete runs are kept", file=sys.stderr)
            return 128 + interrupted.number
    print(table(rows))
    return 0
