"""docs/results.md: one section an experiment, made from its results; sections without results here stay as they are."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from experiments.experiment import Experiment, Record, Report, Table
from experiments.repetitions import set_up
from experiments.store import Store, StoreError, put

HEADING = """\
# Results

What `make experiments` measured, made by it from the runs in `results/experiments` (those on another switch,
`SWITCH=bmv2`, are kept apart in `results/experiments-bmv2`, with a report of their own): some 11 hours on two cores if
nothing is there yet. Each run is kept as soon as it is made, and only what is missing is made. `make experiments
FIG=r-fig5` completes one section, `.venv/bin/python -m experiments --again r-fig5` makes its runs anew, each in place
of the one that is there. `QUICK=1` is the short form: fewer rates, sizes and ways to balance, most of them once; as a
whole planned for under 26 minutes on two cores, and last made as one command in 18.

The runs behind a section are in `docs/results/<name>.json.gz` (of the sections that have been written since they are
kept there). Unpacked to `results/experiments/<name>/runs.json` they are taken for made: `.venv/bin/python -m
experiments --report r-beyond` writes the section from them, and without `--report` only what is missing is made.

A line under each heading says which form was run, how often, when and at which commit. What was run once has no
intervals: it is one draw. Repeats of a load by httperf have the same arrivals, which it draws from the numbers of its
processes: their intervals are of what the machine made of them, not of other arrivals. What stands in brackets behind a
form is a note of whoever ran it (`results/experiments/<name>/note.txt`). A section that names no commit is an older
program's.
"""

BEGIN = re.compile(r"^<!-- begin ([a-z0-9-]+) -->$", re.MULTILINE)
MARK = re.compile(r"<!-- begin ([a-z0-9-]+) -->\n(.*?)<!-- end \1 -->(?:\n|\Z)", re.DOTALL)
REACHED = {True: "yes", False: "**no**", None: "-"}


def rows(table: Table) -> str:
    """Return a table in Markdown."""
    lines = [table.heading, ["---"] * len(table.heading), *table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def section(experiment: Experiment, form: str, report: Report, store: Store) -> str:
    """Return the section of an experiment."""
    parts = [f"## {experiment.title}", f"*{experiment.source}.* {experiment.about}"]
    _, records = store.known(experiment)
    how = [f"{form} ({store.note})" if store.note else form, *([how_often(records), when(records)] if records else [])]
    machines = " and ".join(one.sentence() for one in store.machines(records))
    parts.append(f"Run as `make experiments FIG={experiment.name}`, {', '.join(how)}, on {machines}.")
    parts.append(f"![{experiment.title}](results/{experiment.name}.svg)")
    parts += [rows(table) for table in report.tables]
    if report.goals:
        goals = [[goal.text, REACHED[goal.reached], goal.seen] for goal in report.goals]
        parts.append(rows(Table(["to reach", "reached", "seen"], goals)))
    return "\n\n".join([*parts, *(text for text in report.text if text)]) + "\n"


def how_often(records: Sequence[Record]) -> str:
    """Say how many runs there are of each set-up."""
    counts = Counter(map(set_up, records)).values()
    least, most = min(counts), max(counts)
    if most == 1:
        return "each set-up once"
    return f"each set-up {most} times" if least == most else f"each set-up {least} to {most} times"


def when(records: Sequence[Record]) -> str:
    """Say on which days runs were made (UTC) and at which commits."""
    days = sorted({datetime.fromtimestamp(one.began, UTC).date() for one in records})
    first, last = f"{days[0]:%-d %B %Y}", f"{days[-1]:%-d %B %Y}"
    commits = _commits(one.program for one in records)
    labs = _commits(one.result["lab_program"] for one in records if "lab_program" in one.result)
    lab = f" (the lab's runs: {labs})" if labs and labs != commits else ""
    return f"{first if first == last else f'{first} to {last}'}, at commit {commits}{lab}"


def _commits(programs: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(one or "one not noted" for one in programs))


def overview(sections: Mapping[str, str]) -> str:
    """Return a table of the sections, and how each was run."""
    lines: list[list[str]] = []
    for name, text in sections.items():
        if heading := re.search(r"^## (.*)$", text, re.MULTILINE):
            title = heading.group(1)
            anchor = re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
            run = re.search(r"^Run as `[^`]*`, (.*), on \d+ cores? ", text, re.MULTILINE)
            lines.append([f"`{name}`", f"[{title}](#{anchor})", run.group(1) if run else "-"])
    return rows(Table(["FIG=", "what", "run"], lines)) + "\n"


def sections_of(file: Path) -> dict[str, str]:
    """Return a document's sections by name, none where it is not there; raise StoreError if one has no end, for then
    nobody knows what of it is to be kept."""
    text = file.read_text() if file.exists() else ""
    sections = dict(MARK.findall(text))
    for name in BEGIN.findall(text):
        if name not in sections:
            raise StoreError(
                f"{file}: the section {name!r} has no line '<!-- end {name} -->': put it back, then run with --report"
            )
    return sections


def merged(old: Mapping[str, str], sections: Mapping[str, str], order: Sequence[str]) -> str:
    """Return the document with new sections in place of old ones of the same name, in `order`."""
    known = {**old, **sections}
    ordered = {name: known[name] for name in order if name in known}
    body = [f"<!-- begin {name} -->\n{text}<!-- end {name} -->\n" for name, text in ordered.items()]
    return "\n".join([HEADING, overview(ordered), *body])


def write_document(
    docs: Path, reports: Mapping[str, tuple[Experiment, str, Report, Store]], order: Sequence[str]
) -> None:
    """Write docs/results.md, and beside it the pictures and the runs of its sections."""
    file = docs / "results.md"
    beside = docs / "results"
    beside.mkdir(parents=True, exist_ok=True)
    sections: dict[str, str] = {}
    for name, (experiment, form, report, store) in reports.items():
        sections[name] = section(experiment, form, report, store)
        put(beside / f"{name}.svg", (store.directory / f"{name}.svg").read_bytes())
        put(beside / f"{name}.json.gz", gzip.compress(store.text(store.note).encode(), mtime=0))
    put(file, merged(sections_of(file), sections, order).encode())
