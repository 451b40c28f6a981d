"""The command `python -m tools.suites SUITE FOLDER [NAME...]`; tutorials and p4-guide need root."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from topo.testbed.errors import SetupError
from topo.testbed.switches import BMV2
from topo.testbed.switches.piped import embedded_binary

from . import guide, onos, tutorials
from .errors import SuiteError
from .place import Place, place
from .report import Result, as_json, status, summary

SUITES: dict[str, Callable[[Place, Sequence[str]], Iterator[Result]]] = {
    "tutorials": tutorials.run,
    "p4-guide": guide.run,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a suite and print each test's outcome. Return 0 if at least one test passed and none failed, else 1; 2 if the
    suite cannot run or continue; 128 plus the signal's number after a signal."""
    parser = argparse.ArgumentParser(prog="python -m tools.suites", description=__doc__)
    parser.add_argument("suite", choices=[*SUITES, "onos"])
    parser.add_argument("folder", type=Path, help="a clone of the suite's repository; nothing in it is changed")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these exercises, folders or pipelines")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--switch", type=Path, help="the embedded switch [target/release/sluice-switch]")
    which.add_argument("--bmv2", action="store_true", help="the simple_switch_grpc of PATH in its place")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the copy there, with the scripts' logs")
    parser.add_argument("--json", action="store_true", help="print JSON at the end in place of lines")
    options = parser.parse_intermixed_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    results: list[Result] = []
    try:
        if not options.folder.is_dir():
            raise SuiteError(f"{options.folder} is no folder: name a clone of the suite's repository")
        binary = BMV2.find() if options.bmv2 else embedded_binary(options.switch)
        began = time.monotonic()
        for result in _run(options, binary):
            now = time.monotonic()
            results.append(result.taking(now - began))
            began = now
            if not options.json:
                print(results[-1].line(), flush=True)
    except (SuiteError, SetupError) as error:
        print(f"suites: {error}", file=sys.stderr)
        return 2
    except _Interrupted as interrupted:
        print(f"suites: interrupted, and everything it started is gone: {summary(results)}", file=sys.stderr)
        return 128 + interrupted.number
    if options.json:
        switch = "bmv2" if options.bmv2 else "embedded"
        print(json.dumps(as_json(options.suite, switch, _revision(options.folder), results), indent=1))
    else:
        print(summary(results))
    return status(results)


def _run(options: argparse.Namespace, binary: Path) -> Iterator[Result]:
    if options.suite == "onos":
        yield from onos.run(options.folder, binary, options.names)
        return
    with place(options.folder, None if options.bmv2 else binary, options.keep) as where:
        yield from SUITES[options.suite](where, options.names)


class _Interrupted(BaseException):
    """Ctrl-C or SIGTERM as an exception, so that context managers clean up before the process ends."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    for handled in (signal.SIGINT, signal.SIGTERM):
        signal.signal(handled, signal.SIG_IGN)  # A second signal must not interrupt the clean-up.
    raise _Interrupted(number)


def _revision(folder: Path) -> str | None:
    """Return the commit of a clone; None if the folder is not a clone."""
    command = ["git", "-c", f"safe.directory={folder.resolve()}", "-C", str(folder), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


if __name__ == "__main__":
    sys.exit(main())
