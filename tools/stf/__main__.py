"""The command `python -m tools.stf FOLDER [NAME...] [--switch PATH] [-j N]`: runs the STF tests of a folder."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from topo.testbed.errors import SetupError
from topo.testbed.switches.piped import embedded_binary

from .runner import Outcome, Result, run


def main(arguments: list[str] | None = None) -> int:
    """Run the tests and print those that did not pass. Return 0 if at least one passed and none failed, else 1; 2 if
    there is no test or no switch."""
    parser = argparse.ArgumentParser(prog="python -m tools.stf", description=__doc__)
    parser.add_argument("folder", type=Path, help="X.stf with X.json and X.p4info.txtpb, or with X.p4 and p4c on PATH")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only tests whose name contains one of these")
    parser.add_argument("--switch", type=Path, help="the embedded switch [target/release/sluice-switch]")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="tests at a time")
    options = parser.parse_args(arguments)
    tests = sorted(options.folder.glob("*.stf"))
    if options.names:
        tests = [test for test in tests if any(name in test.stem for name in options.names)]
    if not tests:
        print(f"{options.folder} has no such tests (*.stf)", file=sys.stderr)
        return 2
    try:
        binary = embedded_binary(options.switch)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 2

    def run_one(test: Path) -> Result:
        return run(test, binary)

    counts: Counter[Outcome] = Counter()
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for result in pool.map(run_one, tests):
            counts[result.outcome] += 1
            _report(result)
    print(", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome))
    return 1 if counts[Outcome.FAILED] or not counts[Outcome.PASSED] else 0


def _report(result: Result) -> None:
    if result.outcome is not Outcome.PASSED:
        print(f"{result.outcome.value} {result.name}: {result.reason}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
