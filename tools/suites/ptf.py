"""Runs scripts that compile a program, start the switch and run ptf, and extracts each test's result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .errors import SuiteError
from .place import Place, Program
from .report import Outcome, Result

COMMANDS = ("p4c", "ptf", "python3", "pkill", "ps")
RUN_S = 1800.0
"""The longest duration of a script in seconds; p4-guide's lpmtester waits 0.1 s for each of thousands of answers."""

_LINE, _DOUBLE = "-" * 70, "=" * 70
_TEST = re.compile(r"^([\w.]+) \.\.\. ", re.MULTILINE)
_VERDICT = re.compile(r"(?:^|\s)(ok|FAIL|ERROR|skipped .*)$", re.MULTILINE)
_REASON = re.compile(rf"^(?:FAIL|ERROR): ([\w.]+)\n{_LINE}\n(.*?)^(?:{_DOUBLE}|{_LINE})$", re.MULTILINE | re.DOTALL)
_RAN = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
_RAISED = re.compile(r"^[\w.]*(?:Error|Exception)\b.*$", re.MULTILINE)
_TAIL_LINES = 15


def run(place: Place, name: str, folder: Path, command: str) -> Iterator[Result]:
    """Yield the results of the tests that a shell command runs in a folder."""
    program = Program(place.environment, ["sh", "-c", command], folder)
    try:
        yield from results(name, program.rest(RUN_S))
    except SuiteError as error:
        yield Result(name, Outcome.FAILED, str(error))
    finally:
        program.end()


def results(folder: str, said: str) -> list[Result]:
    """Return a result for each test in the output. Add a failed result if there is no test, or if ptf states another
    number of tests."""
    tests = re.split(rf"^(?:{_DOUBLE}|{_LINE})$", said, maxsplit=1, flags=re.MULTILINE)[0]
    reasons = {name: _raised(traceback) for name, traceback in _REASON.findall(said)}
    _, *parts = _TEST.split(tests)
    outcomes = [
        _result(f"{folder} {name}", text, reasons.get(name)) for name, text in zip(parts[::2], parts[1::2], strict=True)
    ]
    ran = sum(map(int, _RAN.findall(said)))
    if not outcomes or ran != len(outcomes):
        tail = "\n".join(said.strip().splitlines()[-_TAIL_LINES:])
        outcomes.append(Result(folder, Outcome.FAILED, f"ptf ran {ran} tests; the end of what was said:\n{tail}"))
    return outcomes


def _raised(traceback: str) -> str:
    """Return the line of a traceback that names the exception; the whole traceback if there is no such line."""
    raised = _RAISED.findall(traceback)
    return raised[-1] if raised else traceback.strip()


def _result(name: str, text: str, reason: str | None) -> Result:
    """Return a test's result from ptf's output on the test; the output ends with the verdict."""
    verdicts = _VERDICT.findall(text)
    if not verdicts:
        return Result(name, Outcome.FAILED, "it did not end")
    if verdicts[-1] == "ok":
        return Result(name, Outcome.PASSED)
    outcome = Outcome.SKIPPED if verdicts[-1].startswith("skipped") else Outcome.FAILED
    return Result(name, outcome, reason or verdicts[-1])
