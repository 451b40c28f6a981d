"""Read a run's directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from topo.labs.crowds.run import META, TRACE
from topo.plan.crowd.measures import Records
from topo.plan.crowd.samples import read_samples
from topo.plan.crowd.scenarios import SCENARIOS, VARIANTS
from topo.plan.crowd.settings import Settings
from topo.plan.crowd.trace import read_rows
from topo.plan.outcomes import read_outcomes


def read_records(directory: Path) -> Records:
    """Return the records of a complete run."""
    meta = json.loads((directory / META).read_text())
    settings = Settings(**meta["settings"])
    k = settings.k
    zero = float(meta["start"])
    return Records(
        period_s=settings.period_s / k,
        onset_s=settings.onset_s / k,
        end_s=settings.seconds / k,
        link_bit_per_s=settings.link_bit_per_s * k,
        slow_memory_bytes=settings.slow_memory_mb * 2**20,
        controls=VARIANTS[meta["variant"]].controls,
        crowd=not SCENARIOS[meta["scenario"]].false_alarm,
        outcomes=[one for path in sorted(directory.glob("*-outcomes.csv")) for one in read_outcomes(path)],
        bulk=_read_bulk(directory / "bulk.csv"),
        samples=read_samples(directory / "samples.csv"),
        rows=[replace(row, time_s=row.time_s - zero) for row in read_rows(directory / TRACE)],
    )


def made(directory: Path) -> dict[str, Any]:
    """Return when the load of a complete run `began` (on the clock of time.time()), the machine's `load` average at its
    end (None where that was not noted) and the `program` it was made with ("" where that was not)."""
    meta = json.loads((directory / META).read_text())
    return {"began": meta["start"], "load": meta.get("load"), "program": meta.get("program", "")}


def switch_packets(directory: Path) -> Mapping[str, int] | None:
    """Return what passed the switch in a complete run and what it lost itself; None where that is not known."""
    return json.loads((directory / META).read_text()).get("switch_packets")


def conditions(directory: Path) -> str:
    """Return what a run was made under that this machine decides, and the hosts' TCP, as a line for a person."""
    meta = json.loads((directory / META).read_text())
    settings = Settings(**meta["settings"])
    return (
        f"distance: {meta['distance']}; initial window: {settings.initcwnd} segments;"
        f" congestion control: {settings.congestion_control}" + (f"; load: {settings.log}" if settings.log else "")
    )


def _read_bulk(path: Path) -> list[tuple[float, int]]:
    lines = (line.split(",") for line in path.read_text().splitlines()[1:])
    return [(float(moment), int(size)) for moment, size, _ in lines]
