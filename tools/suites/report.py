"""What came of each exercise or test: lines for people, JSON for scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Result:
    """An outcome, with the reason where the test did not pass and with the seconds that it took."""

    name: str
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0

    def taking(self, seconds: float) -> Result:
        """The same, with its time."""
        return replace(self, seconds=round(seconds, 1))

    def line(self) -> str:
        """One line of the table; further lines of the reason stand below it."""
        first, *rest = self.reason.splitlines() or [""]
        below = "".join(f"\n{'':12}{line}" for line in rest)
        return f"{self.outcome:8} {self.seconds:4.0f} s  {self.name}{': ' if first else ''}{first}{below}"


def summary(results: Iterable[Result]) -> str:
    """How many of each outcome."""
    counts = Counter(result.outcome for result in results)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome)


def status(results: Iterable[Result]) -> int:
    """The exit status: 0 when something passed and nothing failed."""
    outcomes = [result.outcome for result in results]
    return 0 if Outcome.PASSED in outcomes and Outcome.FAILED not in outcomes else 1


def as_json(suite: str, switch: str, revision: str | None, results: Iterable[Result]) -> dict[str, Any]:
    """The whole run. `revision` is the commit of the folder where it is a clone."""
    return {"suite": suite, "switch": switch, "revision": revision, "results": [asdict(result) for result in results]}
