"""The model of an experiment: points to measure, records of measured points, and the report made from the records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    from experiments.labruns import LabRuns

Axes: TypeAlias = "matplotlib.axes.Axes"
Figure: TypeAlias = "matplotlib.figure.Figure"
"""Types of Matplotlib, as strings: importing Matplotlib takes a second, so only the runner imports it."""

Values = Mapping[str, Any]
"""Values that JSON can represent, by name."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Point:
    """One run to measure. `key` is the run's permanent name, and contains all that distinguishes the run from others.

    Repeated runs have the same key except for ` #` and a number at the end.
    """

    key: str
    parameters: Values
    seconds: float
    """Approximate seconds of the run, to estimate the time left."""
    group: str = ""
    """Points of one group are measured one after another in the same place (for instance, a lab that is built once).
    Points without a group are computed without a place, in parallel on all cores."""
    lab_run: str = ""
    """Name of the lab run from which the point is measured; points of other experiments may use the same lab run."""
    read_s: float = 0.0
    """Approximate seconds of the point if its lab run is already on disk (to read the run and, for some points, to
    simulate it); 0: the point never uses a run on disk."""


@dataclass(frozen=True, slots=True)
class Record:
    """A measured point with its result."""

    key: str
    parameters: Values
    result: Values
    began: float
    """Begin of the run in seconds, on the clock of time.time(), even if the run was only read from disk."""
    seconds: float
    """Seconds that the measurement took; for a run that was only read from disk, the seconds of reading."""
    load: float | None
    """The machine's one-minute load average at the run's end, as an indication of other work; None if not recorded."""
    program: str = ""
    """Commit of the program that made the run; "" if not recorded."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the report; cells are text."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal of an experiment; `reached` is None if the records are not sufficient to decide."""

    text: str
    reached: bool | None
    seen: str


@dataclass(frozen=True, slots=True)
class Report:
    """The report of an experiment, made from its records."""

    tables: Sequence[Table]
    goals: Sequence[Goal] = ()
    summary: Values = field(default_factory=dict[str, Any])
    """The report's figures in machine-readable form."""


Measure = Callable[[Point], Values]
"""Measures a point and returns its result. If the run was only read from disk, the result contains `made`: the stored
run's `began`, `load` and `program`, which replace those of this process in the record. If a stored lab run is compared
with a simulation that is made now, `lab_program` is the commit of the lab run."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment that reproduces a figure or a table. `name` is the name of the results' directory, and the value of
    the variable FIG of `make experiments`."""

    name: str
    title: str
    source: str
    """The section, figure or table of the publication, or the reason for the experiment."""
    about: str
    """Description of the experiment in at most two sentences: the only prose of its page in docs/results."""
    points: Callable[[bool], Sequence[Point]]
    """Returns the points to measure: of the quick form if the argument is True, otherwise of the full form."""
    report: Callable[[Sequence[Record]], Report]
    draw: Callable[[Sequence[Record], Figure], None]
    place: Callable[[str, Say], AbstractContextManager[Measure]] | None = None
    """Opens the place (such as a lab) of a group of points, and yields the function that measures these points."""
    compute: Measure | None = None
    """Measures a point without a group. Another process calls the function, so the function must be picklable, that
    is, defined at the top level of a module."""
    take: Callable[[Point, LabRuns, Say], Values] | None = None
    """Measures a point from a lab run on disk, and makes the lab run first if it is missing; needs no place."""
    is_there: Callable[[Point, LabRuns], bool] | None = None
    """Returns whether the lab run that `take` needs is on disk."""
    needs_root: bool = False
    switch: str = ""
    """The only kind of switch ($SWITCH) for which the experiment is run; "": any kind."""
