"""Whole runs of the lab on disk: what takes long to make is made once, whoever reads it."""

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
    """Where they are, and from when on they count."""

    experiments: Path = RESULTS / EXPERIMENTS
    """The experiments' results, with runs of their own below."""
    shared: Path = RESULTS
    """What has the runs of `make news` and `make news-overhead` below it."""
    since: float = 0.0
    """Seconds, on the clock of time.time(): runs that began before are made again."""

    def at(self, name: str) -> Path:
        """Return the directory of a run by its name: where it is below `results` unless said otherwise."""
        first, _, rest = name.partition("/")
        return self.experiments / rest if first.startswith(EXPERIMENTS) else self.shared / name


def below_results(name: str, kind: str) -> str:
    """Return where something is below `results` unless said otherwise: each kind of switch has its own."""
    first, slash, rest = name.partition("/")
    return f"{results_directory(first, kind).relative_to(RESULTS)}{slash}{rest}"


def simulated_beside(*, began: float, load: float | None, program: str) -> dict[str, Any]:
    """Return what a result says of a run of the lab that is simulated now: when the run was made, and with which
    program, which need not be the simulation's."""
    return {"made": {"began": began, "load": load}, "lab_program": program}
