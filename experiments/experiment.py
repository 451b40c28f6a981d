"""What an experiment is: points to measure, and what is said and drawn of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


@dataclass(frozen=True, slots=True)
class Record:
    """A point that was measured."""

    key: str
    parameters: Values
    result: Values
    began: float
    """Seconds, on the clock of time.time()."""
    seconds: float
    load: float
    """Processes that wanted a CPU when it ended, as a mean over a minute: what else the machine did."""
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
    text: Sequence[str] = ()
    """Paragraphs: where it agrees with the paper and where not, and why."""
    summary: Values = field(default_factory=dict[str, Any])
    """The figures, for programs."""


Measure = Callable[[Point], Values]


def planned_s(point: Point) -> float:
    """Return how long a point takes that has to be made, as it was planned."""
    return point.seconds


@dataclass(frozen=True, slots=True)
class Experiment:
    """A figure or a table; `name` is that of its directory and of FIG=."""

    name: str
    title: str
    source: str
    """The place in the paper, or what asked for it."""
    about: str
    """What was run, in a paragraph: it opens the section."""
    points: Callable[[bool], Sequence[Point]]
    """The runs; of the quick form if True."""
    report: Callable[[Sequence[Record]], Report]
    draw: Callable[[Sequence[Record], Figure], None]
    place: Callable[[str, Say], AbstractContextManager[Measure]] | None = None
    """Opens the place of a group and gives what measures a point in it."""
    compute: Measure | None = None
    """Measures a point without a group, in a process of its own: a function of a module."""
    needs_root: bool = False
    expected_s: Callable[[Point], float] = planned_s
    """How long a point takes here: less than planned if what it needs is on disk and only read."""
