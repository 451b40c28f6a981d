"""What a measurement is to be seen with: the switch's own losses and ceiling, the machine's load."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.experiment import Record
from topo.switches import REPOSITORY, switch_kind

BENCH = REPOSITORY / "results/bench/switch.json"
"""Where `make bench` writes."""
FRAME_BYTES = 1400
DOCUMENTED_PER_S = {"embedded": 487_113, "bmv2": 14_350}
"""Packets of FRAME_BYTES per second, 100 servers and 1,000 connections, by kind of switch in the table of
docs/reference/switch.md: on the machine that it names."""


def ceiling_sentence(bench: Path = BENCH) -> str:
    """Say what $SWITCH carries through veths: by this machine's bench, or by the documented one."""
    kind = switch_kind()
    rows = json.loads(bench.read_text())["rows"] if bench.exists() else []
    usual = {"who": kind, "frame": FRAME_BYTES, "servers": 100, "connections": 1000, "entries": 0}
    here = [row["pps"] for row in rows if all(row.get(name) == value for name, value in usual.items())]
    where = "by `make bench` here" if here else "on the machine of [switch.md](reference/switch.md)"
    ceiling = here[0] if here else DOCUMENTED_PER_S[kind]
    return f"its ceiling is {ceiling:,} with frames of {FRAME_BYTES:,} bytes, {where}"


def load_sentence(records: Sequence[Record]) -> str:
    """Say how much else the machine had to do; "" where that was not noted."""
    loads = [one.load for one in records if one.load is not None]
    if not loads:
        return ""
    noted, made = len(loads), len(records)
    where = "the runs" if noted == made else f"{noted} of {made} runs (it was not noted of the others)"
    return f"The machine's load average was {min(loads):.0f} to {max(loads):.0f} at the end of {where}."


def switch_sentence(records: Sequence[Record]) -> str:
    """Say what the switch lost in all runs, and how many packets per second passed it at most; "" where there was none.

    Packets are counted from before the load to after it, so the rate is that of a mean second of the load, or above.
    """
    passed = [one for one in records if "switch" in one.result]
    if not passed:
        return ""
    most = max(one.result["switch"]["received"] / one.parameters["seconds"] for one in passed)
    return losses_sentence([one.result["switch"] for one in passed], most, "in all runs")


def losses_sentence(passed: Sequence[Mapping[str, int]], most_per_s: float, where: str) -> str:
    """Say what the switch lost, and how many packets per second it had at most; "" where nobody counted."""
    if not passed:
        return ""
    lost = sum(one["lost_before"] + one["lost_after"] for one in passed)
    return (
        f"The switch lost {lost} packets of its own {where} (conservation: interfaces against verdicts), and had "
        f"{most_per_s:,.0f} packets/s at most; {ceiling_sentence()}."
    )
