"""What p4c's Tofino back end says of a program's tables: stages, and the longest chain of dependent ones.

The report is a folder as `p4c-barefoot --verbose -Ttable_summary:1` leaves it. Its table_summary.log has the placement
of every round: the last one counts.
"""

import re
from pathlib import Path

FACTS = {
    "stages": r"Number of stages in table allocation: (\d+)",
    "ingress_stages": r"Number of stages for ingress table allocation: (\d+)",
    "egress_stages": r"Number of stages for egress table allocation: (\d+)",
    "critical_path": r"Critical path length through the table dependency graph: (\d+)",
}


def placement(text: str) -> dict[str, int]:
    """Stages and the longest chain of dependent tables in the last round of a table_summary.log, as far as given."""
    found = {name: re.findall(pattern, text) for name, pattern in FACTS.items()}
    return {name: int(values[-1]) for name, values in found.items() if values}


def outcome(report: Path, compiled: bool) -> dict[str, object]:
    """What became of a compile: whether p4c came to its end, and how far table placement came."""
    text = "".join(path.read_text(errors="replace") for path in sorted(report.rglob("table_summary.log")))
    return {"compiled": compiled, **placement(text)}
