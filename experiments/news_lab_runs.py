"""Repeated runs of the lab's flash crowds by set-up, with figures converted to Chen & Heidemann's uncompressed
scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.experiment import Record
from experiments.intervals import Mean, mean_of
from experiments.records import grouped
from topo.plan.crowd.scenarios import NETWORK, SERVER
from topo.testbed.nodes import KERNEL

CROWD, QUIET = "crowd", "quiet"
"""Windows of a run in which figures are measured. CROWD begins one detection interval after the alarm, or after the
onset in runs without control or alarm; QUIET is the time before the onset, without its first interval."""
AS_MEASURED = ("switch_packets_per_s", "late_p99_ms")
"""Names of the figures on the load of switch and generator, which are not converted from the lab's compressed time."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one set-up, which differ only in the seed of their requests."""

    records: Sequence[Record]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters that the runs have in common; the seed belongs to the first run only."""
        return self.records[0].parameters

    def figure(self, name: str, window: str = CROWD, scale: float = 1.0) -> Mean:
        """Return the mean of the figure `name`, converted to the uncompressed time scale and multiplied by `scale`.

        The conversion divides rates by the compression k; it multiplies times in ms by k and returns them in seconds.
        Figures of AS_MEASURED, shares and counts are not converted.
        """
        return mean_of([scale * value for value in self.by_seed(name, window).values()])

    def percent(self, name: str, window: str = CROWD) -> Mean:
        """Return the mean of a share, in percent."""
        return self.figure(name, window, 100.0)

    def alarm_s(self) -> Mean:
        """Return the mean time in seconds from the crowd's onset to the alarm, over the runs with an alarm."""
        scales = {record.parameters["seed"]: record.parameters["period_s"] for record in self.records}
        return mean_of([n * scales[seed] for seed, n in self.by_seed("detected_after_intervals").items()])

    def by_seed(self, name: str, window: str = CROWD) -> dict[int, float]:
        """Return the value of a figure by the run's seed, for the runs that measured the figure."""
        return {
            record.parameters["seed"]: _scaled(name, value, record.parameters["k"])
            for record in self.records
            if (value := record.result[window].get(name)) is not None
        }

    def over(self, other: Runs, name: str, window: str = CROWD, other_window: str = CROWD) -> Mean:
        """Return the mean ratio of a figure of these runs to the figure of the runs `other`.

        The mean is over pairs of runs with the same seed, and so with the same requests. Pairs in which the figure of
        `other` is 0 are omitted.
        """
        theirs = other.by_seed(name, other_window)
        pairs = [(value, theirs.get(seed, 0.0)) for seed, value in self.by_seed(name, window).items()]
        return mean_of([ours / their for ours, their in pairs if their])

    def over_quiet(self, name: str) -> Mean:
        """Return the mean ratio of a figure to its value before the crowd."""
        return self.over(self, name, CROWD, QUIET)


def _scaled(name: str, value: float, k: float) -> float:
    if name in AS_MEASURED:
        return value
    if name.endswith(("_per_s", "_kbps")):
        return value / k
    return value * k / 1000 if name.endswith("_ms") else value


@dataclass(frozen=True, slots=True)
class SetUps:
    """The runs of all set-ups."""

    crowds: Mapping[str, Mapping[str, Runs]]
    """Runs by scenario and variant."""
    sweep: Mapping[float, Runs] = field(default_factory=dict[float, Runs])
    """Runs by T in seconds, the shortest first."""
    without: Runs | None = None
    """Runs of the network-limited crowd without control, with a kernel router instead of the switch."""


def set_ups(records: Sequence[Record]) -> SetUps:
    """Group records by their set-ups."""
    without = [record for record in records if record.parameters["switch"] == KERNEL]
    sweep = grouped(
        [record for record in records if record.parameters["sweep"]], lambda record: record.parameters["period_s"]
    )
    crowds = {
        scenario: grouped(
            [
                record
                for record in records
                if record.parameters["scenario"] == scenario
                and not record.parameters["sweep"]
                and record.parameters["switch"] != KERNEL
            ],
            lambda record: record.parameters["variant"],
        )
        for scenario in (NETWORK.name, SERVER.name)
    }
    return SetUps(
        {scenario: {name: Runs(runs) for name, runs in by_variant.items()} for scenario, by_variant in crowds.items()},
        {period_s: Runs(sweep[period_s]) for period_s in sorted(sweep)},
        Runs(without) if without else None,
    )
