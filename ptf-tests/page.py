"""Write docs/results/packet-tests.md: the results of the last run of the packet tests on each switch."""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "controller"), str(ROOT / "ptf-tests")]

from harness import results  # noqa: E402 (needs the path)
from harness.exclusions import BY_DESIGN  # noqa: E402

LOGS = ROOT / "results" / "ptf"
PAGE = ROOT / "docs" / "results" / "packet-tests.md"
SWITCHES = {"embedded": "embedded switch", "bmv2": "BMv2", "tofino": "Tofino's model"}
"""Switches that have a column on the page, by the value of $SWITCH."""

HEAD = """# Packet tests on every target

The same suite on each. *By design*: [what a target cannot do](../reference/exclusions.md). *Without the stage*: tests
of what a program is compiled without.

Anew: `make ptf`, `SWITCH=bmv2 make ptf`, `SWITCH=tofino make ptf`, then `make ptf-page`.
"""


@dataclass(frozen=True)
class Run:
    """A run of all or some packet tests on one switch."""

    switch: str
    about: dict[str, str]
    """The description of the run, as `results.describe` writes it."""
    tests: Sequence[dict[str, str]]
    """The lines of `results.jsonl`, one for each test."""

    def of(self, outcome: str) -> list[dict[str, str]]:
        """Return the tests with this outcome."""
        return [test for test in self.tests if test["outcome"] == outcome]

    def excluded(self) -> list[dict[str, str]]:
        """Return the tests that the target skips because it cannot pass them by design."""
        return [test for test in self.of("skipped") if test["reason"].startswith(BY_DESIGN)]


def read(logs: Path) -> Iterator[Run]:
    """Yield the recorded runs, in the order of the page's columns."""
    for switch in SWITCHES:
        folder = logs / switch
        if (folder / results.ABOUT).is_file():
            lines = (folder / results.OUTCOMES).read_text().splitlines()
            yield Run(switch, json.loads((folder / results.ABOUT).read_text()), [json.loads(line) for line in lines])


def page(runs: Sequence[Run]) -> str:
    """Return the text of the page."""
    numbers = _table(
        ["", *(SWITCHES[run.switch] for run in runs)],
        [
            ["passed", *(len(run.of("passed")) for run in runs)],
            ["failed", *(len(run.of("failed")) for run in runs)],
            ["by design", *(len(run.excluded()) for run in runs)],
            ["without the stage", *(len(run.of("skipped")) - len(run.excluded()) for run in runs)],
            ["seconds", *(round(sum(float(test["seconds"]) for test in run.tests)) for run in runs)],
            ["asked for", *(run.about["asked"] for run in runs)],
            ["commit", *(run.about["commit"] for run in runs)],
            ["day (UTC)", *(run.about["day"] for run in runs)],
        ],
    )
    parts = [HEAD, numbers]
    for run in runs:
        if failed := run.of("failed"):
            parts.append(f"## Failed on {SWITCHES[run.switch]}\n\n" + "".join(f"- `{t['test']}`\n" for t in failed))
    parts += [_by_stage(runs)]
    return "\n".join(parts)


def _by_stage(runs: Sequence[Run]) -> str:
    """Return a table of stages with the number of passed tests, and the number of tests that were not skipped."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for run in runs:
        for test in run.tests:
            counts[test["test"].partition(".")[0]][run.switch][test["outcome"]] += 1
    rows = [[stage, *(_share(counts[stage][run.switch]) for run in runs)] for stage in sorted(counts)]
    return "## By stage: passed of those that ran\n\n" + _table(["", *(SWITCHES[run.switch] for run in runs)], rows)


def _share(outcomes: Counter[str]) -> str:
    ran = outcomes["passed"] + outcomes["failed"]
    return f"{outcomes['passed']} of {ran}" if ran else "-"


def _table(heading: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    lines = [list(map(str, row)) for row in (heading, *rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> int:
    """Write the page; return the exit status, which is 2 if no run is recorded."""
    runs = list(read(LOGS))
    if not runs:
        print(f"ptf-page: no run is in {LOGS}; make ptf", file=sys.stderr)
        return 2
    PAGE.write_text(page(runs))
    print(f"{PAGE.relative_to(ROOT)}: {', '.join(run.switch for run in runs)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
