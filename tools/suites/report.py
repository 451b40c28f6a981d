"""Reports the outcome of each exercise or test: as lines for people, and as JSON for scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """The outcome of a test."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Result:
    """A test's outcome, the reason if it did not pass (or a remark if it did), and its duration in seconds."""

    name: str
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0

    def taking(self, seconds: float) -> Result:
        """Return a copy with the duration in seconds."""
        return replace(self, seconds=round(seconds, 1))

    def line(self) -> str:
        """Return outcome, duration, name and the reason's first line as one line; the reason's other lines follow."""
        first, *rest = self.reason.splitlines() or [""]
        below = "".join(f"\n{'':12}{line}" for line in rest)
        return f"{self.outcome:8} {self.seconds:4.0f} s  {self.name}{': ' if first else ''}{first}{below}"


def summary(results: Iterable[Result]) -> str:
    """Return the number of results by outcome, as text."""
    counts = Counter(result.outcome for result in results)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome)


def status(results: Iterable[Result]) -> int:
    """Return the exit status: 0 if at least one test passed and none failed, else 1."""
    outcomes = [result.outcome for result in results]
    return 0 if Outcome.PASSED in outcomes and Outcome.FAILED not in outcomes else 1


def as_json(suite: str, switch: str, revision: str | None, results: Iterable[Result]) -> dict[str, Any]:
    """Return the results of the run as JSON; `revision` is the commit of the folder if it is a clone."""
    return {"suite": suite, "switch": switch, "revision": revision, "results": [asdict(result) for result in results]}
