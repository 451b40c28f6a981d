"""What `sim-lab` believes of the simulation: what is side by side with the lab, and which sections rest on it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments import (
    news_fig15,
    news_fig16,
    news_scale,
    news_table1,
    r_fig6,
    sim_scale,
    sim_unlike,
)
from experiments.experiment import Goal, Record
from experiments.store import Store

SIMULATED = {
    one.EXPERIMENT.name: one.EXPERIMENT
    for one in (r_fig6, sim_scale, sim_unlike, news_table1, news_fig15, news_fig16, news_scale)
}
ONLY_SIMULATED = (
    "more servers, clients or destinations than the lab has",
    "several switches that share a pool",
    "the access links and the TCP of paper 003's Fig. 10",
)


@dataclass(frozen=True, slots=True)
class Part:
    """What is held against the lab together."""

    what: str
    sections: str
    """What rests on it, in words; names of sections are in backticks."""
    goals: Sequence[Goal]
    runs: Sequence[Record]

    @property
    def names(self) -> list[str]:
        """Of the sections."""
        return re.findall(r"`([a-z0-9-]+)`", self.sections)


def side_by_side(parts: Sequence[Part]) -> str:
    """Say what there is of both, and what is only simulated."""
    there = [one.what for one in parts if one.goals]
    missing = [one.what for one in parts if not one.goals]
    return (
        f"Side by side in these runs: {'; '.join(there)}. Not side by side: {'; '.join([*missing, *ONLY_SIMULATED])}. "
        "Other ways to balance servers and requests that are not alike are in the lab in `r-unlike`, and are not held "
        "against the simulation."
    )


def belief(parts: Sequence[Part], single_rates: str) -> str:
    """Say which sections rest on what the simulation misses; `single_rates`: what the goals do not show."""
    return " ".join(filter(None, (_missed(parts), single_rates)))


def _missed(parts: Sequence[Part]) -> str:
    said: list[str] = []
    for one in parts:
        if missed := [goal for goal in one.goals if goal.reached is False]:
            off = "; ".join(f"{goal.text.partition(': ')[2]}: {goal.seen}" for goal in missed)
            said.append(f"of {one.what} ({off}), on which rest {one.sections}")
    if not said:
        return "No goal is missed here; what is not side by side is believed on the strength of what is."
    return (
        f"The simulation is not to be believed to the letter {', and '.join(said)}. Times there are this model's own: "
        "what may be taken from those sections is which of two simulated runs is better where they differ by more than "
        "the simulation does from the lab."
    )


def other_commits(parts: Sequence[Part], results: Path) -> str:
    """Name the sections below `results` that were simulated at other commits than what they rest on, where both are
    known."""
    held: dict[str, set[str]] = {}
    for one in parts:
        for name in one.names if one.goals else []:
            held.setdefault(name, set()).update(run.program for run in one.runs)
    apart = [f"`{name}`" for name, commits in held.items() if "" not in commits and _commits(name, results) - commits]
    return f"Simulated at other commits than what is held against the lab here: {', '.join(apart)}." if apart else ""


def _commits(name: str, results: Path) -> set[str]:
    """Return the commits at which a section's simulations were made, as far as they were noted."""
    _, runs = Store(results, name).known(SIMULATED[name])
    return {one.program for one in runs if one.program and "switch" not in one.result}
