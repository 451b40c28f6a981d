"""The tables of an ablation: the cost of a mechanism's absence, from pairs of runs with the same arrivals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from experiments.experiment import Axes, Record, Table
from experiments.intervals import Mean, difference, mean_of
from experiments.records import matching, number_of

WHOLE = "production mode"
"""Name of the complete mode, with all of its mechanisms."""
MARGIN = 0.05
"""A difference counts if it is, with its whole confidence interval, larger than this share of the complete mode's value
and larger than `Measured.least`; its sign does not matter."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure of a run, and the least difference between two of its values that counts."""

    name: str
    title: str
    digits: int
    least: float
    """The least absolute difference that counts; the difference must also exceed MARGIN times the complete mode's
    value."""
    scale: float = 1.0
    more_is_better: bool = False
    fine_below: float = 0.0
    """Differences of a smaller absolute value are shown with one more digit."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The effect of a mechanism's absence on a figure in a case: the figure's mean with all mechanisms (`whole`), and
    the mean difference that the absence makes (`more`)."""

    figure: Measured
    whole: Mean
    more: Mean

    @property
    def _sure(self) -> bool:
        """Whether the difference, whatever its sign, exceeds the margin with its whole confidence interval."""
        margin = max(self.figure.least, MARGIN * abs(self.whole.value))
        return abs(self.more.value) - self.more.half > margin

    @property
    def pays(self) -> bool:
        """Whether the mechanism's absence makes the figure significantly worse."""
        return self._sure and (self.more.value < 0) == self.figure.more_is_better

    @property
    def harms(self) -> bool:
        """Whether the mechanism's absence makes the figure significantly better."""
        return self._sure and not self.pays

    @property
    def text(self) -> str:
        """The difference as Markdown, in bold if significant."""
        plain = self.more.signed(self.figure.digits + (abs(self.more.value) < self.figure.fine_below))
        return f"**{plain}**" if self._sure else plain


@dataclass(frozen=True, slots=True)
class Ablation:
    """Comparison of one figure in each case: with all mechanisms, and without one mechanism."""

    records: Sequence[Record]
    cases: Sequence[str]
    figure: Measured

    def _by_number(self, case: str, without: str) -> dict[int, float]:
        return {
            number_of(record): self.figure.scale * record.result[self.figure.name]
            for record in matching(self.records, case=case, without=without)
            if record.result[self.figure.name] is not None
        }

    def costs(self, without: str) -> dict[str, Cost]:
        """Return the cost of a mechanism's absence by case, for the cases that were run with and without the
        mechanism."""
        costs: dict[str, Cost] = {}
        for case in self.cases:
            whole, other = (self._by_number(case, name) for name in (WHOLE, without))
            if whole and other:
                costs[case] = Cost(self.figure, mean_of(list(whole.values())), difference(other, whole))
        return costs

    def table(self, titles: Mapping[str, str]) -> Table:
        """Return a table with a column for each case: the means of the complete mode in the first row, then a row of
        differences for each mechanism that has runs."""
        whole = [mean_of(list(self._by_number(case, WHOLE).values())) for case in self.cases]
        rows = [[WHOLE, *(mean.text(self.figure.digits) for mean in whole), ""]]
        for name, title in titles.items():
            if name != WHOLE and (costs := self.costs(name)):
                rows.append(
                    [title, *(costs[case].text if case in costs else "-" for case in self.cases), _verdict(costs)]
                )
        return Table([self.figure.title, *self.cases, "the mechanism"], rows)

    def summary(self, names: Iterable[str]) -> dict[str, dict[str, list[float]]]:
        """Return the difference from the complete mode and half the width of its interval, by mechanism and case."""
        return {
            name: {case: [cost.more.value, cost.more.half] for case, cost in costs.items()}
            for name in names
            if (costs := self.costs(name))
        }

    def draw(self, axes: Axes, names: Iterable[str], *, relative: bool = False) -> None:
        """Draw the differences from the complete mode; with ``relative``, the ratios to the complete mode. Significant
        differences are coloured."""
        for place, name in enumerate(names):
            for cost in self.costs(name).values():
                value = (cost.whole.value + cost.more.value) / cost.whole.value if relative else cost.more.value
                axes.plot([value], [place], "o", ms=4, color="C3" if cost.pays else "C2" if cost.harms else "0.8")
        axes.axvline(1.0 if relative else 0.0, color="black", lw=0.5)


def _verdict(costs: Mapping[str, Cost]) -> str:
    pays = sum(cost.pays for cost in costs.values())
    harms = sum(cost.harms for cost in costs.values())
    return "makes no difference" if not pays + harms else f"pays in {pays}, harms in {harms}"
