"""The model of an experiment: points to measure, records of them, and the report made from the records."""

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
"""Matplotlib takes a second to import, so modules name its types without importing it; only the runner does."""

Values = Mapping[str, Any]
"""Values that JSON can hold."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Point:
    """One run. Its key is its permanent name, so the key contains everything that distinguishes the run from others.

    Repeated runs have the same key except for ` #` and a number at the end.
    """

    key: str
    parameters: Values
    seconds: float
    """Approximate seconds of the run, to estimate the time left."""
    group: str = ""
    """Points of one group are measured one after another in the same place (a lab that is built once, for instance).
    Points without a group need no place: they are computed, as many at a time as there are cores."""
    lab_run: str = ""
    """Name of the lab's run that the point is made from; points of other experiments may use the same run."""
    read_s: float = 0.0
    """Seconds to read that run if it is on disk; 0 if the point always makes the run."""


@dataclass(frozen=True, slots=True)
class Record:
    """A measured point."""

    key: str
    parameters: Values
    result: Values
    began: float
    """Begin in seconds, on the clock of time.time(); for a run that was read from disk, the begin of that run."""
    seconds: float
    """Seconds that the measurement took, even if it only read a run."""
    load: float | None
    """The machine's one-minute load average at the end, as an indication of other work; None if not recorded."""
    program: str = ""
    """Commit of the program that measured; "" if not recorded."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the report; cells are text."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal and whether it was reached; `reached` is None where the records do not decide it."""

    text: str
    reached: bool | None
    seen: str


@dataclass(frozen=True, slots=True)
class Report:
    """The report made from the records."""

    tables: Sequence[Table]
    goals: Sequence[Goal] = ()
    summary: Values = field(default_factory=dict[str, Any])
    """The figures, for programs that read them."""


Measure = Callable[[Point], Values]
"""Measures a point. For a run that was only read, the result holds `made`: its record's `began`, `load` and `program`
where they differ from the present ones. Where only the simulation is made now, `lab_program` is the program of the
lab's run."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A figure or a table; `name` is the name of its directory and the value of FIG=."""

    name: str
    title: str
    source: str
    """The place in the publication, or the reason for the experiment."""
    about: str
    """What was run, in at most two sentences: the only prose of its page."""
    points: Callable[[bool], Sequence[Point]]
    """Returns the runs; those of the quick form if True."""
    report: Callable[[Sequence[Record]], Report]
    draw: Callable[[Sequence[Record], Figure], None]
    place: Callable[[str, Say], AbstractContextManager[Measure]] | None = None
    """Opens the place of a group, and yields the function that measures its points."""
    compute: Measure | None = None
    """Measures a point without a group in a separate process, so it must be a function of a module."""
    take: Callable[[Point, LabRuns, Say], Values] | None = None
    """Measures a point from a run of the lab on disk, making that run first if it is missing; needs no place."""
    is_there: Callable[[Point, LabRuns], bool] | None = None
    """Returns whether the run that `take` needs is on disk."""
    needs_root: bool = False
    switch: str = ""
    """The kind of switch ($SWITCH) that the experiment is about; it is not made for other kinds. "": any."""
