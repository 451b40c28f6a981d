"""Whole runs of the lab on disk: runs that take long are made once and shared by experiments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topo.results import results_directory
from topo.testbed import REPOSITORY

RESULTS = REPOSITORY / "results"
EXPERIMENTS = "experiments"


@dataclass(frozen=True, slots=True)
class LabRuns:
    """Where the lab's runs are, and from which time on they count."""

    experiments: Path = RESULTS / EXPERIMENTS
    """Directory of the experiments' results and of their own runs."""
    shared: Path = RESULTS
    """Directory of the runs of `make news` and `make news-overhead`."""
    since: float = 0.0
    """Seconds on the clock of time.time(): runs that began earlier are made again."""

    def at(self, name: str) -> Path:
        """Return the directory of a run by its name: below `experiments` if the name begins so, else below `shared`."""
        first, _, rest = name.partition("/")
        return self.experiments / rest if first.startswith(EXPERIMENTS) else self.shared / name


def below_results(name: str, kind: str) -> str:
    """Return a directory's name relative to `results`; each kind of switch has a directory of its own."""
    first, slash, rest = name.partition("/")
    return f"{results_directory(first, kind).relative_to(RESULTS)}{slash}{rest}"


def simulated_beside(*, began: float, load: float | None, program: str) -> dict[str, Any]:
    """Return the fields of a result that describe the lab's run beside a new simulation.

    They hold when the run was made and with which program, which may differ from the simulation's.
    """
    return {"made": {"began": began, "load": load}, "lab_program": program}
