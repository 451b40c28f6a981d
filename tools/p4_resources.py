"""Reads the report of p4c's Tofino back end: a program's chain of dependent tables, its stages and resources.

The report is a folder that tools/p4_tofino.py writes: said.txt contains p4c's output, pipe/logs contains the log files.
table_dependency_graph.log contains the chain, which is counted before any allocation. table_summary.log contains the
placement of every round; only the last round counts. If a program has too many stages, p4c places it nevertheless, and
reports no error. As a program (`python -m tools.p4_resources [FOLDER]`), this module prints the table that
docs/reference/targets.md summarises.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHAIN = {"ingress_chain": r"^ *INGRESS: (\d+)", "egress_chain": r"^ *EGRESS: (\d+)"}
"""Patterns of FindDependencyGraph's output: the number, counted from 0, of the last stage that the longest chain
needs."""

FACTS = {
    "stages": r"Number of stages in table allocation: (\d+)",
    "ingress_stages": r"Number of stages for ingress table allocation: (\d+)",
    "egress_stages": r"Number of stages for egress table allocation: (\d+)",
    "critical_path": r"Critical path length through the table dependency graph: (\d+)",
}

RESOURCES = {
    "SRAM blocks": ("rams", "srams", 80),
    "map RAMs": ("map_rams", "maprams", 48),
    "TCAM blocks": ("tcams", "tcams", 24),
    "meter and stateful ALUs": ("meter_alus", "meters", 4),
    "statistics ALUs": ("statistic_alus", "stats", 4),
    "hash bits": ("hash_bits", "bits", 416),
    "hash distribution units": ("hash_distribution_units", "units", 6),
    "logical tables": ("logical_tables", "ids", 16),
    "gateways": ("gateways", "gateways", 16),
    "action instructions": ("vliw", "instructions", 32),
}
"""For each resource: the two keys in resources.json under which a stage lists its uses, and the amount per stage."""


@dataclass(frozen=True)
class Chip:
    """The resources of one pipe of a chip."""

    architecture: str
    stages: int
    """Number of match-action stages."""
    containers: Mapping[tuple[str, int], int]
    """Number of PHV containers of ingress and egress together, by type and width in bits."""
    options: tuple[str, ...] = ()
    """Additional options for p4c's command line."""


CHIPS = {
    "tofino": Chip(
        "tna",
        12,
        {
            **{("normal", 8): 64, ("normal", 16): 96, ("normal", 32): 64},
            **{("tagalong", 8): 32, ("tagalong", 16): 48, ("tagalong", 32): 32},
        },
    ),
    "tofino2": Chip(
        "t2na",
        20,
        {
            **{("normal", 8): 48, ("normal", 16): 72, ("normal", 32): 48},
            **{(kind, width): there for kind in ("mocha", "dark") for width, there in ((8, 16), (16, 24), (32, 16))},
        },
        # With dark containers, p4c would search for minutes before it reports that a program does not fit.
        ("--disable-dark-allocation",),
    ),
}
"""Chips by the name that p4c, the assembler and the driver use."""


def chip(report: Path) -> Chip:
    """Return the chip that p4c's manifest in the report names; Tofino 1 if there is no manifest."""
    manifest = report / "manifest.json"
    return CHIPS[json.loads(manifest.read_text())["target"] if manifest.exists() else "tofino"]


def chain(said: str) -> dict[str, int]:
    """Return the number of stages that the longest chain of dependent tables needs, for ingress and for egress. A
    number that p4c did not print is absent."""
    matches = {name: re.search(pattern, said, re.MULTILINE) for name, pattern in CHAIN.items()}
    return {name: int(match[1]) + 1 for name, match in matches.items() if match}


def placement(text: str) -> dict[str, int]:
    """Return the stages and the longest chain of the last round in a table_summary.log, as far as the log contains
    them."""
    matches = {name: re.findall(pattern, text) for name, pattern in FACTS.items()}
    return {name: int(values[-1]) for name, values in matches.items() if values}


def outcome(report: Path) -> dict[str, object]:
    """Return the outcome of a compilation, as far as it got: the chains, the stages, and whether the program fits."""
    logs = [report / "said.txt", *sorted(report.rglob("table_dependency_graph.log"))]
    said = "".join(path.read_text(errors="replace") for path in logs if path.exists())
    text = "".join(path.read_text(errors="replace") for path in sorted(report.rglob("table_summary.log")))
    placed = placement(text)
    fits = {"fits": placed["stages"] <= chip(report).stages} if "stages" in placed else {}
    return {**chain(said), **placed, **fits}


def usage(report: Path) -> dict[str, tuple[list[int], int]]:
    """Return for each resource the use in each stage, and a stage's capacity. Raises FileNotFoundError for an
    incomplete report."""
    paths = sorted(report.rglob("resources.json"))
    if not paths:
        raise FileNotFoundError(f"no resources.json in {report}: p4c did not come to table placement")
    stages: list[dict[str, Any]] = json.loads(paths[0].read_text())["resources"]["mau"]["mau_stages"]
    return {
        name: ([len(stage[unit][taken]) for stage in stages], each) for name, (unit, taken, each) in RESOURCES.items()
    }


def containers(report: Path) -> dict[str, tuple[int, int]]:
    """Return the used and the available PHV containers by name. Raises FileNotFoundError for an incomplete report."""
    paths = sorted(report.rglob("phv.json"))
    if not paths:
        raise FileNotFoundError(f"no phv.json in {report}: p4c did not come to PHV allocation")
    taken = [
        (container["container_type"], container["bit_width"])
        for container in json.loads(paths[0].read_text())["containers"]
    ]
    return {
        f"PHV containers of {width} bits" + ("" if kind == "normal" else f", {kind}"): (
            taken.count((kind, width)),
            there,
        )
        for (kind, width), there in chip(report).containers.items()
    }


def table(report: Path) -> str:
    """Return the resources as a Markdown table: total use, capacity of all stages, and use in the fullest stage."""
    there = chip(report).stages
    lines = ["| resource | taken | of | most in a stage |", "|---|---|---|---|"]
    for name, (stages, each) in usage(report).items():
        lines.append(f"| {name} | {sum(stages)} | {each * there} | {max(stages, default=0)} of {each} |")
    lines += [f"| {name} | {taken} | {there} | |" for name, (taken, there) in containers(report).items()]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of a report; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.p4_resources", description=__doc__)
    parser.add_argument(
        "report",
        type=Path,
        nargs="?",
        default=Path("results/tofino"),
        metavar="FOLDER",
        help="what tools/p4_tofino.py left of a whole compile (default: %(default)s)",
    )
    try:
        print(table(parser.parse_args(arguments).report))
    except FileNotFoundError as error:
        print(f"p4-resources: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
