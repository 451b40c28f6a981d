"""Findings: measured figures compared with published numbers, and the reasons for deviations. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.experiment import Table
from experiments.intervals import Mean

NEAR_POINTS = 10.0
"""Two shares in percent agree if they differ by at most this many percentage points."""
NEAR_LOSS_POINTS = 3.0
"""Two shares of lost packets agree if they differ by at most this many percentage points."""
NEAR_TIMES = 1.5
"""Two ratios agree if they differ by at most this factor."""
NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Finding:
    """Comparison of one measured figure with the publication."""

    figure: str
    """The figure, table or section of the publication."""
    what: str
    paper: str
    here: str
    agrees: bool
    why: str = NOT_KNOWN
    """The reason for the deviation if the figures do not agree."""


def near(
    figure: str,
    what: str,
    paper: float,
    here: Mean,
    *,
    within: float = NEAR_POINTS,
    below: str = NOT_KNOWN,
    above: str = NOT_KNOWN,
) -> list[Finding]:
    """Compare a measured share (`here`) with the published share (`paper`), both in percent.

    The shares agree if they differ by at most `within` percentage points; otherwise `below` or `above` is the reason,
    for a measured share that is lower or higher. Return no finding if the share was not measured.
    """
    if math.isnan(here.value):
        return []
    digits = 0 if within >= NEAR_POINTS else 1
    agrees, why = abs(here.value - paper) <= within, below if here.value < paper else above
    return [Finding(figure, what, f"{paper:g} %", f"{here.text(digits)} %", agrees, why)]


def times(
    figure: str, what: str, paper: float, here: Mean, *, below: str = NOT_KNOWN, above: str = NOT_KNOWN
) -> list[Finding]:
    """Compare a measured ratio with the published ratio. If the ratios do not agree, `below` or `above` is the reason,
    for a measured ratio that is lower or higher. Return no finding if the ratio was not measured."""
    if math.isnan(here.value):
        return []
    agrees = paper / NEAR_TIMES <= here.value <= paper * NEAR_TIMES
    why = below if here.value < paper else above
    return [Finding(figure, what, f"{_short(paper)} times", f"{here.text(_digits(here.value))} times", agrees, why)]


def at_most(figure: str, what: str, paper: float, here: Mean, *, unit: str, why: str = NOT_KNOWN) -> list[Finding]:
    """Compare a figure with a published upper bound; `why` is the reason given if the figure is above the bound. Return
    no finding if the figure was not measured."""
    if math.isnan(here.value):
        return []
    seen = f"{here.text(_digits(here.value))} {unit}"
    return [Finding(figure, what, f"at most {_short(paper)} {unit}", seen, here.value <= paper, why)]


def at_least(figure: str, what: str, paper: float, here: Mean, *, unit: str, why: str = NOT_KNOWN) -> list[Finding]:
    """Compare a figure with a published lower bound; `why` is the reason given if the figure is below the bound. Return
    no finding if the figure was not measured."""
    if math.isnan(here.value):
        return []
    seen = f"{here.text(_digits(here.value))} {unit}"
    return [Finding(figure, what, f"at least {_short(paper)} {unit}", seen, here.value >= paper, why)]


def shape(figure: str, what: str, paper: str, here: float, *, agrees: bool, why: str = NOT_KNOWN) -> list[Finding]:
    """Compare a curve with a published curve for which no numbers are published.

    `paper` describes the published curve in words, the measured ratio `here` describes the measured curve, and the
    caller decides whether they agree (`agrees`). Return no finding if the ratio was not measured.
    """
    return [] if math.isnan(here) else [Finding(figure, what, paper, f"{here:.2f} times", agrees, why)]


def _digits(value: float) -> int:
    return 2 if abs(value) < 10 else 0


def _short(value: float) -> str:
    return f"{round(value, _digits(value)):g}"


def table(findings: Sequence[Finding]) -> Table:
    """Return a table with a row for each finding; only the first of consecutive findings names their common figure."""
    before = ["", *(finding.figure for finding in findings)]
    return Table(
        ["of the paper", "point", "paper", "here", "agrees", "why not"],
        [
            [
                "" if finding.figure == last else finding.figure,
                finding.what,
                finding.paper,
                finding.here,
                *(("yes", "") if finding.agrees else ("**no**", finding.why)),
            ]
            for last, finding in zip(before, findings, strict=False)
        ],
    )
