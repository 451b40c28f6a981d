"""What an experiment is: points to measure, and what is said and drawn of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from experiments.labruns import LabRuns

Values = Mapping[str, Any]
"""What JSON can hold."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Point:
    """One run: its key names it for good, so everything that distinguishes it from other runs belongs into it.

    Repeated runs have the same key but for ` #` and a number at its end.
    """

    key: str
    parameters: Values
    seconds: float
    """How long it takes, about: for the estimate of the time left."""
    group: str = ""
    """Points of one group are measured one after another in the same place (a lab that is built once, say).  Those
    without one need no place: they are computed, as many at a time as there are cores."""
    lab_run: str = ""
    """The run of the lab that it is made of, by name; the same one may serve points of other experiments."""
    read_s: float = 0.0
    """How long it takes if that run is on disk; 0 if it makes the run whatever is there."""


@dataclass(frozen=True, slots=True)
class Record:
    """A point that was measured."""

    key: str
    parameters: Values
    result: Values
    began: float
    """Seconds, on the clock of time.time(); of a run of the lab that was on disk, when that began."""
    seconds: float
    """How long it took, if only to read."""
    load: float | None
    """Processes that wanted a CPU when it ended, as a mean over a minute: what else the machine did; None where that
    was not noted."""
    program: str = ""
    """The commit it was measured with; "" where none was noted."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the report; cells are text."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Goal:
    """What was to be reached, and whether it was; `reached` is None where it could not be told."""

    text: str
    reached: bool | None
    seen: str


@dataclass(frozen=True, slots=True)
class Report:
    """What is said of the records."""

    tables: Sequence[Table]
    goals: Sequence[Goal] = ()
    summary: Values = field(default_factory=dict[str, Any])
    """The figures, for programs."""


Measure = Callable[[Point], Values]
"""What was made before and only read says so: `made` in a result has the record's `began`, `load` and `program`, as far
as they are not now's; `lab_program` is that of the lab's run where only its simulation is made now."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A figure or a table; `name` is that of its directory and of FIG=."""

    name: str
    title: str
    source: str
    """The place in the publication, or what asked for it."""
    about: str
    """What was run, in at most two sentences: the only text of its page."""
    points: Callable[[bool], Sequence[Point]]
    """The runs; of the quick form if True."""
    report: Callable[[Sequence[Record]], Report]
    draw: Callable[[Sequence[Record], Figure], None]
    place: Callable[[str, Say], AbstractContextManager[Measure]] | None = None
    """Opens the place of a group and gives what measures a point in it."""
    compute: Measure | None = None
    """Measures a point without a group, in a process of its own: a function of a module."""
    take: Callable[[Point, LabRuns, Say], Values] | None = None
    """Measures a point of a run of the lab on disk, and makes that first if it is not there; needs no place."""
    is_there: Callable[[Point, LabRuns], bool] | None = None
    """Whether the run that `take` needs is on disk."""
    needs_root: bool = False
    switch: str = ""
    """The kind of switch ($SWITCH) that it is about; of any other it is not made. "": any."""
