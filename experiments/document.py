"""docs/results.md: one section an experiment, made from its results; sections without results here stay as they are."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.experiment import Experiment, Report, Table
from experiments.store import Store

HEADING = """\
# Results

What `make experiments` measured, made by it from `results/experiments`; `make experiments FIG=r-fig5` makes one section
anew, `QUICK=1` the short form. What stands in brackets behind a form is a note of whoever ran it
(`results/experiments/<name>/note.txt`).
"""

MARK = re.compile(r"<!-- begin ([a-z0-9-]+) -->\n(.*?)<!-- end \1 -->\n", re.DOTALL)
REACHED = {True: "yes", False: "**no**", None: "-"}


def rows(table: Table) -> str:
    """Return a table in Markdown."""
    lines = [table.heading, ["---"] * len(table.heading), *table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def section(experiment: Experiment, form: str, report: Report, store: Store) -> str:
    """Return the section of an experiment."""
    parts = [f"## {experiment.title}", f"*{experiment.source}.* {experiment.about}"]
    how = f"{form} ({store.note})" if store.note else form
    parts.append(f"Run as `make experiments FIG={experiment.name}`, {how}, on {store.machine.sentence()}.")
    parts.append(f"![{experiment.title}](results/{experiment.name}.svg)")
    parts += [rows(table) for table in report.tables]
    if report.goals:
        goals = [[goal.text, REACHED[goal.reached], goal.seen] for goal in report.goals]
        parts.append(rows(Table(["to reach", "reached", "seen"], goals)))
    return "\n\n".join([*parts, *(text for text in report.text if text)]) + "\n"


def merged(text: str, sections: Mapping[str, str], order: Sequence[str]) -> str:
    """Return the document with new sections in place of old ones of the same name, in `order`."""
    known = {**dict(MARK.findall(text)), **sections}
    body = [f"<!-- begin {name} -->\n{known[name]}<!-- end {name} -->\n" for name in order if name in known]
    return "\n".join([HEADING, *body])


def write_document(
    docs: Path, reports: Mapping[str, tuple[Experiment, str, Report, Store]], order: Sequence[str]
) -> None:
    """Write docs/results.md, and its pictures beside it."""
    file = docs / "results.md"
    pictures = docs / "results"
    pictures.mkdir(exist_ok=True)
    sections: dict[str, str] = {}
    for name, (experiment, form, report, store) in reports.items():
        sections[name] = section(experiment, form, report, store)
        shutil.copyfile(store.directory / f"{name}.svg", pictures / f"{name}.svg")
    file.write_text(merged(file.read_text() if file.exists() else "", sections, order))
