"""Lab runs on disk: a run that takes long is made once and used by several experiments."""

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
    """The directories of the lab runs, and the time since which a run must have begun to be reused."""

    experiments: Path = RESULTS / EXPERIMENTS
    """Directory of the experiments' results and of the lab runs that only experiments make."""
    shared: Path = RESULTS
    """Directory of the runs that experiments share with `make news` and `make news-overhead`."""
    since: float = 0.0
    """Time in seconds on the clock of time.time(); runs that began earlier are made again."""

    def at(self, name: str) -> Path:
        """Return the directory of the run `name`.

        If `name` begins with EXPERIMENTS, its first component is replaced by `self.experiments`; otherwise `name` is a
        path below `self.shared`.
        """
        first, _, rest = name.partition("/")
        return self.experiments / rest if first.startswith(EXPERIMENTS) else self.shared / name


def below_results(name: str, kind: str) -> str:
    """Return the path, relative to RESULTS, of the directory `name` for the switch `kind`.

    Each kind of switch has its own results: for all kinds except the embedded switch, the first component of `name`
    gets the kind as a suffix.
    """
    first, slash, rest = name.partition("/")
    return f"{results_directory(first, kind).relative_to(RESULTS)}{slash}{rest}"


def simulated_beside(*, began: float, load: float | None, program: str) -> dict[str, Any]:
    """Return the fields of a result that describe a stored lab run with which a new simulation is compared.

    The fields contain the begin, the load average and the commit of the lab run; the simulation's commit may differ.
    """
    return {"made": {"began": began, "load": load}, "lab_program": program}
