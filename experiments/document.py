"""The pages of docs/results: one for each experiment, rendered from its report.

docs/results/README.md is written by hand; it lists each claim and whether the claim holds.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from experiments import conditions
from experiments.experiment import Experiment, Report, Table
from experiments.store import Store, put

TEMPLATE = "page.md.j2"
REACHED = {True: "yes", False: "**no**", None: "-"}

Written = tuple[Experiment, str, Report, Store]
"""An experiment, its form (full or quick), its report, and the store of its runs."""


def page(experiment: Experiment, form: str, report: Report, store: Store) -> str:
    """Return the page of an experiment, in Markdown."""
    template = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=False
    ).get_template(TEMPLATE)
    _, records = store.known(experiment)
    goals = [[goal.text, REACHED[goal.reached], goal.seen] for goal in report.goals]
    text = template.render(
        experiment=experiment,
        tables=report.tables,
        goals=Table(["goal", "reached", "measured"], goals),
        conditions=conditions.table(f"{form} ({store.note})" if store.note else form, records, store.machines(records)),
    )
    return text.rstrip() + "\n"


def write_pages(docs: Path, reports: Mapping[str, Written]) -> None:
    """Write each experiment's page, picture and runs into docs/results; files of other experiments are unchanged."""
    directory = docs / "results"
    for name, (experiment, form, report, store) in reports.items():
        put(directory / f"{name}.svg", (store.directory / f"{name}.svg").read_bytes())
        put(directory / f"{name}.json.gz", gzip.compress(store.text(store.note).encode(), mtime=0))
        put(directory / f"{name}.md", page(experiment, form, report, store).encode())
