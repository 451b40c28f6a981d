"""Outcomes of tests as lines of JSON, for the summary of run.py and for page.py; ptf itself only prints outcomes."""

from __future__ import annotations

import json
import os
import time
import unittest
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

OUTCOMES, ABOUT = "results.jsonl", "run.json"
"""Names of the file with a line for each test, and of the file that describes the run."""

VARIABLE = "SLUICE_PTF_RESULTS"
"""Environment variable with the path of the file for outcomes; if it is not set, no outcome is recorded."""


@contextmanager
def recorded(case: unittest.TestCase, result: unittest.TestResult | None) -> Generator[None]:
    """Let a test run in the block; then append the test's name, outcome and duration to the file for outcomes."""
    path = os.environ.get(VARIABLE)
    if path is None or result is None:
        yield
        return
    before = (len(result.failures) + len(result.errors), len(result.skipped))
    begun = time.monotonic()
    yield
    outcome = "passed"
    if len(result.failures) + len(result.errors) > before[0]:
        outcome = "failed"
    elif len(result.skipped) > before[1]:
        outcome = "skipped"
    line = {"test": str(case), "outcome": outcome, "seconds": round(time.monotonic() - begun, 3)}
    if outcome == "skipped":
        line["reason"] = result.skipped[-1][1]
    with Path(path).open("a") as file:
        file.write(json.dumps(line) + "\n")


def describe(folder: Path, tests: Sequence[str], commit: str) -> None:
    """Record which tests were run, of which commit, and on which day."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    about = {"asked": " ".join(tests) or "all", "commit": commit, "day": day}
    (folder / ABOUT).write_text(json.dumps(about) + "\n")
